# C, compiled at the import and called through ctypes.
import ctypes
import subprocess
import tempfile
from pathlib import Path

SOURCE = r"""
void scale(const float *restrict x, float *restrict y, long n, float factor) {
    #pragma omp parallel for simd
    for (long i = 0; i < n; ++i) y[i] = factor * x[i];
}
"""
folder = Path(tempfile.mkdtemp())
(folder / "scale.c").write_text(SOURCE)
FLAGS = ["-O3", "-march=native", "-fopenmp", "-shared", "-fPIC"]
subprocess.check_call(["gcc", *FLAGS, "-o", "scale.so", "scale.c"], cwd=folder)
_scale = ctypes.CDLL(str(folder / "scale.so")).scale
_scale.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long, ctypes.c_float]


def twice(x, y):
    _scale(x.data_ptr(), y.data_ptr(), x.numel(), 2.0)
