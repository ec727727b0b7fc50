"""A fleet on several machines, connected by Ray core. The only package that imports ray, an optional dependency.

On each machine an actor (`actor`) owns the same worker processes as a fleet of that machine alone. `dispatcher` is the
dispatcher's side of the connection. Machines exchange only the bytes of our own JSON documents. Trusted: anyone with
the fleet's token can run any program on its machines.
"""
