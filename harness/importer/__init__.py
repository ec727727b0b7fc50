"""The sandboxed process that runs a reference of another project once, and describes its tensors.

`kernelmark import` starts one for each problem, by path. Untrusted once it has the reference:
`kernelmark.interop.importing.answer` checks what it answers.
"""
