"""Inputs that some cases lack: None in Python, a null pointer in C; a kernel that never looks at them is refused."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest
import torch

from harness.problem import Problem
from harness.submission import Submission
from harness.verdict import Outcome
from tests.command import kernelmark
from tests.grading import checked, graded, submission, written

TOML = """
title = "Double, with a bias and further terms where the case has them"
entry = "twice"
parameters = ["rows", "cols", "has_bias", "has_terms"]
tensors = [
    { name = "x", role = "input", shape = ["rows", "cols"], dtype = "float32" },
    { name = "bias", role = "input", shape = ["cols"], dtype = "float32", fill = { kind = "generated" },
      present = "has_bias" },
    { name = "terms", role = "input", count = 2, shape = ["rows", "cols"], dtype = "float32", present = "has_terms" },
    { name = "y", role = "output", shape = ["rows", "cols"], dtype = "float32" },
]
cost = { bytes = "4 * (elements(x) + elements(bias) + elements(terms) + elements(y))", flops = "rows * cols" }
limits = { memory_bytes = 3_221_225_472, processes = 64 }
call = @CALL@
tests = [
    { name = "neither", params = { rows = 5, cols = 33, has_bias = 0, has_terms = 0 } },
    { name = "bias", params = { rows = 5, cols = 33, has_bias = 1, has_terms = 0 } },
    { name = "terms", params = { rows = 5, cols = 33, has_bias = 0, has_terms = 1 } },
    { name = "drawn", params = { rows = 9, cols = 7, has_terms = 1 }, draw = { has_bias = { low = 0, high = 1 } },
      hidden = true },
]
benchmarks = [
    { name = "plain", params = { rows = 256, cols = 512, has_bias = 0, has_terms = 0 } },
    { name = "all", params = { rows = 256, cols = 512, has_bias = 1, has_terms = 1 } },
]
""".replace("\n      ", " ")
REFERENCE = """
import torch


def generate(generator, rows, cols, has_bias, has_terms):
    return {"bias": torch.randn(cols, generator=generator, device=generator.device)} if has_bias else {"bias": None}


def reference(x, bias, terms):
    y = 2 * x if bias is None else 2 * x + bias
    return y if terms is None else y + terms[0] + terms[1]
"""


class Kernel(NamedTuple):
    call: str
    source: str
    language: str = "py"


SUM = """
import torch
def summed(x, bias, terms):
    given = [] if bias is None else [bias]
    return torch.add(x, x) + sum([*given, *([] if terms is None else terms)])
"""
CPP = """
#include <cstdint>
extern "C" void twice(const float* x, const float* bias, const float* const* terms, float* y,
                      int64_t rows, int64_t cols, int64_t has_bias, int64_t has_terms) {
    for (int64_t i = 0; i < rows * cols; ++i) {
        y[i] = 2 * x[i];
        if (bias) y[i] += bias[i % cols];
        if (terms) y[i] += terms[0][i] + terms[1][i];
    }
}
"""
KERNELS = {
    "writes": Kernel(
        '{ style = "writes" }', f"{SUM}\ndef twice(x, bias, terms, y):\n    y.copy_(summed(x, bias, terms))\n"
    ),
    "returns": Kernel(
        '{ style = "returns" }', f"{SUM}\ndef twice(x, bias, terms):\n    return summed(x, bias, terms)\n"
    ),
    "module": Kernel(
        '{ style = "module", arguments = ["x", ["terms", "bias"]] }',
        f"{SUM}\nclass twice(torch.nn.Module):\n    def forward(self, x, given):\n        terms, bias = given\n"
        "        return summed(x, bias, terms)\n",
    ),
    "tree": Kernel(
        '{ style = "tree", data = { tuple = ["x", { dict = { bias = "bias" } }, { fields = { terms = "terms" } }] } }',
        f"{SUM}\ndef twice(data):\n    x, given, rest = data\n    bias = given['bias']\n"
        "    return summed(x, bias, rest.terms)\n",
    ),
    "C++": Kernel('{ style = "returns" }', CPP, "cpp"),
}
# What makes a kernel leave out the bias.
IGNORED = {"py": ("given = [] if bias is None else [bias]", "given = []"), "cpp": ("if (bias)", "if (false)")}


def made(folder: Path, call: str) -> Problem:
    return written(folder / "twice", TOML.replace("@CALL@", call), REFERENCE)


def changed(kernel: Kernel, old: str = "", new: str = "") -> Submission:
    assert old in kernel.source
    return submission(kernel.source.replace(old, new, 1), kernel.language)


@pytest.mark.full
@pytest.mark.parametrize("name", ["tree", "C++"])
def test_a_kernel_that_looks_whether_an_input_is_there_is_accepted_and_timed(name: str, tmp_path: Path) -> None:
    verdict = graded(made(tmp_path, KERNELS[name].call), changed(KERNELS[name]))
    assert (verdict.outcome, verdict.message) == (Outcome.ACCEPTED, ""), verdict.traceback
    assert [(len(verdict.tests), len(verdict.benchmarks))] == [(4, 2)]


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=() if each in ("writes", "C++") else pytest.mark.full) for each in KERNELS]
)
def test_one_that_ignores_it_is_refused_where_it_is_there(name: str, tmp_path: Path) -> None:
    problem, kernel = made(tmp_path, KERNELS[name].call), KERNELS[name]
    check = checked(problem, changed(kernel, *IGNORED[kernel.language]))
    outcomes = {test.name: test.outcome for test in check.tests if not test.hidden}
    assert outcomes == {"neither": "accepted", "bias": "wrong_answer", "terms": "accepted"}


@pytest.mark.full
@pytest.mark.parametrize("name", ["writes", "returns", "module"])
def test_it_is_accepted_in_the_other_styles_too(name: str, tmp_path: Path) -> None:
    found = checked(made(tmp_path, KERNELS[name].call), changed(KERNELS[name]))
    assert (found.outcome, found.message) == (Outcome.ACCEPTED, ""), found.traceback


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "old", "new", "told"),
    [
        ("writes", "[] if bias is None else [bias]", "[bias]", "TypeError: unsupported operand type(s) for +: "),
        ("C++", "if (terms)", "", "SIGSEGV"),
    ],
)
def test_one_that_takes_it_for_granted_ends_where_it_is_absent(
    name: str, old: str, new: str, told: str, tmp_path: Path
) -> None:
    check = checked(made(tmp_path, KERNELS[name].call), changed(KERNELS[name], old, new))
    assert check.outcome == Outcome.RUNTIME_ERROR
    assert told in check.message


@pytest.mark.full
def test_the_command_line_tells_of_it_and_dumps_and_debugs_without_it(tmp_path: Path) -> None:
    made(tmp_path / "problems", KERNELS["returns"].call)
    (tmp_path / "kernelmark.toml").write_text("")
    (tmp_path / "kernel.py").write_text(KERNELS["returns"].source)
    shown = kernelmark(tmp_path, "problems", "show", "twice").stdout
    filled = "input bias [cols] float32: made by `generate` in reference.py"
    bias = f"{filled}; None, in C a null pointer, where has_bias is 0"
    assert bias in " ".join(shown.split())
    for test in ("neither", "bias"):
        debugged = kernelmark(tmp_path, "debug", "twice", "kernel.py", "--device", "cpu", "--test", test)
        assert debugged.returncode == 0, debugged.stderr
    (tmp_path / "kernel.py").write_text(KERNELS["returns"].source.replace("torch.add(x, x)", "x"))
    options = ("--device", "cpu", "--sandbox", "process", "--dump", "failed")
    assert kernelmark(tmp_path, "check", "twice", "kernel.py", *options).returncode == 1
    for test, inputs in (("neither", {"x"}), ("bias", {"x", "bias"}), ("terms", {"x", "terms[0]", "terms[1]"})):
        kept = torch.load(tmp_path / "failed" / f"{test}.pt", weights_only=True)
        assert set(kept["inputs"]) == inputs
    again = kernelmark(tmp_path, "debug", "twice", "kernel.py", "--device", "cpu", "--from", "failed/neither.pt")
    assert again.returncode == 1
    linted = kernelmark(tmp_path, "problems", "lint", "twice", "--no-samples")
    assert linted.returncode == 0, linted.stdout
