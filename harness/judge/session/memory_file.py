"""Bytes that another process gets as a file descriptor. Trusted."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from harness.errors import SandboxError


@contextlib.contextmanager
def memory_file(content: bytes = b"") -> Iterator[int]:
    """A descriptor for the content; a process that gets it can also write.

    Raises:
        SandboxError: out of memory or descriptors.
    """
    try:
        file = os.fdopen(os.memfd_create("handed over", os.MFD_CLOEXEC), "wb")
        file.write(content)
        file.flush()
    except OSError as error:
        raise SandboxError(f"{len(content):,} bytes cannot be handed over ({error})", "free some memory") from error
    with file:
        yield file.fileno()


def content_of(file: int, nbytes: int) -> bytes:
    """A copy of as much of the file, whatever its writer does later; short if the file is."""
    content = bytearray()
    while len(content) < nbytes and (chunk := os.pread(file, nbytes - len(content), len(content))):
        content += chunk
    return bytes(content)
