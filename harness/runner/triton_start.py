"""Prepares what Triton needs in every process before its first kernel.

This is the hash of its files, which takes half a second, and the library through which it launches kernels, which takes
0.7 s of gcc.

A process that is forked first of all does this while the runner imports torch. Both results go into Triton's cache,
where the runner and its helpers find them. A wrong hash, which only the submission itself could store, makes its
kernels be compiled again, and Triton finds the library by a hash of its source. Whatever fails or is late, Triton does
by itself. Untrusted, like all of the runner.

`python -I triton_start.py FOLDER` compiles the library while an image is built, where there is no driver. FOLDER
becomes a cache of Triton's, which runners copy into their own (`bring`).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

_NAME = "triton_key"
_MAX_CHARACTERS = 1 << 20


def bring(compiled: Path) -> None:
    """Copy the library into the cache, if the image has it."""
    with suppress(OSError):
        shutil.copytree(compiled, os.environ["TRITON_CACHE_DIR"], dirs_exist_ok=True)


def begin() -> None:
    """Prepare both in a process of their own. It must be forked before this process has threads or connections."""
    if (child := os.fork()) != 0:
        os.waitpid(child, 0)
        return
    if os.fork() == 0:  # the sandbox's first process adopts it, so the runner need not wait for it
        with suppress(BaseException):
            import triton  # noqa: F401

            hashing = threading.Thread(target=prepare)
            hashing.start()
            compile_library()
            hashing.join()
    os._exit(0)


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
            unfinished = place.with_name(f"{_NAME}.{os.getpid()}")
            unfinished.write_text(cache.triton_key())
            unfinished.replace(place)
        import triton.experimental.gluon  # noqa: F401  # the first launch would import it


def link_without_driver(stub: str) -> None:
    """Let Triton link what it compiles to a stub of the driver, which is written into the folder `stub`."""
    from triton.backends.nvidia.driver import dirname

    # The linker is content with functions of the same names; the loader takes the driver's.
    used = Path(dirname, "driver.c").read_text() + Path(dirname, "driver.py").read_text()
    source = "".join(f"void {name}(void) {{}}\n" for name in sorted(set(re.findall(r"\bcu[A-Z]\w+", used))))
    command = ["gcc", "-shared", "-Wl,-soname,libcuda.so.1", "-x", "c", "-", "-o", f"{stub}/libcuda.so.1"]
    subprocess.run(command, input=source, text=True, check=True)
    os.environ["TRITON_LIBCUDA_PATH"] = stub


def compile_library() -> None:
    """Compile the library into Triton's cache, unless it is there."""
    with tempfile.TemporaryDirectory() as stub:
        link_without_driver(stub)
        from triton.backends.nvidia.driver import CudaUtils

        with suppress(ImportError):  # it loads what it has compiled, which needs the driver
            CudaUtils()


def main(folder: Path) -> None:
    os.environ["TRITON_CACHE_DIR"] = str(folder)
    compile_library()
    if not list(folder.glob("*/cuda_utils*.so")):
        sys.exit(f"{sys.argv[0]}: Triton compiled nothing")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
