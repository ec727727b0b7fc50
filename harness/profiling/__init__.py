"""A submission run to be looked at: under NVIDIA's tools, or for what its own process reports of its time and its code.

The tools run in the submission's sandbox, so that a submission can forge all that they say. It is read from hostile
bytes and drawn for people, and decides nothing. `torch_profile`, `nsight`, `sanitizer` and `code` ask, and `watch`
starts the sandboxes.
`memory`, `stacks` and `flame_graph` read and draw it, with nothing but the standard library and `harness.wire.checks`.
"""
