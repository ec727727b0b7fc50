"""A recording of one call of one kernel, as small as one can be."""

from __future__ import annotations

from harness.recording.schema import Blob, Image, Kernel, Recording

BLOBS = b"\x7fELF image" + b"parameters"
KERNEL = Kernel(
    image=0,
    name="twice",
    grid=(4, 1, 1),
    block=(256, 1, 1),
    cluster=(1, 1, 1),
    shared_bytes=0,
    cooperative=False,
    priority=0,
    parameters=Blob(10, 10),
)
CALL = Recording(
    images=(Image(code=Blob(0, 10), variables=()),),
    nodes=(KERNEL,),
    edges=(),
    scratch_bytes=0,
    returned=(),
)
