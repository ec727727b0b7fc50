"""The untrusted side: runs in a sandbox, imports the submission, calls it when told and says "done".

Started by path, never imported by the judge. It holds torch, triton, the standard library, `harness.wire`,
`harness.arena` and the submission; never a reference, an expected output, or the seed of a round that has not ended.
"""
