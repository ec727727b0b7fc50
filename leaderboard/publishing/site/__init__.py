"""Builds a static site from ledgers: pages for people, and the same content as JSON for programs.

`kernelmark` calls only `build`, with the `SiteInputs` that it read from the project. It does not depend on sandboxes or
torch. Trusted code; every name, message and source in a ledger is hostile and is escaped.
"""
