"""Fills arenas with secret inputs for a batch of calls, and checks what came back. Trusted.

Declared fills follow from a seed that stays in the judge, so these inputs can be made twice: first in the arena that
the runner sees, and after the runner has answered in private memory. The results of a problem's `generate` may not be
reproducible, so they are made once, and copied to private memory before the runner gets the arena. Small inputs on a
CPU are copied, too. Comparisons use only the private copy. On the CPU the arena's seal protects the inputs; on a GPU a
hostile runner can map its descriptor writable, so there the two copies are also compared.
"""

from __future__ import annotations

import hashlib
import itertools
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from harness.arena import Arena
from harness.arena.shapes import viewed
from harness.device import DEVICES
from harness.judge.correctness.arenas import OutOfBoundsWrite, arenas, descriptors, dtype_of, placed, poison, written_to
from harness.judge.correctness.layout import ArenaName, Layout, RedZone, Slot
from harness.judge.correctness.truth import ExpectedOutputs, Truth
from harness.problem import Fill, ResolvedCase
from harness.problem.dtypes import DTYPES
from harness.problem.elements import same_bits
from harness.problem.fill import fill
from harness.shared.carrier import carrier
from harness.verdict import DeviceKind

SAMPLED_WORDS = 4096  # if a share f of the work is not done yet, the sample misses it with probability (1 - f)^4096
_COPIED_BYTES = 64 << 20  # inputs up to this size are copied on a CPU: drawing them again takes ten times as long
_SMALL_BYTES = 1 << 18  # members of a list up to this size are drawn together with their neighbours
Generate = Callable[[int, ResolvedCase | None], Mapping[str, torch.Tensor]]
"""Makes tensors of one call, by name, from a seed; if another case is passed, with that case's options. Tensors that it
does not make get their declared fills.
"""


@dataclass(frozen=True)
class WordSample:
    """Random 8-byte words of the output arena, and the values that they had at the moment when a round ended."""

    places: torch.Tensor  # [SAMPLED_WORDS] int64
    seen: torch.Tensor  # [SAMPLED_WORDS] int64


class Batch:
    """Arenas for `sets` calls of a case. Take the `snapshot`, then `close_arenas`, then judge."""

    def __init__(
        self,
        layout: Layout,
        device: DeviceKind,
        sets: int,
        *,
        sealed: bool = True,
        filled: bool = True,
        seed: int | None = None,
        generate: Generate | None = None,
        values: Sequence[ResolvedCase] = (),
        judged: bool = True,
    ) -> None:
        """Make the arenas, and fill them unless `filled` is False.

        Args:
            seed, values: as for `renew`.
            generate: needs a layout with `keeps_copy`, so that the memory for the copy is counted.
            judged: whether outputs will be checked. If not, no copy of the inputs is kept.

        Raises:
            DeviceError: out of memory.
            ProblemError: `generate` fails.
        """
        assert generate is None or layout.keeps_copy
        self._layout, self._device, self.sets = layout, DEVICES[device], sets
        self._generate = generate
        cheap = self._device.on_host and sets * layout.read_stride <= _COPIED_BYTES
        self._copies_inputs = judged and (generate is not None or cheap)
        self._initial_copy: Mapping[ArenaName, torch.Tensor] | None = None  # like `_memory`
        self._draw_groups = _draw_groups(layout)
        self._outputs_by_name = {slot.tensor.name: slot for slot in layout.outputs}
        self._arenas = self._make_arenas(sealed=sealed)
        self._is_open = True
        self.result_strides: Mapping[str, tuple[int, ...]] = {}
        """The strides of outputs that are not in the declared layout, by name (`GradedCase.result_strides`)."""
        self._snapshot: torch.Tensor  # [sets * output_stride] uint8, once taken
        self.seed = 0
        self._pattern: torch.Tensor  # [16] uint8; poison repeats it
        try:
            self.renew(filled=filled, seed=seed, values=values)
        except BaseException:  # from `generate`; the memory must be released
            self.close_arenas()
            raise

    def _make_arenas(self, *, sealed: bool) -> Mapping[ArenaName, Arena]:
        return arenas(self._layout, self._device.kind, self.sets, sealed=sealed)

    def renew(self, *, filled: bool = True, seed: int | None = None, values: Sequence[ResolvedCase] = ()) -> None:
        """Draw new inputs, and new poison for the outputs. No other process may still have the arenas mapped.

        Args:
            filled: whether to make inputs at all.
            seed: the seed of the inputs; None: a random one.
            values: cases of the same sizes. The calls use their fills and options, in turn, instead of their own.
        """
        self._values = values
        self._fills = [{tensor.name: tensor.fill for tensor in case.tensors} for case in values]
        self.seed = secrets.randbits(63) if seed is None else seed
        self._pattern = poison(secrets.token_bytes(16)).to(self._device.torch_device)
        self._put_poison(self._output_bytes)
        self._initial_copy = None  # released before the next copy is made
        if filled:
            self._fill_padding()
            self._fill()
            self._initial_copy = self._copy()
        elif self._device.on_host:
            for place in self._arenas.keys() - {"outputs"}:
                self._arenas[place].bytes.zero_()  # so that its pages are allocated, like those of a filled arena
        self._device.synchronize()

    @property
    def descriptors(self) -> tuple[int, ...]:
        """The file descriptors of the arenas, in the order of the layout's `strides`."""
        return descriptors(self._arenas)

    @property
    def _output_bytes(self) -> torch.Tensor:
        return self._arenas["outputs"].bytes[: self.sets * self._layout.output_stride]

    def draw_sample(self, called: Sequence[int]) -> WordSample:
        """Choose random words of the outputs of the calls `called`, from each output in proportion to its size."""
        outputs = self._layout.outputs
        words = np.array([-(-s.tensor.elements * DTYPES[s.tensor.dtype].size_bytes // 8) for s in outputs])
        dice = np.random.default_rng(secrets.randbits(128))
        slots = dice.choice(len(words), SAMPLED_WORDS, p=words / sum(words))
        drawn, within = dice.random(SAMPLED_WORDS), np.empty(SAMPLED_WORDS, dtype=np.int64)
        for number in np.unique(slots):
            within[slots == number] = outputs[number].words(drawn[slots == number])
        places = dice.choice(np.array(called), SAMPLED_WORDS) * (self._layout.output_stride // 8) + within
        on_device = torch.from_numpy(places.astype(np.int64)).to(self._device.torch_device)
        sample = WordSample(on_device, torch.empty_like(on_device))
        self._device.synchronize()
        return sample

    def take(self, sample: WordSample) -> None:
        """Read the sampled words. This takes some microseconds; copying all outputs would take milliseconds."""
        self._device.take(self._output_bytes.view(torch.int64), sample.places, sample.seen)

    def holds(self, sample: WordSample) -> bool:
        """Whether the snapshot has the values that the sample read."""
        return torch.equal(self._snapshot.view(torch.int64)[sample.places], sample.seen)

    def snapshot(self) -> None:
        """Copy all outputs into private memory, where the runner cannot change them.

        Once the arenas are closed, this does nothing, and the last snapshot remains.
        """
        if not self._is_open:
            return
        self._snapshot = self._output_bytes.clone()
        self._device.synchronize()

    def out_of_bounds(self, called: Sequence[int]) -> OutOfBoundsWrite | None:
        """The first write outside the outputs, or to outputs of a call that was not made; None if there is none."""
        for zone in self._layout.red_zones():
            if written := self._written(zone):
                return written
        sets = self._snapshot.view(self.sets, -1)
        idle = sorted(set(range(self.sets)) - set(called))
        for slot in self._layout.outputs if idle else ():
            if slot.tensor.role == "output":
                low, high = slot.offset, slot.offset + slot.nbytes
                if bool((sets[idle, low:high] != self._poison(low, high)).any()):
                    return OutOfBoundsWrite(idle[0], f"wrote to `{slot.tensor.name}` of a call that was not made")
        return self._changed_inout(idle)

    def _written(self, zone: RedZone) -> OutOfBoundsWrite | None:
        """The first write to a red zone. Checks as many calls at a time as memory allows."""
        stride = self._layout.output_stride
        held = self._poison(zone.low, zone.high).as_strided(zone.shape, zone.strides)
        at_once = max(1, self._device.chunk_bytes // max(1, zone.nbytes))
        for first in range(0, self.sets, at_once):
            shape = (min(at_once, self.sets - first), *zone.shape)
            found = self._snapshot.as_strided(shape, (stride, *zone.strides), first * stride + zone.low)
            bad = found != held
            if bool(bad.any()):
                k = int(bad.nonzero()[0, 0])
                return written_to(zone, first + k, bad[k])
        return None

    def _changed_inout(self, idle: Sequence[int]) -> OutOfBoundsWrite | None:
        """The first `inout` that changed although its call was not made."""
        if not idle or all(slot.tensor.role != "inout" for slot in self._layout.outputs):
            return None
        for k, tensors in enumerate(self._stacked_inputs(1)):
            for slot, tensor in zip(self._layout.slots, tensors, strict=True) if k in idle else ():
                kept = (
                    slot.tensor.role != "inout"
                    or tensor is None
                    or same_bits(self._stacked(self._snapshot, slot, [k]), tensor)
                )
                if not kept:
                    return OutOfBoundsWrite(k, f"wrote to `{slot.tensor.name}` of a call that was not made")
        return None

    def inputs_changed(self) -> str | None:
        """The name of the first input whose shared memory has changed, or None."""
        for k, tensors in enumerate(self._stacked_inputs(1)):
            for slot, tensor in zip(self._layout.slots, tensors, strict=True):
                if not (slot.writable or tensor is None or same_bits(self._shared(slot, k), tensor[0])):
                    return slot.tensor.name
        return None

    def judge(
        self, truth: Truth, called: Sequence[int]
    ) -> Iterator[tuple[int, ExpectedOutputs, dict[str, torch.Tensor]]]:
        """Yield (first call, expected outputs, actual outputs) for groups of the calls that were made.

        Every tensor is stacked: `[c, *shape]` for c calls.
        """
        wanted = set(called)
        per_set = max(1, self._layout.input_stride + self._layout.output_stride)
        chunk = max(1, min(self.sets, self._device.chunk_bytes // per_set))
        first = 0
        for tensors in self._stacked_inputs(chunk):
            calls = [k for k in range(first, min(first + chunk, self.sets)) if k in wanted]
            if calls:
                rows = [k - first for k in calls]
                inputs = {
                    s.tensor.name: t if len(rows) == len(t) else carrier(t)[rows].view(t.dtype)
                    for s, t in zip(self._layout.slots, tensors, strict=True)
                    if t is not None
                }
                got = {s.tensor.name: self._stacked(self._snapshot, s, calls) for s in self._layout.outputs}
                yield calls[0], truth(inputs, len(calls)), got
            first += chunk

    def poison(self, slot_name: str, count: int) -> torch.Tensor:
        """The content of an output before the call, `[count, *shape]`."""
        slot = self._outputs_by_name[slot_name]
        held = self._poison(slot.offset, slot.offset + slot.nbytes).view(dtype_of(slot))
        return viewed(held, slot.tensor.shape, self._strides(slot) or ()).expand(count, *slot.tensor.shape)

    def _put_poison(self, outputs: torch.Tensor) -> None:
        """Fill the output regions of calls [uint8] with poison."""
        outputs.view(-1, len(self._pattern)).copy_(self._pattern)

    def _poison(self, low: int, high: int) -> torch.Tensor:
        """The poison of these bytes of a call's output region. It is made each time, to save memory."""
        skipped = low % len(self._pattern)
        times = -(-(skipped + high - low) // len(self._pattern))
        return self._pattern.repeat(times)[skipped : skipped + high - low]

    def close_arenas(self) -> None:
        """Release the shared memory; the snapshot remains. Idempotent."""
        self._is_open = False
        for arena in self._arenas.values():
            arena.close()

    def _fill_padding(self) -> None:
        """Put random bytes between the elements of inputs that have strides."""
        for slot in self._layout.slots:
            if slot.tensor.strides is not None and not slot.writable:
                between = self._poison(0, slot.nbytes)
                for k in range(self.sets):
                    self._region(slot.place, k)[slot.offset : slot.offset + slot.nbytes].copy_(between)

    def _fill(self) -> None:
        generator = self._device.generator(self.seed)
        for k in range(self.sets):
            case = self.values_of(k)
            generated = self._generate(seed_of_set(self.seed, k), case) if self._generate else {}
            for group in self._draw_groups:
                if group[0].tensor.name in generated:
                    members = [generated[slot.tensor.name] for slot in group]
                elif len(group) == 1 and group[0].tensor.strides is None:
                    fill(self._shared(group[0], k), self._fill_of(group, k), generator)
                    continue
                else:
                    drawn = self._room_for(group, 1)
                    fill(drawn, self._fill_of(group, k), generator)
                    members = [tensor[0] for tensor in _members(drawn, group)]
                places = [carrier(self._shared(slot, k)) for slot in group]
                torch._foreach_copy_(places, [carrier(member) for member in members])

    def values_of(self, k: int) -> ResolvedCase | None:
        """The case whose values call k has; None: the layout's own case."""
        return self._values[k % len(self._values)] if self._values else None

    def _fill_of(self, group: Sequence[Slot], k: int) -> Fill:
        """The fill that all tensors of a group share, for call k."""
        tensor = group[0].tensor
        return self._fills[k % len(self._fills)][tensor.name] if self._fills else tensor.fill

    def _copy(self) -> Mapping[ArenaName, torch.Tensor] | None:
        """A copy of the inputs of all calls (with inouts, also of the outputs); None if they can be drawn again."""
        if not self._copies_inputs:
            return None
        places = {slot.place for slot in self._layout.slots if slot.tensor.role != "output"}
        return {place: memory.clone() for place, memory in self._memory.items() if place in places}

    @property
    def _memory(self) -> Mapping[ArenaName, torch.Tensor]:
        """The shared memory of all calls: `[sets * stride]` uint8."""
        strides = self._layout.strides
        return {place: arena.bytes[: self.sets * strides[place]] for place, arena in self._arenas.items()}

    def _stacked_inputs(self, chunk: int) -> Iterator[list[torch.Tensor | None]]:
        """Yield the inputs that `_fill` made, from private memory, for `chunk` calls at a time.

        Each item has a tensor `[c, *shape]` for every slot, and None for outputs.
        """
        return self._redraw(chunk) if self._initial_copy is None else self._slices(self._initial_copy, chunk)

    def _slices(self, memory: Mapping[ArenaName, torch.Tensor], chunk: int) -> Iterator[list[torch.Tensor | None]]:
        """Yield the inputs from memory that is a copy of the arenas before the calls."""
        for first in range(0, self.sets, chunk):
            calls = range(first, min(first + chunk, self.sets))
            yield [
                self._stacked(memory[slot.place], slot, calls) if slot.tensor.role != "output" else None
                for slot in self._layout.slots
            ]

    def _redraw(self, chunk: int) -> Iterator[list[torch.Tensor | None]]:
        """Draw the declared fills again, in the order of the first time, so that the seed gives the same bytes."""
        generator = self._device.generator(self.seed)
        for first in range(0, self.sets, chunk):
            count = min(chunk, self.sets - first)
            rooms = [self._room_for(group, count) for group in self._draw_groups]
            for k in range(count):
                for group, room in zip(self._draw_groups, rooms, strict=True):
                    fill(room[k], self._fill_of(group, first + k), generator)
            made: dict[str, torch.Tensor] = {}
            for group, room in zip(self._draw_groups, rooms, strict=True):
                made.update(zip((slot.tensor.name for slot in group), _members(room, group), strict=True))
            yield [made.get(slot.tensor.name) for slot in self._layout.slots]

    def _room_for(self, group: Sequence[Slot], count: int) -> torch.Tensor:
        """Private memory for the tensors of a group, which have one dtype, in `count` calls: `[count, elements]`."""
        elements = sum(slot.tensor.elements for slot in group)
        return torch.empty(count, elements, dtype=dtype_of(group[0]), device=self._device.torch_device)

    def _shared(self, slot: Slot, k: int) -> torch.Tensor:
        return placed(slot, self._region(slot.place, k))

    def _region(self, place: ArenaName, k: int) -> torch.Tensor:
        """The memory of call k in one arena."""
        stride = self._layout.strides[place]
        return self._arenas[place].bytes[k * stride : (k + 1) * stride]

    def _strides(self, slot: Slot) -> tuple[int, ...] | None:
        return self.result_strides.get(slot.tensor.name, slot.tensor.strides)

    def _stacked(self, memory: torch.Tensor, slot: Slot, sets: Sequence[int]) -> torch.Tensor:
        """The tensor of a slot in several calls, `[c, *shape]`, from memory with one region per call."""
        regions = memory.view(self.sets, -1)
        low, high = slot.offset, slot.offset + slot.nbytes
        if low == high:
            return torch.empty((len(sets), *slot.tensor.shape), dtype=dtype_of(slot), device=memory.device)
        if len(sets) == sets[-1] - sets[0] + 1:
            raw = regions[sets[0] : sets[-1] + 1, low:high].contiguous()
        else:
            raw = regions[list(sets), low:high]
        shape, strides = (len(sets), *slot.tensor.shape), self._strides(slot)
        if strides is None:
            return raw.view(dtype_of(slot)).view(shape)
        between = carrier(raw.view(dtype_of(slot)))
        return between.as_strided(shape, (slot.tensor.span, *strides)).contiguous().view(dtype_of(slot))


def seed_of_set(seed: int, k: int) -> int:
    """The seed from which `generate` makes the inputs of call k of a batch."""
    return int.from_bytes(hashlib.sha256(f"{seed} {k}".encode()).digest()[:8]) >> 1


def _draw_groups(layout: Layout) -> tuple[tuple[Slot, ...], ...]:
    """The slots with a value before the call, in groups that are drawn together: small members of one list.

    A list may have thousands of tensors, and each draw is a separate kernel launch.
    """
    drawn = (slot for slot in layout.slots if slot.tensor.role != "output")

    def group(slot: Slot) -> str:
        return slot.tensor.list_name if slot.tensor.list_name and slot.nbytes <= _SMALL_BYTES else slot.tensor.name

    return tuple(tuple(group) for _, group in itertools.groupby(drawn, key=group))


def _members(room: torch.Tensor, group: Sequence[Slot]) -> list[torch.Tensor]:
    """The tensors of a group, `[count, *shape]` each, which are consecutive in the rows of `[count, elements]`."""
    sizes = [slot.tensor.elements for slot in group]
    parts = zip(room.split(sizes, dim=1), group, strict=True)
    return [part.view(len(room), *slot.tensor.shape) for part, slot in parts]
