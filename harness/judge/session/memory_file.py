"""Bytes handed over as a file descriptor. Trusted."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from harness.errors import SandboxError


@contextlib.contextmanager
def memory_file(content: bytes = b"") -> Iterator[int]:
    """A descriptor for the content; whoever is given it can also write.

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
