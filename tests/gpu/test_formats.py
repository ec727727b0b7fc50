"""What a problem can state beyond plain tensors, on a GPU: strides, dtypes, generated, optional and several inputs.

Run by hand on a machine with a GPU: `pytest -s -m gpu tests/gpu/test_formats.py` prints what was measured.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from harness import judge
from harness.judge.grader import Grader
from harness.problem import Problem, load
from harness.sandbox import Provider
from harness.submission import Submission
from harness.verdict import Check, Outcome
from tests.integration import (
    test_generated_inputs,
    test_layouts,
    test_layouts_together,
    test_optional_inputs,
)

pytestmark = pytest.mark.gpu

APART = """
#include <cuComplex.h>
#include <cstdint>

__global__ void kernel(const float* x, float* y, float* total, cuFloatComplex* waves, uint8_t* packed, uint8_t* scales,
                       uint16_t* counts, int64_t rows, int64_t cols, int64_t pitch) {
    __shared__ double all;
    all = 0;
    __syncthreads();
    for (int64_t i = threadIdx.x; i < rows; i += blockDim.x) {
        double sum = 0;
        for (int64_t j = 0; j < cols; ++j) {
            const float value = x[i + j * (rows + 1)];
            y[i * pitch + j] = 2 * value;
            sum += value;
        }
        atomicAdd(&all, sum);
        waves[2 * i] = cuCmulf(waves[2 * i], make_cuFloatComplex(0, 1));
    }
    for (int64_t j = threadIdx.x; j < cols; j += blockDim.x) {
        packed[j] = packed[j] << 4 | packed[j] >> 4;
        scales[j] += 1;
        counts[j] += 1;
    }
    __syncthreads();
    if (threadIdx.x == 0) *total += float(all);
}

extern "C" void apart(const float* x, float* y, float* total, const float* none, cuFloatComplex* left_out,
                      cuFloatComplex* waves, uint8_t* packed, uint8_t* scales, uint16_t* counts,
                      int64_t rows, int64_t cols, int64_t pitch, cudaStream_t stream) {
    if (!none || !left_out || none == x) return;
    kernel<<<1, 256, 0, stream>>>(x, y, total, waves, packed, scales, counts, rows, cols, pitch);
}
"""
WIDE = """
title = "Types of 32, 8 and 128 bits"
entry = "wide"
parameters = ["n"]
tensors = [
    { name = "counts", role = "inout", shape = ["n"], dtype = "uint32", fill = { kind = "integers", low = 0, high = 1000 } },
    { name = "halves", role = "inout", shape = ["n"], dtype = "float8_e5m2" },
    { name = "waves", role = "inout", shape = ["n"], dtype = "complex128" },
]
cost = { bytes = "42 * n", flops = "n" }
tests = [{ name = "prime", params = { n = 1009 } }]
benchmarks = [{ name = "many", params = { n = 1_048_576 } }]
"""  # noqa: E501  # one tensor a line
WIDE_REFERENCE = """
import torch

def reference(counts, halves, waves):
    return (counts.long() + 1).to(torch.uint32), 2 * halves.to(torch.float64), waves * 1j
"""
WIDE_KERNEL = """
def wide(counts, halves, waves):
    counts.copy_(counts.long() + 1)
    halves.copy_(2 * halves.float())
    waves.mul_(1j)
"""


class Case(NamedTuple):
    made: Callable[[Path], Problem]
    source: str
    language: str = "py"


def folder(name: str, toml: str, reference: str) -> Callable[[Path], Problem]:
    def made(path: Path) -> Problem:
        directory = path / name
        directory.mkdir()
        (directory / "problem.toml").write_text(toml)
        (directory / "reference.py").write_text(reference)
        return load(directory)

    return made


def optional(style: str) -> Case:
    kernel = test_optional_inputs.KERNELS[style]
    return Case(lambda path: test_optional_inputs.made(path, kernel.call), kernel.source)


APARTS = folder("apart", test_layouts.PROBLEM, test_layouts.REFERENCE)
RETURNS = test_layouts_together.RETURNS + test_layouts_together.RESULT
CASES = {
    "strides, 0-d, empty, complex64, float4, e8m0, uint16": Case(APARTS, test_layouts.RIGHT),
    "the same in CUDA": Case(APARTS, APART, "cu"),
    "returned, generated": Case(test_layouts_together.own, RETURNS),
    "returned, filled": Case(lambda path: test_layouts_together.own(path, generated=False), RETURNS),
    "generated and inout": Case(
        folder("gather_add", test_generated_inputs.TOML, test_generated_inputs.REFERENCE),
        test_generated_inputs.HONEST,
    ),
    "uint32, e5m2, complex128": Case(folder("wide", WIDE, WIDE_REFERENCE), WIDE_KERNEL),
    **{f"optional inputs, {style}": optional(style) for style in ("writes", "returns", "module", "tree")},
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_accepted_and_replayed(name: str, provider: Provider, tmp_path: Path) -> None:
    case = CASES[name]
    submission = Submission.of(case.source, case.language, author="tester")
    with Grader(
        judge.Setup(case.made(tmp_path), submission, provider=provider, device="cuda", effort="quick")
    ) as grader:
        verdict = grader.grade(alone=True)
    assert (verdict.outcome, verdict.message) == (Outcome.ACCEPTED, ""), verdict.traceback
    for timed in verdict.benchmarks:
        doubts = [f"{doubt.code}: {doubt.text}" for doubt in timed.doubts]
        print(f"{name}, {timed.name}: {timed.mode}, {timed.score.median_ns / 1e3:.2f} µs a call; doubts: {doubts}")
        assert timed.mode == "replayed", doubts


def checked(problem: Problem, source: str, provider: Provider) -> Check:
    submission = Submission.of(source, "py", author="tester")
    return judge.check(judge.Setup(problem, submission, provider=provider, device="cuda"))


def test_every_wrong_result_is_refused(provider: Provider, tmp_path: Path) -> None:
    source = test_layouts_together.RETURNS + test_layouts_together.WRONG + test_layouts_together.RESULT
    found = checked(test_layouts_together.own(tmp_path), source, provider)
    assert found.outcome is Outcome.WRONG_ANSWER, found.message
    assert [output.output for output in found.tests[0].outputs if not output.correct] == test_layouts_together.OUTPUTS


@pytest.mark.parametrize("body", test_generated_inputs.HOSTILE)
def test_a_kernel_that_changes_generated_inputs_or_ignores_them_is_refused(
    body: str, provider: Provider, tmp_path: Path
) -> None:
    problem, source = CASES["generated and inout"].made(tmp_path), f"def gather_add(x, order, y):\n    {body}\n"
    found = checked(problem, source, provider)
    assert found.outcome in (Outcome.RUNTIME_ERROR, Outcome.WRONG_ANSWER), found.message
    print(f"{body}: {found.message}")
