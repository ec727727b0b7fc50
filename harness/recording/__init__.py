"""One call of a kernel as data: all that is needed to repeat it in a process without its host code.

A CUDA graph of one captured call holds everything that was sent to the device: which functions ran, with which
parameters, in which order. Together with the code images of those functions it can be rebuilt in another process, if
the memory that it points into is at the same addresses there (`windows`). `schema` says what a recording may hold,
`file` how it is encoded. The runner writes it, so every byte is untrusted: the judge checks it like a frame, and
executes none of it.

Standard library only.
"""
