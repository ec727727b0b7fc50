"""A fleet on several machines, connected by Ray core. The only package that imports ray, an optional dependency.

Each machine has an actor (`actor`), which owns the same worker processes as a fleet of that machine alone.
`dispatcher` is the dispatcher's side of them. Between machines go only the bytes of our own JSON documents. Trusted:
who has the fleet's token can run anything on its machines.
"""
