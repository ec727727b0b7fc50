"""Shares bytes with another process by a file descriptor. Trusted."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from harness.errors import SandboxError


@contextlib.contextmanager
def memory_file(content: bytes = b"") -> Iterator[int]:
    """Yield a descriptor of a file with this content. A process that receives it can also write.

    Raises:
        SandboxError: out of memory or descriptors.
    """
    try:
        file = os.fdopen(os.memfd_create("shared", os.MFD_CLOEXEC), "wb")
        file.write(content)
        file.flush()
    except OSError as error:
        raise SandboxError(f"{len(content):,} bytes cannot be handed over ({error})", "free some memory") from error
    with file:
        yield file.fileno()


def content_of(file: int, nbytes: int) -> bytes:
    """Copy the first `nbytes` bytes of a file, or all of them if it is shorter. Later writes do not change the copy."""
    content = bytearray()
    while len(content) < nbytes and (chunk := os.pread(file, nbytes - len(content), len(content))):
        content += chunk
    return bytes(content)
