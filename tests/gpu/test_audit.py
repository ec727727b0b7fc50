"""The real tools around the real runner in the sandbox: each catches the fault it is for, and nothing honest."""

from __future__ import annotations

import re
from functools import cache, partial

import pytest

from harness.problem import load
from harness.profiling import nsight, sanitizer
from harness.profiling.sanitizer import ToolReport
from harness.sandbox import choose
from harness.submission import Submission
from kernelmark.diagnostics.selftest import PROBLEMS
from kernelmark.project.choice import providers
from kernelmark.project.settings import Settings

pytestmark = pytest.mark.gpu

DOUBLE = PROBLEMS / "double"
LAUNCH = """
#include <cstdint>
{kernel}
extern "C" void twice(const float *x, float *y, int64_t n, cudaStream_t stream) {{
  {before}
  kernel<<<(n + 255) / 256, 256, 0, stream>>>(x, y, {scratch} n);
}}
"""
HONEST = """
__global__ void kernel(const float *x, float *y, int64_t n) {
  int64_t i = blockIdx.x * 256l + threadIdx.x;
  if (i < n) y[i] = 2 * x[i];
}
"""
# The answers of all three are right; what is read besides stays, being volatile, and does not count.
PAST_THE_END = HONEST.replace("y[i] = 2 * x[i];", "y[i] = 2 * x[i] + 0 * (((volatile const float *)x)[i + 1] > 1e30f);")
RACE = """
__global__ void kernel(const float *x, float *y, int64_t n) {
  __shared__ float row[256];
  int64_t i = blockIdx.x * 256l + threadIdx.x;
  row[threadIdx.x] = i < n ? x[i] : 0;
  float other = ((volatile float *)row)[255 - threadIdx.x];
  if (i < n) y[i] = 2 * x[i] + 0 * (other > 1e30f);
}
"""
NEVER_WRITTEN = """
__global__ void kernel(const float *x, float *y, const float *scratch, int64_t n) {
  int64_t i = blockIdx.x * 256l + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] + 0 * (((volatile const float *)scratch)[i % 64] > 1e30f);
}
"""
TRITON = """
import triton
import triton.language as tl

@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)

def twice(x, y):
    kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
"""


def cuda(kernel: str) -> Submission:
    scratch = "scratch," if "scratch" in kernel else ""
    before = "static float *scratch = nullptr; if (!scratch) cudaMalloc(&scratch, 256);" if scratch else ""
    source = LAUNCH.format(kernel=kernel, before=before, scratch=scratch)
    return Submission.of(source.encode(), "cu", author="ada", name="twice.cu")


SUBMISSIONS = {
    "honest": cuda(HONEST),
    "past the end": cuda(PAST_THE_END),
    "race": cuda(RACE),
    "never written": cuda(NEVER_WRITTEN),
    "triton": Submission.of(TRITON.encode(), "py", author="ada", name="twice.py"),
}


@cache
def said(which: str, name: str) -> ToolReport:
    settings = Settings.load()
    provider = choose(settings.sandbox, providers(settings))
    asked = nsight.audit if name == "ncu" else partial(sanitizer.audit, sanitizer.checks()[name])
    return asked(load(DOUBLE), SUBMISSIONS[which], provider=provider, device="cuda")


@pytest.mark.parametrize("name", ["memcheck", "racecheck", "initcheck"])
@pytest.mark.parametrize("which", ["honest", "triton"])
def test_honest_kernels_are_clean(which: str, name: str) -> None:
    assert said(which, name) == ToolReport("clean", "3 of 3 visible tests: no errors")


@pytest.mark.parametrize(
    ("which", "name", "word"),
    [
        ("past the end", "memcheck", "Invalid __global__ read"),
        ("race", "racecheck", "Race reported"),
        ("never written", "initcheck", "Uninitialized"),
    ],
)
def test_each_fault_is_caught_by_the_tool_for_it(which: str, name: str, word: str) -> None:
    found = said(which, name)
    assert found.state == "found", found
    assert word in found.text


@pytest.mark.parametrize("which", ["honest", "triton"])
def test_a_profile_tells_the_kernel_its_time_and_its_use_of_the_device(which: str) -> None:
    found = said(which, "ncu")
    assert found.state == "clean", found
    # In containers version 2026.2 prints NaN for the shares, which are left out then.
    share = r"%s (\d+) %% of its peak, "
    shares = f"({share % 'memory'})?({share % 'arithmetic'})?"
    match = re.fullmatch(rf"a million: 1 kernel: kernel.* ([\d.]+) µs, {shares}(\d+) register.*", found.text)
    assert match is not None, found
    assert 1 < float(match[1]) < 100
    assert all(share is None or 0 <= int(share) <= 100 for share in (match[3], match[5]))
    assert 8 <= int(match[6]) <= 255
