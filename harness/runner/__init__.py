"""The untrusted process: it runs in a sandbox, imports the submission, calls it on command, and reports back.

The judge starts it by path, and never imports it. The process contains torch, triton, the standard library,
`harness.wire`, `harness.arena` and the submission; never a reference, an expected output, or the seed of a round that
has not ended.
"""
