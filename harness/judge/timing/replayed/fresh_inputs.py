"""Makes inputs for a series of replayed calls, and checks the outputs, for many calls at a time. Trusted.

The inputs stay in the judge's own memory until their call. A launcher maps the arenas of one call. Before a call, the
judge copies its inputs and the initial contents of its outputs there; afterwards it copies the outputs out, so that the
arenas never contain the inputs or outputs of another call. If the arenas are small, several sets of them take turns,
because the physical location of device memory changes a time of some microseconds by up to 3 %.

If the tensors of a call are so large that the inputs of only one call are drawn at a time, they are drawn into the
arenas, and the outputs are checked there right after the call: a second copy may not fit into the device's memory.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence

import torch

from harness.arena import Arena
from harness.compare import describe
from harness.judge.correctness.arenas import arenas, descriptors
from harness.judge.correctness.batch import Batch
from harness.judge.correctness.cases import first_wrong
from harness.judge.correctness.graded_case import GradedCase
from harness.judge.correctness.layout import ArenaName
from harness.judge.session import SubmissionFault
from harness.judge.timing.dealt_values import check_values, fault_with_values
from harness.problem import ResolvedCase
from harness.verdict import Outcome

_MAX_CALLS, _MAX_BYTES = 20, 2 << 30
_SAMPLED_WORDS = 1 << 16
_MAX_PLACES, _MAX_PLACED_BYTES = 4, 256 << 20


class _PrivateMemory:
    """Memory that no other process gets, with the interface of an arena."""

    def __init__(self, nbytes: int, torch_device: str) -> None:
        self.nbytes, self.bytes = nbytes, torch.empty(nbytes, dtype=torch.uint8, device=torch_device)

    def descriptor(self) -> int:
        raise TypeError("private memory cannot be shared")

    def close(self) -> None:
        self.bytes = torch.empty(0, dtype=torch.uint8)


class _PrivateBatch(Batch):
    """The inputs and initial outputs of calls, in private memory, and the outputs after each call.

    Without an inout, the initial outputs contain only poison, and the outputs after a call overwrite them.
    """

    @property
    def _has_inout(self) -> bool:
        return any(slot.tensor.role == "inout" for slot in self._layout.outputs)

    def inputs_hold(self) -> bool:
        """Whether the inputs are unchanged, which is certain here: no other process has this memory."""
        return True

    def _make_arenas(self, *, sealed: bool) -> Mapping[ArenaName, Arena]:
        strides = self._layout.strides.items()
        return {place: _PrivateMemory(self.sets * stride, self._device.torch_device) for place, stride in strides}

    def lay(self, k: int, to: Mapping[ArenaName, Arena]) -> None:
        """Copy the inputs and initial outputs of call k into arenas."""
        for place, arena in to.items():
            room = arena.bytes[: self._layout.strides[place]]
            if place == "outputs" and not self._has_inout:
                self._put_poison(room)
            else:
                room.copy_(self._region(place, k))
        self._device.synchronize()

    def snapshot(self) -> None:
        """Make memory for the outputs after each call; it starts with the initial outputs."""
        if self._has_inout:
            super().snapshot()
        else:
            self._snapshot = self._output_bytes

    def keep(self, k: int, outputs: torch.Tensor) -> None:
        """Copy the outputs of call k after the call.

        The next `lay` runs on the same stream, so it cannot come first.
        """
        stride = self._layout.output_stride
        self._snapshot[k * stride : (k + 1) * stride].copy_(outputs[:stride])

    def _copy(self) -> None:
        """Not needed: no other process can change the inputs."""

    def _stacked_inputs(self, chunk: int) -> Iterator[list[torch.Tensor | None]]:
        return self._slices(self._memory, chunk)


class _InPlaceBatch(_PrivateBatch):
    """The inputs and outputs of one call, in the arenas that a launcher maps; the inputs are read-only for it.

    The judge also keeps a sample of the inputs, and the initial values of inouts.
    """

    def renew(self, *, filled: bool = True, seed: int | None = None, values: Sequence[ResolvedCase] = ()) -> None:
        self._initial_outputs: torch.Tensor | None = None  # released before new ones are made
        super().renew(filled=filled, seed=seed, values=values)
        if self._has_inout:
            self._initial_outputs = self._output_bytes.clone()
        self._samples = {place: self._sampled(memory) for place, memory in self._inputs.items()}

    @property
    def arenas(self) -> Mapping[ArenaName, Arena]:
        """The arenas, in the order in which a launcher receives them."""
        return self._arenas

    @property
    def _inputs(self) -> Mapping[ArenaName, torch.Tensor]:
        return {place: memory for place, memory in self._memory.items() if place != "outputs"}

    def _sampled(self, memory: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Places of random words, and their values. If a share f changes, this misses it with probability (1 -
        f)^65536.
        """
        generator = self._device.generator(secrets.randbits(63))
        words = memory.view(torch.int64)
        places = torch.randint(len(words), (_SAMPLED_WORDS,), generator=generator, device=memory.device)
        return places, words[places]

    def inputs_hold(self) -> bool:
        """Whether the sampled words of the inputs are unchanged."""
        held = ((self._inputs[place].view(torch.int64)[at], seen) for place, (at, seen) in self._samples.items())
        return all(torch.equal(*pair) for pair in held)

    def _make_arenas(self, *, sealed: bool) -> Mapping[ArenaName, Arena]:
        return arenas(self._layout, self._device.kind, self.sets, sealed=sealed)

    def lay(self, k: int, to: Mapping[ArenaName, Arena]) -> None:
        """Restore the initial outputs; the inputs are already there."""
        if self._initial_outputs is None:
            self._put_poison(self._output_bytes)
        else:
            self._output_bytes.copy_(self._initial_outputs)
        self._device.synchronize()

    def snapshot(self) -> None:
        """Take no copy: when a launcher has answered, nothing runs that could change the outputs."""
        self._snapshot = self._output_bytes

    def keep(self, k: int, outputs: torch.Tensor) -> None:
        """Do nothing: the outputs are checked in place before the next call."""

    def _stacked_inputs(self, chunk: int) -> Iterator[list[torch.Tensor | None]]:
        memory = dict(self._memory)
        if self._initial_outputs is not None:
            memory["outputs"] = self._initial_outputs
        return self._slices(memory, chunk)


class FreshInputs:
    """Supplies inputs for the calls of one case, and checks the outputs."""

    def __init__(self, case: GradedCase) -> None:
        layout, device = case.layout, case.device
        self._truth = case.truth
        self.group = max(1, min(_MAX_CALLS, _MAX_BYTES // layout.bytes_per_set))
        """The number of calls whose inputs are drawn at a time."""
        self.seeds: list[int] = []
        """The seeds of the groups, in order."""
        self._places: list[Mapping[ArenaName, Arena]] = []
        self._drawn: _PrivateBatch
        with contextlib.ExitStack() as made:
            if self.group == 1:
                self._drawn = in_place = _InPlaceBatch(layout, device, 1, filled=False, generate=case.generate)
                self._places.append(in_place.arenas)
            else:
                for _ in range(max(1, min(_MAX_PLACES, _MAX_PLACED_BYTES // layout.bytes_per_set))):
                    self._places.append(arenas(layout, device, 1))
                    for place in self._places[-1].values():
                        made.callback(place.close)
                self._drawn = _PrivateBatch(layout, device, self.group, filled=False, generate=case.generate)
            made.callback(self._drawn.close_arenas)
            self._made = made.pop_all()
        self._used = self.group  # so that the first call draws inputs
        self._at = 0
        self._calls = 0
        self._has_values = False  # whether the current inputs have the values of tests
        self._kept: list[int] = []
        self.result_strides: Mapping[str, tuple[int, ...]] = {}
        """Of the last call, as `Batch.result_strides`; they are the same for all calls between two checks."""
        self.checking_ns = 0
        """The time that the judge spent on drawing inputs and checking outputs."""

    @property
    def descriptors(self) -> tuple[int, ...]:
        """The file descriptors of the arenas of the next call, in the order of `Layout.strides`."""
        return descriptors(self._place)

    @property
    def outputs(self) -> torch.Tensor:
        """The output arena of the next call, as bytes."""
        return self._place["outputs"].bytes

    @property
    def _place(self) -> Mapping[ArenaName, Arena]:
        return self._places[self._at]

    def move(self) -> bool:
        """Switch to other arenas; returns False if there are no others."""
        self._at = (self._at + 1) % len(self._places)
        return len(self._places) > 1

    def next(self) -> None:
        """Copy new inputs into the arenas.

        Raises:
            SubmissionFault: outputs of an earlier call are wrong.
        """
        if self._used == self.group:
            self.check()
            began = time.perf_counter_ns()
            self._renew(())
            self.seeds.append(self._drawn.seed)
            self.checking_ns += time.perf_counter_ns() - began
        self._used += 1
        self.again()

    def _renew(self, values: Sequence[ResolvedCase]) -> None:
        self._drawn.renew(values=values)
        self._drawn.snapshot()
        self._used, self._has_values = 0, bool(values)

    def with_values(self, values: Sequence[ResolvedCase]) -> Iterator[ResolvedCase]:
        """For each of these cases, at most `group`, copy inputs with its values into the arenas, and yield it.

        The caller makes a call after each, and calls `keep`. At the end all of these calls are checked. The next call
        after that draws new inputs with the usual values.

        Raises:
            SubmissionFault: outputs of an earlier call, or of one of these, are wrong.
        """
        self.check()
        self._renew(values)
        try:
            for value in values:
                self._used += 1
                self.again()
                yield value
            kept, self._calls = self._kept, self._calls - len(self._kept)  # these calls do not count
            if out_of_bounds := self._drawn.out_of_bounds(range(self._used)):
                wrong = values[out_of_bounds.set]
                raise fault_with_values([wrong], Outcome.RUNTIME_ERROR, out_of_bounds.text)
            self._require_inputs("a call")
            check_values(self._drawn, self._truth, kept)
        finally:
            self.discard()

    def again(self) -> None:
        """Copy the same inputs into the arenas once more, for a baseline."""
        self._drawn.lay(self._used - 1, self._place)

    def keep(self) -> None:
        """Keep the outputs of the last call for the next check. If there is no memory for that, check them now.

        Raises:
            SubmissionFault: an output is wrong.
        """
        self._drawn.keep(self._used - 1, self.outputs)
        self._drawn.result_strides = self.result_strides
        self._kept.append(self._used - 1)
        self._calls += 1
        if isinstance(self._drawn, _InPlaceBatch) and not self._has_values:
            self.check()

    def check(self) -> None:
        """Check all outputs that were kept since the last check.

        Raises:
            SubmissionFault: an output is wrong.
        """
        kept, self._kept = self._kept, []
        if not kept:
            return
        began = time.perf_counter_ns()
        first = self._calls - len(kept) + 1
        where = f"call {first}" if len(kept) == 1 else f"one of the calls {first} to {self._calls}"
        if out_of_bounds := self._drawn.out_of_bounds(range(self._used)):
            number = first + kept.index(out_of_bounds.set)  # earlier ones were checked, later ones are untouched
            raise SubmissionFault(Outcome.RUNTIME_ERROR, f"call {number}: {out_of_bounds.text}")
        self._require_inputs(where)
        if wrong := first_wrong(self._drawn, self._truth, kept):
            raise SubmissionFault(Outcome.WRONG_ANSWER, f"{where}: {describe(wrong)}")
        self.checking_ns += time.perf_counter_ns() - began

    def _require_inputs(self, where: str) -> None:
        if not self._drawn.inputs_hold():
            raise SubmissionFault(Outcome.REJECTED, f"{where}: changed its inputs, which are read-only")

    def discard(self) -> None:
        """Discard the kept outputs, and the rest of their group of inputs: the next call draws new inputs."""
        self._kept, self._used = [], self.group

    def close(self) -> None:
        """Release the memory."""
        self._made.close()
