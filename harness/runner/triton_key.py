"""Caches the hash of Triton's files, which every process computes before it first compiles or looks up a kernel.

Computing it takes half a second, and there are many helper processes, so the first helper computes it before it forks
the others. The hash is stored next to the compiled kernels, so that a runner that unpacks them need not compute it. A
wrong hash, which only the submission itself could store, makes its kernels be compiled again. Untrusted, like all of
the runner.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

_NAME = "triton_key"
_MAX_CHARACTERS = 1 << 20


def prepare() -> None:
    """Compute the hash, or use the stored one; does nothing in a process that has not imported Triton."""
    if "triton" not in sys.modules:
        return
    with suppress(Exception):  # with another version, Triton computes the hash later
        from triton.runtime import cache

        place = Path(os.environ["TRITON_CACHE_DIR"], _NAME)
        if place.is_file():
            stored = place.read_text()[:_MAX_CHARACTERS]
            cache.triton_key = lambda: stored
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(cache.triton_key())
        import triton.experimental.gluon  # noqa: F401  # the first launch would import it
