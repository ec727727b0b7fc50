"""Inputs in the host's memory: where they lie, how fast a kernel reads them, and that both ways of timing work.

Run by hand on a machine with a GPU: `pytest -s -m gpu tests/gpu/test_host_inputs.py` prints what was measured.
"""

from __future__ import annotations

import pytest
import torch

from harness import judge
from harness.arena import Arena, make_arena
from harness.judge.grader import Grader
from harness.problem import load
from harness.sandbox import Provider
from harness.submission import Submission
from harness.verdict import Outcome, Verdict
from kernelmark.diagnostics.selftest import PROBLEMS

pytestmark = pytest.mark.gpu

NBYTES = 256 << 20  # of an arena, and of `x` in the benchmark
READS = 10
SLOWER = 4  # the device's own memory is faster by more than this, also than NVLink
KERNELS = {
    "triton": """
import triton
import triton.language as tl


@triton.jit
def kernel(x, b, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, 2 * tl.load(x + i, mask=i < n) + tl.load(b), mask=i < n)


def twice(x, b, y):
    kernel[(triton.cdiv(x.numel(), 4096),)](x, b, y, x.numel(), BLOCK=4096)
""",
    "eager": """
import torch


def twice(x, b, y):
    assert x.is_cuda and b.is_cuda
    torch.add(b, x, alpha=2, out=y)
""",
    # Its graph has a copy from the host's memory.
    "copying": """
def twice(x, b, y):
    y.copy_(x)
    y.mul_(2).add_(b)
""",
}
WRITES = """
def twice(x, b, y):
    x.mul_(2)
    y.copy_(x + b)
"""


def submission(source: str) -> Submission:
    return Submission.of(source, "py", author="tester")


def read_gb_per_s(arena: Arena) -> float:
    """How fast one sum after the other reads an arena."""
    words = arena.bytes.view(torch.int64)
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    words.sum()
    start.record()
    for _ in range(READS):
        words.sum()
    end.record()
    end.synchronize()
    return READS * arena.nbytes / start.elapsed_time(end) / 1e6


def test_the_memory_lies_in_the_host_and_is_read_over_the_bus() -> None:
    from cuda.bindings import driver

    from harness.arena.mapping import check

    torch.ones(1, device="cuda")
    torch.cuda.synchronize()
    free_bytes = torch.cuda.mem_get_info()[0]
    in_host = make_arena("cuda", NBYTES, read_only=True, in_host=True)
    taken_bytes = free_bytes - torch.cuda.mem_get_info()[0]
    on_device = make_arena("cuda", NBYTES, read_only=True)
    kind = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE
    try:
        lies = [driver.CUmemorytype(check(driver.cuPointerGetAttribute(kind, each.bytes.data_ptr()))) for each in
                (in_host, on_device)]  # fmt: skip
        for arena in (in_host, on_device):
            arena.bytes.random_()
        host, device = read_gb_per_s(in_host), read_gb_per_s(on_device)
    finally:
        in_host.close()
        on_device.close()
    print(
        f"256 MiB: {host:.1f} GB/s from the host, {device:.1f} GB/s from the device; {taken_bytes:,} bytes of it taken"
    )
    assert lies == [driver.CUmemorytype.CU_MEMORYTYPE_HOST, driver.CUmemorytype.CU_MEMORYTYPE_DEVICE]
    assert taken_bytes < NBYTES // 4
    assert 1 < host < device / SLOWER


@pytest.mark.parametrize("way", ["replayed", "calls"])
@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_that_reads_it_is_accepted(name: str, way: str, provider: Provider) -> None:
    problem = load(PROBLEMS / "double_from_host")
    with Grader(
        judge.Setup(problem, submission(KERNELS[name]), provider=provider, device="cuda", effort="quick")
    ) as grader:
        verdict: Verdict = grader.grade(alone=True) if way == "replayed" else grader._in_rounds("a test asks for it")
    assert (verdict.outcome, verdict.message) == (Outcome.ACCEPTED, ""), verdict.traceback
    [case] = verdict.benchmarks
    doubts = [f"{doubt.code}: {doubt.text}" for doubt in case.doubts]
    rate = NBYTES / case.score.median_ns
    print(f"{name}, {case.mode}: {case.score.median_ns / 1e6:.2f} ms a call, {rate:.1f} GB/s; doubts: {doubts}")
    assert case.mode == way, doubts
    assert case.roofline is None
    assert 1 < rate < 1000, "no faster than a bus"


def test_one_that_writes_into_it_fails(provider: Provider) -> None:
    problem = load(PROBLEMS / "double_from_host")
    check = judge.check(judge.Setup(problem, submission(WRITES), provider=provider, device="cuda"))
    print(check.message)
    assert check.outcome is Outcome.RUNTIME_ERROR
