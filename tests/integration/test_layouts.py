"""Kernels on tensors with strides, of one number, of none, and of types that torch barely knows, in sandboxes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from harness.judge.correctness.graded_case import FailedTest
from harness.problem import Problem
from harness.verdict import Outcome
from kernelmark.authoring.debugging import dump
from tests.grading import checked, submission, written

PROBLEM = """
title = "Twice the values, rows apart"
entry = "apart"
parameters = ["rows", "cols", "pitch"]

[[tensors]]
name = "x"
role = "input"
shape = ["rows", "cols"]
strides = ["1", "rows + 1"]
dtype = "float32"

[[tensors]]
name = "y"
role = "output"
shape = ["rows", "cols"]
strides = ["pitch", "1"]
dtype = "float32"

[[tensors]]
name = "total"
role = "inout"
shape = []
dtype = "float32"

[[tensors]]
name = "none"
role = "input"
shape = ["rows", "cols - cols"]
dtype = "float32"

[[tensors]]
name = "left_out"
role = "output"
shape = ["rows - rows"]
dtype = "complex64"

[[tensors]]
name = "waves"
role = "inout"
shape = ["rows"]
strides = ["2"]
dtype = "complex64"

[[tensors]]
name = "packed"
role = "inout"
shape = ["cols"]
dtype = "float4_e2m1fn_x2"

[[tensors]]
name = "scales"
role = "inout"
shape = ["cols"]
dtype = "float8_e8m0fnu"
fill = { kind = "powers", low = -5, high = 5 }

[[tensors]]
name = "counts"
role = "inout"
shape = ["cols"]
dtype = "uint16"
fill = { kind = "integers", low = 0, high = 65534 }

[cost]
bytes = "8 * rows * cols"
flops = "rows * cols"

[[tests]]
name = "primes"
params = { rows = 61, cols = 37, pitch = 64 }

[[tests]]
name = "one row"
params = { rows = 1, cols = 37, pitch = 37 }

[[benchmarks]]
name = "small"
params = { rows = 64, cols = 128, pitch = 160 }

[[tests]]
name = "hidden"
params = { rows = 5, cols = 9, pitch = 10 }
hidden = true
"""
REFERENCE = """
import torch

def reference(x, total, none, waves, packed, scales, counts):
    assert none.shape[1] == 0 and total.shape == () and waves.stride() == (2,)
    swapped = packed.view(torch.uint8)
    swapped = (swapped << 4 | swapped >> 4).view(packed.dtype)
    return (
        2 * x, total + x.sum(), none.new_empty(0).to(waves.dtype), waves * 1j, swapped, 2 * scales.to(x.dtype),
        (counts.int() + 1).to(torch.uint16),
    )
"""
RIGHT = """
import torch

def apart(x, y, total, none, left_out, waves, packed, scales, counts):
    assert y.stride(1) == 1 and x.stride(0) == 1 and waves.stride() == (2,)
    assert none.shape == (len(x), 0) and left_out.shape == (0,) and total.shape == ()
    torch.mul(x, 2, out=y)
    total += x.sum()
    waves.mul_(1j)
    bits = packed.view(torch.uint8)
    bits.copy_(bits << 4 | bits >> 4)
    scales.view(torch.uint8).add_(1)
    counts.copy_(counts.int() + 1)
"""
CPP = """
#include <complex>
#include <cstdint>

extern "C" void apart(const float* x, float* y, float* total, const float* none, std::complex<float>* left_out,
                      std::complex<float>* waves, uint8_t* packed, uint8_t* scales, uint16_t* counts,
                      int64_t rows, int64_t cols, int64_t pitch) {
    if (!none || !left_out || none == x) return;
    double sum = 0;
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < cols; ++j) {
            const float value = x[i + j * (rows + 1)];
            y[i * pitch + j] = 2 * value;
            sum += value;
        }
    *total += float(sum);
    for (int64_t i = 0; i < rows; ++i) waves[2 * i] *= std::complex<float>(0, 1);
    for (int64_t j = 0; j < cols; ++j) {
        packed[j] = uint8_t(packed[j] << 4 | packed[j] >> 4);
        scales[j] += 1;
        counts[j] += 1;
    }
}
"""
# What makes one element of each output wrong.
WRONG = {
    "y": "y[-1, -1] += 1",
    "total": "total += 1",
    "waves": "waves[-1] += 1j",
    "packed": "packed.view(torch.uint8)[:20] ^= 255",
    "scales": "scales.view(torch.uint8)[3] += 1",
    "counts": "counts[5:6].copy_(counts[5:6].int() ^ 1)",
}
PADDING = "y.as_strided((1,), (1,), y.shape[1]).zero_() if y.stride(0) > y.shape[1] else None"


@pytest.fixture(scope="module")
def problem(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    return written(tmp_path_factory.mktemp("problems") / "apart", PROBLEM, REFERENCE)


@pytest.mark.bwrap
@pytest.mark.parametrize(("source", "language"), [(RIGHT, "py"), (CPP, "cpp")], ids=["py", "cpp"])
def test_an_honest_kernel_is_accepted(problem: Problem, source: str, language: str) -> None:
    found = checked(problem, submission(source, language), "bwrap")
    assert found.outcome is Outcome.ACCEPTED, found.message
    assert len(found.tests) == 3


def test_a_write_between_the_elements_is_refused(problem: Problem) -> None:
    found = checked(problem, RIGHT + f"    {PADDING}\n")
    assert found.outcome is Outcome.RUNTIME_ERROR
    assert found.message == "test primes: wrote 4 bytes outside its outputs, the first between the elements of `y`"


def test_every_wrong_output_is_told_and_its_tensors_can_be_kept(problem: Problem, tmp_path: Path) -> None:
    kept: list[FailedTest] = []
    source = RIGHT + "".join(f"    {wrong}\n" for wrong in WRONG.values())
    found = checked(problem, source, on_failure=kept.append)
    assert found.outcome is Outcome.WRONG_ANSWER
    assert found.message.startswith("test primes: y: ")
    assert [output.output for output in found.tests[0].outputs if not output.correct] == [*WRONG]
    again = torch.load(dump(kept[0], tmp_path), weights_only=True)
    assert again["inputs"]["none"].shape == (61, 0)
    assert again["inputs"]["total"].shape == ()
    assert again["outputs"]["packed"].dtype is torch.float4_e2m1fn_x2
    assert again["expected"]["waves"].dtype is torch.complex128
