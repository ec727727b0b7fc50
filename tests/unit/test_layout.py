"""How the runner learns of a call's tensors, in frames that are small enough, and its own call for practice."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from harness.judge.correctness.layout import Layout
from harness.runner.kernel import Practice
from harness.shared.call import Forms
from harness.wire import commands, frame
from tests.grading import written

PROBLEM = """
title = "Twice a list"
entry = "many"
parameters = ["count"]
tensors = [
    { name = "xs", role = "input", shape = ["index % 7 + 1"], dtype = "float32", count = "count" },
    { name = "ys", role = "output", shape = ["index % 7 + 1"], dtype = "float32", count = "count" },
]
cost = { bytes = "8 * count", flops = "0" }
tests = [{ name = "test", params = { count = 1 } }]
benchmarks = [{ name = "few", params = { count = 10 } }, { name = "many", params = { count = 4096 } }]
"""
REFERENCE = "def reference(xs):\n    return [2 * x for x in xs]\n"


@pytest.mark.parametrize(("case", "frames"), [(0, 1), (1, 64)])
def test_every_tensor_is_declared_once_and_every_frame_fits(case: int, frames: int, tmp_path: Path) -> None:
    problem = written(tmp_path, PROBLEM, REFERENCE)
    resolved = problem.resolve(problem.benchmarks[case])
    *declared, bind = Layout(resolved).commands(resolved, problem.parameters, sets=2, seed=7)
    assert len(declared) == frames
    sent = [argument for each in declared for argument in each.arguments]
    assert [argument.name for argument in sent] == [tensor.name for tensor in resolved.tensors]
    for command in (*declared, bind):
        assert frame.decode(frame.encode(1, command), commands.COMMANDS) == (1, command)


def test_an_absent_list_has_a_place_and_no_memory(tmp_path: Path) -> None:
    problem = written(tmp_path, PROBLEM.replace('"input"', '"input", present = "count - 1"'), REFERENCE)
    resolved = problem.resolve(problem.tests[0])
    layout = Layout(resolved)
    declare, bind = layout.commands(resolved, problem.parameters, sets=2, seed=7)
    assert ([argument.name for argument in declare.arguments], bind.absent) == (["ys[0]"], (0,))
    assert [slot.tensor.name for slot in layout.slots] == ["ys[0]"]


def test_a_frame_holds_its_tensors_with_long_names_and_strides() -> None:
    name = "x" * 64
    longest = commands.TensorArgument(
        name=f"{name}[8191]", dtype="float4_e2m1fn_x2", shape=(2**20,) * 8, writable=True, offset=2**45, group=name,
        strides=(2**30,) * 8,
    )  # fmt: skip
    declare = commands.Declare(arguments=(longest,) * commands.MAX_DECLARED)
    assert frame.decode(frame.encode(1, declare), commands.COMMANDS) == (1, declare)


# ---- the runner's own call


def declared(shape: tuple[int, ...], *, writable: bool, group: str = "") -> commands.TensorArgument:
    return commands.TensorArgument(name="t", offset=0, shape=shape, dtype="float32", writable=writable, group=group)


def test_it_writes_every_output_and_no_input() -> None:
    arguments = [
        declared((), writable=False),
        declared((0,), writable=False),
        declared((3,), writable=False, group="xs"),
        declared((5,), writable=False, group="xs"),
        declared((4,), writable=True),
    ]
    scalar, empty, xs, y = torch.tensor(1.5), torch.ones(0), [torch.ones(3), torch.ones(5)], torch.ones(4)
    bind = commands.Bind("any", (), (), 1, 0, 0, 0, 0, inputs_writable=False, forms=Forms(), seed=0)
    Practice().bind(bind, arguments)([scalar, empty, None, xs, y])()
    assert not y.any()
    assert scalar == 1.5
    assert all(x.all() for x in xs)
