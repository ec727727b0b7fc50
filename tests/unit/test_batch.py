"""Checks of a batch of calls: writes next to the outputs, and into those of calls that were not made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import torch

from harness.judge.correctness.arenas import arenas
from harness.judge.correctness.batch import Batch
from harness.judge.correctness.layout import Layout
from tests.grading import written

PROBLEM = """
title = "A step in place"
entry = "step"
parameters = ["n"]
tensors = [
    { name = "x", role = "input", shape = ["n"], dtype = "float32" },
    { name = "state", role = "inout", shape = ["n"], dtype = "float32" },
    { name = "y", role = "output", shape = ["n"], dtype = "float32" },
]
cost = { bytes = "16 * n", flops = "n" }
tests = [{ name = "one", params = { n = 100 } }]
benchmarks = [{ name = "same", params = { n = 100 } }]
"""
SETS = 4


@pytest.fixture
def batch(tmp_path: Path) -> Iterator[Batch]:
    problem = written(tmp_path, PROBLEM, "def reference(x, state):\n    return state + x, x\n")
    made = Batch(Layout(problem.resolve(problem.benchmarks[0])), "cpu", SETS)
    yield made
    made.close_arenas()


def write(batch: Batch, name: str, call: int, byte: int = 0) -> None:
    """Change one byte of a tensor of a call, `byte` bytes from its begin."""
    [slot] = [slot for slot in batch._layout.outputs if slot.tensor.name == name]
    batch._arenas["outputs"].bytes[call * batch._layout.output_stride + slot.offset + byte] ^= 0xFF


@pytest.mark.parametrize("name", ["y", "state"])
def test_a_write_into_a_call_that_was_not_made_is_found(batch: Batch, name: str) -> None:
    batch.snapshot()
    assert batch.out_of_bounds([0, 1]) is None, "nothing was written"
    write(batch, name, call=0)
    write(batch, name, call=3)
    batch.snapshot()
    out_of_bounds = batch.out_of_bounds([0, 1, 2])
    assert out_of_bounds is not None
    assert (out_of_bounds.set, out_of_bounds.text) == (3, f"wrote to `{name}` of a call that was not made")
    assert batch.out_of_bounds(range(SETS)) is None, "the calls that were made may write there"


@pytest.mark.parametrize(
    ("name", "written", "message"),
    [
        ("state", [-1], "wrote 1 byte outside its outputs, the first before `state`"),
        ("y", [401], "wrote beyond the end of `y`: 1 element (4 bytes), right behind it"),
        ("y", [2400, 2404], "wrote beyond the end of `y`: 2 elements (8 bytes), the first 2,000 bytes behind it"),
        (
            "y",
            range(400, 1600, 4),
            "wrote beyond the end of `y`: 300 elements (1,200 bytes), the first right behind it",
        ),
    ],
)
def test_a_write_next_to_an_output_is_found(batch: Batch, name: str, written: Sequence[int], message: str) -> None:
    for byte in written:
        write(batch, name, call=2, byte=byte)
    batch.snapshot()
    out_of_bounds = batch.out_of_bounds(range(SETS))
    assert out_of_bounds is not None
    assert (out_of_bounds.set, out_of_bounds.text) == (2, message)


def test_arenas_are_given_back_where_memory_ends_after_the_first(batch: Batch, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[str] = []

    class Made:
        def close(self) -> None:
            closed.append("inputs")

    def make(*_: object, read_only: bool, **__: object) -> Made:
        if not read_only:
            raise torch.OutOfMemoryError("as torch says it, from inside of an arena")
        return Made()

    monkeypatch.setattr("harness.judge.correctness.arenas.make_arena", make)
    with pytest.raises(torch.OutOfMemoryError):
        arenas(batch._layout, "cpu", SETS)
    assert closed == ["inputs"]
