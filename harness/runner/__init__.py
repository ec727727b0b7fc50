"""The untrusted side: runs in a sandbox, imports the submission, calls it on command and reports back.

Started by path, never imported by the judge. It contains torch, triton, the standard library, `harness.wire`,
`harness.arena` and the submission; never a reference, an expected output, or the seed of a round that has not ended.
"""
