"""What a profile of a submission says: where its time went, read from hostile bytes and drawn for people.

The profiler runs in the submission's sandbox, so that a submission can forge all of it. It is for people to look at
and decides nothing. `torch_profile` and `code` run the sandboxes, and `artefacts` fetches what they offer. `stacks` and
`flame_graph` read and draw call stacks, with nothing but the standard library and `harness.wire.checks`.
"""
