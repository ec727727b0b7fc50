"""A fleet on several machines, connected by Ray core. The only package that imports ray, an optional dependency.

Each device has an actor (`actor`) on its machine, which owns the same worker process as a fleet of one machine.
`dispatcher` is the dispatcher's side of them. Between machines go only the bytes of our own JSON documents. Trusted:
who has the fleet's token can run anything on its machines.
"""
