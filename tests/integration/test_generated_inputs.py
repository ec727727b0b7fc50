"""Inputs that a problem's `generate` makes, end to end: a kernel that changes them is refused, an honest one is not.

The problem draws from the system's random source, so nothing here can rest on its making the same inputs twice.
"""

from __future__ import annotations

import pytest
import torch

from harness.problem import Problem
from harness.verdict import Outcome
from tests.command import kernelmark
from tests.grading import checked, graded, written

TOML = """
title = "Add what each element's row asks for"
entry = "gather_add"
parameters = ["n"]
tensors = [
    { name = "x", role = "input", shape = ["n"], dtype = "float32" },
    { name = "order", role = "input", shape = ["n"], dtype = "int64", fill = { kind = "generated" } },
    { name = "y", role = "inout", shape = ["n"], dtype = "float32" },
]
cost = { bytes = "20 * n", flops = "n" }
tests = [
    { name = "visible", params = { n = 1000 } },
    { name = "unseen", params = { n = 777 }, hidden = true },
]
benchmarks = [{ name = "many", params = { n = 4096 }, weight = 2.0 }]
"""
REFERENCE = """
import secrets
import torch


def generate(generator, n):
    # Neither follows from the generator's seed.
    device = generator.device
    y = torch.full((n,), float(secrets.randbelow(1000)), device=device)
    return {"order": torch.randperm(n, device=device), "y": y}


def reference(x, order, y):
    return y + x[order]
"""
HONEST = "def gather_add(x, order, y):\n    y.add_(x[order])\n"
# What a kernel does, and how it ends.
HOSTILE = {
    "y.add_(x[order]); order.copy_(order.sort().values)": "wrote to its input `order`, which is read-only",
    "order[-1] = order[0]; y.add_(x[order])": "wrote to its input `order`, which is read-only",
    "y.add_(x)": "test visible: y: ",
}


@pytest.fixture(scope="module")
def problem(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    project = tmp_path_factory.mktemp("project")
    (project / "kernelmark.toml").touch()
    return written(project / "problems/gather_add", TOML, REFERENCE)


@pytest.mark.bwrap
def test_an_honest_kernel_is_timed_on_generated_inputs(problem: Problem) -> None:
    verdict = graded(problem, HONEST, "bwrap")
    assert (verdict.outcome, len(verdict.tests)) == (Outcome.ACCEPTED, 2), verdict.message
    [timed] = verdict.benchmarks
    assert (timed.mode, timed.weight) == ("calls", 2.0)
    assert sum(each.calls for each in timed.rounds) > 1


@pytest.mark.parametrize("body", HOSTILE)
def test_a_kernel_that_changes_its_inputs_or_ignores_them_is_refused(problem: Problem, body: str) -> None:
    check = checked(problem, f"def gather_add(x, order, y):\n    {body}\n")
    assert check.outcome in (Outcome.RUNTIME_ERROR, Outcome.WRONG_ANSWER)
    assert HOSTILE[body] in check.message


def test_a_dump_has_the_inputs_that_the_call_got(problem: Problem) -> None:
    project = problem.directory.parents[1]
    (project / "wrong.py").write_text("def gather_add(x, order, y):\n    y.copy_(x[order])\n")
    options = ("--device", "cpu", "--sandbox", "process", "--dump", "failed")
    ended = kernelmark(project, "check", "gather_add", "wrong.py", *options)
    assert ended.returncode == 1, ended.stderr
    kept = torch.load(project / "failed" / "visible.pt", weights_only=True)
    given = kept["inputs"]
    assert torch.equal(kept["outputs"]["y"], given["x"][given["order"]]), "the permutation that the call was given"
    assert torch.allclose(kept["expected"]["y"], given["y"].double() + given["x"][given["order"]].double())


def test_debug_calls_a_kernel_on_generated_inputs(problem: Problem) -> None:
    project = problem.directory.parents[1]
    (project / "right.py").write_text(HONEST)
    ended = kernelmark(project, "debug", "gather_add", "right.py", "--device", "cpu")
    assert ended.returncode == 0, ended.stderr
