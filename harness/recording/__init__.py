"""Recordings: one call of a submission as data, which can be repeated in a process without the host code.

The CUDA graph of a captured call contains everything that was sent to the device: which functions ran, with which
parameters, in which order. Together with the code images of these functions it can be rebuilt in another process, if
the memory to which it points has the same addresses there (`windows`). `schema` defines the content of a recording, and
`file` its encoding. The runner writes it, so every byte is untrusted: the judge checks it like a frame, and executes
none of it.

This package uses only the standard library.
"""
