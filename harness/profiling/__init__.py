"""Profiles and inspects a submission: with NVIDIA's tools, or by what its own process reports of its time and code.

The tools run in the submission's sandbox, so a submission can forge everything they report. Their output is treated as
hostile bytes, displayed for people, and never affects a verdict. `torch_profile`, `nsight`, `sanitizer`, `code` and
`compilation` collect reports, in sandboxes that `watch` starts. `memory`, `stacks` and `flame_graph` parse and draw
them, with nothing but the standard library and `harness.wire.checks`.
"""
