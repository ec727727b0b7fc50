"""Compiles, while the image is built, the library through which Triton launches kernels.

Usage: tools/triton_helper.py FOLDER      (it becomes a cache of Triton's; the runner copies it into its own)

Else every sandbox compiles it at its first launch, which takes 0.7 s. Triton finds it by a hash of its source: one of
another version is never used.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path


def main(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as stub:
        os.environ |= {"TRITON_CACHE_DIR": str(folder), "TRITON_LIBCUDA_PATH": stub}
        from triton.backends.nvidia.driver import CudaUtils, dirname

        # An image holds no driver. The linker is content with functions of the same names, and the loader takes the
        # driver's.
        names = sorted(set(re.findall(r"\bcu[A-Z]\w+", Path(dirname, "driver.c").read_text())))
        source = "".join(f"void {name}(void) {{}}\n" for name in names)
        command = ["gcc", "-shared", "-Wl,-soname,libcuda.so.1", "-x", "c", "-", "-o", f"{stub}/libcuda.so.1"]
        subprocess.run(command, input=source, text=True, check=True)
        with contextlib.suppress(ImportError):  # it loads what it has compiled, which needs the driver
            CudaUtils()
    if not list(folder.glob("*/cuda_utils*.so")):
        sys.exit(f"{sys.argv[0]}: Triton compiled nothing")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
