"""What a `.cu` calls cudaMalloc and cudaFree for, as the runner compiles it: without a GPU, with memory of our own."""

from __future__ import annotations

import ctypes
import shutil
from pathlib import Path

import pytest

from harness.device import DEVICES
from harness.languages import LANGUAGES
from harness.runner.compiling import compile_source
from harness.wire import commands

pytestmark = pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")

SOURCE = """
extern "C" void* take(int64_t bytes) {
    float* at = nullptr;
    return cudaMalloc(&at, bytes) == cudaSuccess ? at : nullptr;
}
extern "C" void leave(void* at) { cudaFree(at); }
__global__ void on_hopper() { asm volatile("wgmma.fence.sync.aligned;"); }  // ptxas refuses it for plain sm_90
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("HOME", str(home))
        (home / "submission.cu").write_text("#include <cstdint>\n" + SOURCE)
        command = commands.Build(language="cu", symbols=("take", "leave"), architecture=DEVICES["cpu"].architecture())
        loaded = ctypes.CDLL(str(compile_source(command, LANGUAGES["cu"].compiler)[0]))
    loaded.take.restype, loaded.take.argtypes = ctypes.c_void_p, [ctypes.c_int64]
    loaded.leave.restype, loaded.leave.argtypes = None, [ctypes.c_void_p]
    return loaded


def test_memory_comes_from_the_allocator_that_was_set(library: ctypes.CDLL) -> None:
    asked, freed = list[int](), list[int]()
    allocate = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)(
        lambda nbytes, device, stream: asked.append(nbytes) or (0x5000 if nbytes < 1000 else None)
    )
    free = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(lambda at: freed.append(at) or at == 0x5000)
    library.kernelmark_allocate_with(allocate, free)
    try:
        assert library.take(400) == 0x5000
        assert library.take(4000) is None, "there is no memory for it"
        assert asked == [400, 4000]
        library.leave(0x5000)
        library.leave(0x7000)
        assert freed == [0x5000, 0x7000]
    finally:
        library.kernelmark_allocate_with(None, None)


def test_without_an_allocator_the_real_cudamalloc_is_called(library: ctypes.CDLL) -> None:
    if Path("/dev/nvidiactl").exists():
        pytest.skip("with a GPU it would give memory")
    assert library.take(400) is None
