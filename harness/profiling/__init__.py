"""What a profile of a submission says: where its time went, read from hostile bytes and drawn for people.

The profilers run in the submission's sandbox, so that a submission can forge all of it. It is for people to look at
and decides nothing. `torch_profile`, `nsight` and `code` start the sandboxes, by way of `harness.audit.watch`.
`memory`, `stacks` and `flame_graph` read and draw it, with nothing but the standard library and `harness.wire.checks`.
"""
