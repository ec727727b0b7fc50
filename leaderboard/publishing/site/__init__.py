"""A static site made of ledgers: pages for people, and the same as JSON for programs.

`build` is all that the front door calls, with the `SiteInputs` that it read from the project. Knows nothing of
sandboxes or torch. Trusted code; every name, message and source in a ledger is hostile text, and comes out as text.
"""
