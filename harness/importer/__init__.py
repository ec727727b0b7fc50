"""The sandboxed process that runs a reference in somebody else's form once, and tells the sizes of its tensors.

`kernelmark import` starts one for each problem, by path. Untrusted once it has the reference:
`kernelmark.interop.importing.answer` checks what it answers.
"""
