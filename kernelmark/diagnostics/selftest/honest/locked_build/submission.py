# C++ that several processes could build at once: a lock on a file lets one of them do it, as torch.compile does.
import ctypes
import os
import subprocess
from pathlib import Path

from filelock import FileLock

SOURCE = r"""
extern "C" void twice(const float *x, float *y, long n) {
    for (long i = 0; i < n; ++i) y[i] = 2.0f * x[i];
}
"""
library = Path(os.environ["TMPDIR"]) / "twice.so"
with FileLock(f"{library}.lock"):
    if not library.exists():
        source = library.with_suffix(".cpp")
        source.write_text(SOURCE)
        subprocess.check_call(["g++", "-O3", "-march=native", "-shared", "-fPIC", "-o", library, source])
_twice = ctypes.CDLL(str(library)).twice
_twice.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long]


def twice(x, y):
    _twice(x.data_ptr(), y.data_ptr(), x.numel())
