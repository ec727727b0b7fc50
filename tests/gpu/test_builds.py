"""A CUDA extension is built in a sandbox without the GPU, and its runner finds nothing to compile."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.files.kept import Kept
from harness.sandbox import Provider
from harness.verdict import Outcome
from kernelmark.diagnostics.selftest import HERE
from tests.integration.test_builds import PROBLEM, Launches, graded_in

pytestmark = pytest.mark.gpu
SOURCE = (HERE / "honest/inline_default_stream/submission.py").read_text()
# What was unpacked has whole seconds. A sandbox that builds has no GPU, and would end here if it had one.
SHOWS = """
from pathlib import Path
if "KERNELMARK_BUILDS" in os.environ and Path("/dev/nvidiactl").exists():
    os._exit(3)
made = list((Path(os.environ["XDG_CACHE_HOME"]) / "torch_extensions").rglob("*.so"))
print(f"compiled here: {[path.name for path in made if path.stat().st_mtime_ns % 10**9]} of {len(made)}", flush=True)
"""


def test_an_extension_is_built_once_without_the_gpu(provider: Provider, tmp_path: Path) -> None:
    launches, kept = Launches(provider), Kept(tmp_path / "kept", 1 << 30)
    for _ in range(2):
        verdict = graded_in(launches, PROBLEM, SOURCE + SHOWS, kept=kept, device="cuda")
        assert (verdict.outcome, verdict.timing) == (Outcome.ACCEPTED, "replayed"), verdict.message
        assert "compiled here: [] of 1" in verdict.log
    assert launches.builds == 1
    assert len(kept.sizes()) == 1


def test_a_cu_is_built_once_and_one_that_does_not_compile_says_why(provider: Provider, tmp_path: Path) -> None:
    launches, kept = Launches(provider), Kept(tmp_path / "kept", 1 << 30)
    source = """#include <cstdint>
__global__ void each(const float* x, float* y, int64_t n) {
    int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}
extern "C" void twice(const float* x, float* y, int64_t n, cudaStream_t stream) {
    each<<<unsigned((n + 255) / 256), 256>>>(x, y, n);  // no stream: nvcc is told to use the thread's own
}
"""
    for _ in range(2):
        verdict = graded_in(launches, PROBLEM, source, "cu", kept=kept, device="cuda")
        assert (verdict.outcome, verdict.timing) == (Outcome.ACCEPTED, "replayed"), verdict.message
    assert launches.builds == 1
    failed = graded_in(launches, PROBLEM, source.replace("y, n);", "y, m);"), "cu", kept=kept, device="cuda")
    assert failed.outcome is Outcome.COMPILE_ERROR
    assert '"m" is undefined' in failed.message
