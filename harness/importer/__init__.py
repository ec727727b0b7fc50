"""The sandboxed process that runs a reference of another project once, and describes its tensors.

`kernelmark import` starts one for each problem, by path. It is untrusted once it has the reference, so
`kernelmark.interop.importing.answer` checks its answer.
"""
