"""How much memory the judge needs besides the tensors that it compares and times, counted on the CPU."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from harness.arena import Arena, make_arena
from harness.compare import check, field, is_close, passes_fast_check
from harness.compare.field import Field
from harness.judge.correctness import arenas as arenas_module
from harness.judge.correctness import layout, truth
from harness.judge.correctness.arenas import placed
from harness.judge.correctness.cases import Correctness
from harness.judge.correctness.graded_case import GradedCase
from harness.judge.timing.replayed import fresh_inputs, launcher
from harness.judge.timing.replayed.fresh_inputs import FreshInputs
from harness.problem import ResolvedCase, load
from harness.problem.reference import Reference
from harness.problem.spec import Case
from harness.problem.tolerance import Tolerance
from harness.recording.file import pack
from harness.verdict import Outcome
from harness.wire import commands, replies
from kernelmark.diagnostics.selftest import PROBLEMS
from tests.live_bytes import LiveBytes
from tests.recordings import BLOBS, CALL

DOUBLE = load(PROBLEMS / "double")


@pytest.mark.parametrize("most", [5, 96, 1 << 24], ids=["parts of rows", "rows", "all at once"])
@pytest.mark.parametrize("shape", [(1000,), (10, 100), (4, 5, 50)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float16", "float8_e4m3fn", "complex64", "int32"])
def test_the_fast_check_decides_the_same_in_blocks_of_any_size(
    dtype: str, shape: tuple[int, ...], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "_FAST_ELEMENTS", most)
    kind = getattr(torch, dtype)
    drawn = torch.randn(shape, dtype=torch.complex128 if kind.is_complex else torch.float64)
    drawn.view(-1)[17] = 200.0  # far above the rest of its row
    got = (drawn * 100).to(kind) if kind is torch.int32 else drawn.to(kind)
    truth = got.clone() if kind is torch.int32 else got.to(drawn.dtype)
    tolerance = Tolerance()
    assert passes_fast_check(got, truth, tolerance)
    for place in (0, 499, 999):
        wrong = got.clone().view(-1)
        wrong[place] = 150 if wrong[place] == -150 else -150  # of int32 one in some hundred elements is drawn as -150
        assert not passes_fast_check(wrong.view(shape), truth, tolerance)
        if kind is not torch.int32:
            wrong[place] = float("nan")
            assert not passes_fast_check(wrong.view(shape), truth, tolerance)


@pytest.mark.parametrize("rtol", [None, 1e-4], ids=["budget", "fixed tolerance"])
@pytest.mark.parametrize("shape", [(1 << 20,), (1 << 10, 1 << 10)], ids=str)
def test_the_fast_check_takes_little_memory(
    shape: tuple[int, ...], rtol: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "_FAST_ELEMENTS", 1 << 12)
    monkeypatch.setattr(check, "BLOCK_ELEMENTS", 1 << 12)
    tolerance = Tolerance() if rtol is None else Tolerance(rtol=rtol, atol=rtol)
    truth = torch.randn(shape, dtype=torch.float64)
    got = truth.float()
    with LiveBytes() as live:
        assert (passes_fast_check if rtol is None else is_close)(got, truth, tolerance)
    assert live.peak < got.nbytes // 4, "a copy of the output would be all of it"


def test_of_large_calls_the_truth_is_computed_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(truth, "_VMAP_ELEMENTS", 1 << 19)
    case, reference = _large(), Reference.load(DOUBLE)
    [name] = [tensor.name for tensor in case.tensors if tensor.role == "input"]
    given = {name: torch.randn(8, 1 << 20)}
    with LiveBytes() as live:
        expected = truth.Truth(reference, case)(given, 8).truth["y"]
    assert torch.equal(expected, 2 * given[name].double())
    assert live.peak < expected.nbytes // 8 * (8 + 3.5), "the answers, and what one of them takes"


class Judging:
    """A case of 4 MiB in and 4 MiB out, the arenas that the judge makes for it, and a runner that doubles."""

    def __init__(self, live: LiveBytes) -> None:
        self.case = GradedCase(DOUBLE, Reference.load(DOUBLE), "cpu", _large())
        self.nbytes = self.case.layout.input_stride
        self.asked: list[str] = []
        self._live, self._arenas = live, dict[bool, Arena]()

    def make_arena(self, device: str, nbytes: int, *, read_only: bool, in_host: bool = False) -> Arena:
        """As the function; the arena counts until it is closed."""
        arena = make_arena(device, nbytes, read_only=read_only, in_host=in_host)
        close, open_ = arena.close, [arena.nbytes]
        self._live.others += arena.nbytes
        self._live.look()

        def closed() -> None:
            self._live.others -= sum(open_)
            open_.clear()
            close()

        arena.close = closed  # type: ignore[method-assign]
        self._arenas[read_only] = arena
        return arena

    def double(self) -> None:
        """Make the call."""
        x, y = (placed(slot, self._arenas[slot.place != "outputs"].bytes) for slot in self.case.layout.slots)
        torch.mul(x, 2, out=y)

    def ask(
        self, command: commands.Command, expect: type[Any], *, descriptors: tuple[int, ...] = (), **_: object
    ) -> Any:
        """Answer as a session does; a recording has scratch as large as the arenas, and nothing in it."""
        self.asked.append(type(command).__name__)
        recorded = pack(replace(CALL, scratch_bytes=2 * self.nbytes), BLOBS)
        match command:
            case commands.Call():
                self.double()
                return replies.Called(returned="nothing", interpreted=False)
            case commands.Record():
                return replies.Recorded(file_bytes=len(recorded), scratch_bytes=2 * self.nbytes, reason="", note="")
            case commands.Deliver():
                os.pwrite(descriptors[0], recorded, 0)
        return expect()


def _large() -> ResolvedCase:
    [name] = DOUBLE.parameters
    return DOUBLE.resolve(Case(name="large", params={name: 1 << 20}, devices=("cpu",)))


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Callable[[LiveBytes], Judging]:
    """Judging with thresholds so low that these tensors are large ones, and blocks small beside them."""
    monkeypatch.setattr(check, "_FAST_ELEMENTS", 1 << 14)
    monkeypatch.setattr(field, "CPU_BLOCK_ELEMENTS", 1 << 12)
    monkeypatch.setattr(layout, "LARGE_BYTES", 0)
    monkeypatch.setattr(fresh_inputs, "_MAX_BYTES", 1)

    def judging(live: LiveBytes) -> Judging:
        made = Judging(live)
        for module in (arenas_module, launcher):
            monkeypatch.setattr(module, "make_arena", made.make_arena)
        return made

    return judging


def test_timed_calls_take_memory_for_arenas_and_truth(counted: Callable[[LiveBytes], Judging]) -> None:
    with LiveBytes() as live:
        judging = counted(live)
        fresh = FreshInputs(judging.case)
        assert live.look() < 2.5 * judging.nbytes, "inputs and outputs once, in the arenas"
        for _ in range(4):
            fresh.next()
            judging.double()
            fresh.keep()
            assert live.look() < 3 * judging.nbytes, "nothing is kept from one call to the next"
        fresh.close()
        assert live.others == 0
    # Arenas, the inputs in float64, the truth of them.
    assert live.peak < (2 + 2 + 2 + 0.5) * judging.nbytes


def test_a_recording_takes_the_arenas_or_its_scratch(counted: Callable[[LiveBytes], Judging]) -> None:
    with LiveBytes() as live:
        judging = counted(live)
        found = launcher.record(judging, judging.case)  # type: ignore[arg-type]
        assert found.scratch.nbytes == 2 * judging.nbytes
        assert judging.asked.index("Unmap") < judging.asked.index("Deliver")
        assert live.look() < 0.1 * judging.nbytes, "of scratch without content nothing is kept"
    assert live.peak < (2 + 0.5) * judging.nbytes


def test_a_test_takes_no_arenas_while_its_truth_is_computed(counted: Callable[[LiveBytes], Judging]) -> None:
    with LiveBytes() as live:
        judging = counted(live)
        tested = Correctness().run(judging, judging.case, "large")  # type: ignore[arg-type]
        assert tested.outcome is Outcome.ACCEPTED
        assert judging.asked.index("Release") > judging.asked.index("Call")
    # The inputs and the snapshot, the inputs in float64, the truth of them.
    assert live.peak < (1 + 1 + 2 + 2 + 0.5) * judging.nbytes


# ---- outputs measured in blocks

NAN, INF = float("nan"), float("inf")


class Waits(TorchDispatchMode):
    """Counts, as a context, how often a value is read from the device."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        self.count += func is torch.ops.aten._local_scalar_dense.default
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("special", [0.0, NAN, INF, 1e30], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float8_e4m3fn], ids=str)
def test_metrics_do_not_depend_on_blocks(dtype: torch.dtype, special: float, monkeypatch: pytest.MonkeyPatch) -> None:
    truth = torch.randn(64, 64, dtype=torch.float64)
    values = (truth + 0.01).float()
    values[3, 3] = special
    found = []
    for most in (1 << 16, 128):
        monkeypatch.setattr(field, "CPU_BLOCK_ELEMENTS", most)
        with Waits() as waits:
            found.append((Field(truth, dtype, 1e-3).measure(values.to(dtype).reshape(-1)), waits.count))
    assert found[0] == found[1]
