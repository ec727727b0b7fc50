"""What a profile of a submission says: where its time went, read from hostile bytes and drawn for people.

The profiler runs in the submission's sandbox, so that a submission can forge all of it. It is for people to look at
and decides nothing. `stacks` reads the text, `flame_graph` draws it. Standard library and `harness.wire.checks` only.
"""
