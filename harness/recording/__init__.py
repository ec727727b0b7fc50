"""One call of a kernel as data: what it takes to make the call again in a process that has none of its host code.

A CUDA graph of one captured call holds all that the device was told: which functions ran, with which parameters, in
which order. Together with the code images of those functions it can be built anew elsewhere, as long as the memory that
it points into lies at the same addresses there (`windows`). `schema` says what a recording may hold, `file` how it
travels. The runner writes it, and so every byte of it is hostile: the judge reads it as it reads frames, and executes
nothing of it.

Standard library only.
"""

from harness.recording.file import MAX_FILE_BYTES, Packed, pack, unpack
from harness.recording.schema import (
    MAX_SCRATCH_BYTES,
    Blob,
    Edge,
    Empty,
    Image,
    Kernel,
    Memcpy,
    Memset,
    Node,
    Recording,
    Variable,
)

__all__ = [
    "MAX_FILE_BYTES",
    "MAX_SCRATCH_BYTES",
    "Blob",
    "Edge",
    "Empty",
    "Image",
    "Kernel",
    "Memcpy",
    "Memset",
    "Node",
    "Packed",
    "Recording",
    "Variable",
    "pack",
    "unpack",
]
