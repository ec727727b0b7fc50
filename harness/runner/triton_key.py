"""The hash of all of Triton's files, which every process computes before it first compiles or finds a kernel.

It takes half a second, and helpers are many processes: so the first one computes it before the others are forked. It is
left beside the compiled kernels, so that a runner that unpacks what a build has left need not compute it at all. A
wrong one, which only the submission itself could leave, makes its kernels be compiled again. Untrusted, as all of the
runner.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

_NAME = "triton_key"
_MOST = 1 << 20  # characters


def prepare() -> None:
    """Compute it, or take the one that is there; does nothing in a process that has not imported Triton."""
    if "triton" not in sys.modules:
        return
    with suppress(Exception):  # another version of Triton: it does this by itself, later
        from triton.runtime import cache

        place = Path(os.environ["TRITON_CACHE_DIR"], _NAME)
        if place.is_file():
            left = place.read_text()[:_MOST]
            cache.triton_key = lambda: left
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(cache.triton_key())
        import triton.experimental.gluon  # noqa: F401  # which a first launch imports
