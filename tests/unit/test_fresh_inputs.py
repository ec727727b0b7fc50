"""Inputs of replayed calls, on the CPU: their places in memory, and what is there before each call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import torch

from harness.judge.correctness.graded_case import GradedCase
from harness.judge.session import SubmissionFault
from harness.judge.timing.replayed import fresh_inputs as module
from harness.judge.timing.replayed.fresh_inputs import FreshInputs
from harness.problem import load
from harness.problem.reference import Reference
from kernelmark.diagnostics.selftest import PROBLEMS
from tests.shipped import ROOT


def graded(folder: Path, test: int = 1) -> GradedCase:
    problem = load(folder)
    return GradedCase(problem, Reference.load(problem), "cpu", problem.resolve(problem.tests[test]))


CASE = graded(PROBLEMS / "double")


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[FreshInputs]:
    monkeypatch.setattr(module, "_MAX_PLACES", 3)
    with closing(FreshInputs(CASE)) as made:
        yield made


def in_place(fresh: FreshInputs, arena: str = "inputs") -> torch.Tensor:
    return fresh._place[arena].bytes.clone()


def test_calls_take_turns_between_places_and_a_place_holds_until_it_is_left(fresh: FreshInputs) -> None:
    seen = []
    for _ in range(4):
        fresh.next()
        before = fresh.descriptors
        fresh.next()
        assert fresh.descriptors == before
        seen.append(before)
        assert fresh.move()
    assert len(set(seen[:3])) == 3
    assert seen[3] == seen[0]


def test_a_baseline_finds_the_inputs_of_the_submissions_call_where_that_found_them(fresh: FreshInputs) -> None:
    fresh.move()
    fresh.next()
    place, first = fresh.descriptors, in_place(fresh)
    fresh._place["outputs"].bytes.zero_()
    fresh.again()
    assert fresh.descriptors == place
    assert torch.equal(in_place(fresh), first)
    assert bool(fresh._place["outputs"].bytes.any()), "outputs hold what they held before the call"
    fresh.next()
    assert not torch.equal(in_place(fresh), first)


def kept_then_laid_again(fresh: FreshInputs) -> None:
    """Keep a call's outputs, let a baseline have the arenas, and check them."""
    try:
        fresh.keep()
    finally:
        fresh.again()
    fresh.check()


@pytest.fixture(params=[None, 1], ids=["small", "large"])
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a call's tensors are so large that they are drawn and checked where they lie."""
    if request.param is not None:
        monkeypatch.setattr(module, "_MAX_BYTES", request.param)


@pytest.mark.usefixtures("size")
@pytest.mark.parametrize("folder", [PROBLEMS / "double", ROOT / "problems/rope_strided"], ids=["output", "inout"])
def test_a_baseline_finds_outputs_as_they_were_after_the_submissions_are_kept(folder: Path) -> None:
    case = graded(folder, 0)
    with closing(FreshInputs(case)) as fresh:
        fresh.next()
        outputs = fresh.outputs[: case.layout.output_stride]  # the rest of the last page is nobody's
        before = outputs.clone()
        outputs.fill_(7)
        with pytest.raises(SubmissionFault, match="bytes outside its outputs"):
            kept_then_laid_again(fresh)
        assert torch.equal(outputs, before)


def test_large_outputs_are_checked_after_each_call_where_they_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_BYTES", 1)
    fresh = FreshInputs(BENCHMARK)
    try:
        for _ in range(2):
            fresh.next()
            called(fresh, cut=100)
            fresh.again()
            assert fresh.outputs[:8].view(torch.float64).item() != 0, "the baseline finds poison"
            fresh.check()
        assert len(set(fresh.seeds)) == 2
        fresh.next()
        with pytest.raises(SubmissionFault, match=r"^call 3: y: .* elements wrong"):
            called(fresh, cut=0.001)
        fresh.next()
        fresh._place["inputs"].bytes.zero_()
        with pytest.raises(SubmissionFault, match=r"^call 4: changed its inputs, which are read-only"):
            called(fresh, cut=100)
    finally:
        fresh.close()


def test_large_inputs_have_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_PLACED_BYTES", 1)
    with closing(FreshInputs(CASE)) as fresh:
        fresh.next()
        before = fresh.descriptors
        assert not fresh.move()
        assert fresh.descriptors == before


def test_inputs_in_the_hosts_memory_are_laid_into_an_arena_of_their_own() -> None:
    with closing(FreshInputs(graded(PROBLEMS / "double_from_host"))) as fresh:
        fresh.next()
        first = in_place(fresh, "host")
        fresh.next()
        second = in_place(fresh, "host")
        fresh._place["host"].bytes.zero_()
        fresh.again()
        assert len(fresh.descriptors) == 3
        assert not torch.equal(first, second)
        assert torch.equal(second, in_place(fresh, "host"))


VALUES = load(PROBLEMS / "double_values")
BENCHMARK = GradedCase(VALUES, Reference.load(VALUES), "cpu", VALUES.resolve(VALUES.benchmarks[0]))
[LARGE] = BENCHMARK.other_values


def called(fresh: FreshInputs, *, cut: float) -> float:
    """Double what lies there, cut off beyond a magnitude; returns the largest input."""
    slots = {slot.tensor.name: slot for slot in BENCHMARK.layout.slots}
    x, y = (
        memory[slots[name].offset :][: slots[name].nbytes].view(torch.float32)
        for memory, name in ((fresh._place["inputs"].bytes, "x"), (fresh.outputs, "y"))
    )
    y.copy_(2 * x.clamp(-cut, cut))
    fresh.keep()
    return float(x.abs().max())


@pytest.mark.usefixtures("size")
def test_a_call_on_other_values_is_checked_and_the_next_one_has_the_usual_ones() -> None:
    with closing(FreshInputs(BENCHMARK)) as fresh:
        fresh.next()
        assert called(fresh, cut=100) < 10
        seeds = list(fresh.seeds)
        for with_value in fresh.with_values([LARGE]):
            assert with_value is LARGE
            assert called(fresh, cut=float("inf")) > 1e29
        assert fresh.seeds == seeds, "no timed call has inputs of that seed"
        fresh.next()
        assert called(fresh, cut=100) < 10
        fresh.check()
        assert len(fresh.seeds) == 2
        wrong = fresh.with_values([LARGE])
        next(wrong)
        called(fresh, cut=100)
        with pytest.raises(SubmissionFault, match=r"^with the values of test large values: y: .* elements wrong"):
            next(wrong)
