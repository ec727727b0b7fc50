"""Records a submission's call in its runner, and lets a launcher replay it on new inputs. Trusted.

The recording comes from the runner, and is checked like a frame. The launcher is our own program; only the code that it
runs on the device is untrusted. The outputs of every call are checked.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise

import torch

from harness.arena import Arena, give_back, make_arena, settle
from harness.device import DEVICES
from harness.errors import SandboxError
from harness.judge.correctness.graded_case import GradedCase
from harness.judge.session import Session, SubmissionFault
from harness.judge.session.memory_file import content_of, memory_file
from harness.judge.session.time_limit import TimeLimit
from harness.judge.timing import NoMemoryToReplay, NotReplayed
from harness.judge.timing.replayed.fresh_inputs import FreshInputs
from harness.recording.file import MAX_FILE_BYTES, Packed, unpack
from harness.recording.schema import MAX_SCRATCH_BYTES, Returned
from harness.recording.windows import OUTPUTS, SCRATCH
from harness.verdict import DeviceKind, Outcome
from harness.wire import checks, commands, replies

_PART_BYTES = 256 << 20


class ScratchCopy:
    """A private copy of the parts of scratch memory [uint8] that are not zero.

    It excludes results that a call returns in scratch memory: the judge puts poison there before each call, and they
    may be as large as all outputs.
    """

    def __init__(self, memory: torch.Tensor, returned: Sequence[Returned]) -> None:
        self.nbytes = len(memory)
        self._parts: list[tuple[slice, torch.Tensor | None]] = []  # None: all zero
        start = 0
        for result in sorted(returned, key=lambda result: result.source):
            made = result.source - SCRATCH.start
            self._keep(memory, start, made)
            start = made + result.nbytes
        self._keep(memory, start, self.nbytes)

    def _keep(self, memory: torch.Tensor, start: int, end: int) -> None:
        for low in range(start, end, _PART_BYTES):
            part = slice(low, min(low + _PART_BYTES, end))
            self._parts.append((part, memory[part].clone() if bool(memory[part].any()) else None))

    def put(self, memory: torch.Tensor) -> None:
        """Restore the memory to its recorded content; memory beyond that becomes zero."""
        memory[self.nbytes :].zero_()
        for part, content in self._parts:
            if content is None:
                memory[part].zero_()
            else:
                memory[part].copy_(content)


@dataclass(frozen=True)
class RecordedCall:
    """A checked recording, and a private copy of its scratch memory.

    By the runner: `note` is what may make a replay fail, `host_ns` the host's time to launch the call.
    """

    file: bytes
    packed: Packed
    scratch: ScratchCopy | None
    note: str
    result_strides: Mapping[str, tuple[int, ...]]
    host_ns: int = 0


@contextmanager
def scratch_for(recordings: Sequence[RecordedCall], device: DeviceKind) -> Iterator[Arena | None]:
    """Allocate scratch memory that these recordings share; yields None if none of them needs any.

    They share it because the physical location of memory changes the time of a large call by up to 6 %. Its content is
    restored before every call.

    Raises:
        DeviceError: out of memory.
    """
    nbytes = max((recorded.scratch.nbytes for recorded in recordings if recorded.scratch), default=0)
    if not nbytes:
        yield None
        return
    settle(device)
    arena = make_arena(device, nbytes, read_only=False)
    try:
        yield arena
    finally:
        arena.close()


def record(session: Session, case: GradedCase) -> RecordedCall:
    """Let the runner record its call of a case, on inputs that are used for nothing else.

    Raises:
        NotReplayed: the runner cannot record it.
        SubmissionFault: the call failed, or the recording is not valid, which an honest runner never sends.
    """
    give_back(case.device)
    doing, limit, practice = f"recording {case.name}", case.time_limit(), case.batch(1, judged=False)
    scratch: Arena | None = None
    try:
        case.reference.release_large()
        case.bind(session, practice, limit=limit, doing=doing)
        called = session.ask(commands.Call(sets=(0,), begins=True), replies.Done, limit=limit, doing=doing)
        reply = _record(session, limit, doing)
        if reply.reason:
            raise NotReplayed(reply.reason)
        if reply.file_bytes > MAX_FILE_BYTES or reply.scratch_bytes > MAX_SCRATCH_BYTES:
            raise NotReplayed(f"too large a recording: {reply.file_bytes:,} bytes, {reply.scratch_bytes:,} of scratch")
        session.ask(commands.Unmap(), replies.Done, limit=limit, doing=doing)
        practice.close_arenas()  # before scratch memory is allocated, which may be as large
        if reply.scratch_bytes:
            scratch = make_arena(case.device, reply.scratch_bytes, read_only=False)
        whole = _fetch(session, reply.file_bytes, scratch, limit, doing)
        session.ask(commands.Release(), replies.Done, limit=limit, doing=doing)
        packed = _parse(whole, reply.scratch_bytes, case, doing)
        copy = ScratchCopy(scratch.bytes[: reply.scratch_bytes], packed.recording.returned) if scratch else None
        return RecordedCall(whole, packed, copy, reply.note, case.result_strides(called), reply.host_ns)
    finally:
        practice.close_arenas()
        if scratch:
            scratch.close()


def _record(session: Session, limit: TimeLimit, doing: str) -> replies.Recorded:
    """Let the runner record. If the runner dies, our recorder may be at fault, so the calls are just not replayed."""
    try:
        return session.ask(commands.Record(), replies.Recorded, limit=limit, doing=doing)
    except SubmissionFault as fault:
        if fault.survives:
            raise
        raise NotReplayed(fault.message) from None


def _fetch(session: Session, file_bytes: int, scratch: Arena | None, limit: TimeLimit, doing: str) -> bytes:
    """Let the runner write the recording into a file, and its scratch memory into the arena; returns the file."""
    with memory_file() as file:
        os.ftruncate(file, file_bytes)
        targets = (file, scratch.descriptor()) if scratch else (file,)
        try:
            session.ask(commands.Deliver(), replies.Done, limit=limit, doing=doing, descriptors=targets)
        except SubmissionFault as fault:
            raise NotReplayed(fault.message) from None
        return content_of(file, file_bytes)


def _parse(whole: bytes, scratch_bytes: int, case: GradedCase, doing: str) -> Packed:
    try:
        packed = unpack(whole)
        if packed.recording.scratch_bytes != scratch_bytes:
            raise checks.WireError(f"{packed.recording.scratch_bytes:,} bytes of scratch, where {scratch_bytes:,} came")
        _check_returned(packed.recording.returned, case)
    except checks.WireError as error:
        raise SubmissionFault(Outcome.REJECTED, f"{doing}: the runner's recording is not valid: {error}") from None
    return packed


def _check_returned(results: Sequence[Returned], case: GradedCase) -> None:
    """Require that each result is one whole output, in memory of its own.

    An inout cannot be a result: the judge would copy its initial values there before a call, which is not timed.

    Raises:
        WireError: a result is something else, or the problem's calls return nothing.
    """
    if results and case.problem.call.style == "writes":
        raise checks.WireError("results, where a call returns none")
    by_source = sorted(results, key=lambda result: result.source)
    if any(result.source + result.nbytes > following.source for result, following in pairwise(by_source)):
        raise checks.WireError("two results in the same memory")
    whole = [(slot.offset, slot.nbytes) for slot in case.layout.outputs if slot.tensor.role == "output"]
    for result in results:
        place = result.target - OUTPUTS.start, result.nbytes
        if place not in whole:
            raise checks.WireError(
                f"a result of {result.nbytes:,} bytes at {result.target:#x}, which is not an output's"
            )
        whole.remove(place)


class LauncherSession:
    """A launcher, which loads one recording at a time.

    Driver errors are charged to the submission, since the device code is its own.
    """

    def __init__(self, session: Session, device: DeviceKind, another: Callable[[], Session] | None = None) -> None:
        """`another` starts a launcher with several hardware queues, if the session's has one."""
        self._session, self._device, self._another = session, device, another
        self._scratch: Arena | None = None
        self._initial_scratch: ScratchCopy | None = None
        self._returned: tuple[Returned, ...] = ()
        self._result_strides: Mapping[str, tuple[int, ...]] = {}
        self._doing = ""
        self._mapped: tuple[int, ...] | None = None

    def prepare(self, recorded: RecordedCall) -> None:
        """Take another sandbox, for all recordings, if parts of this call may run side by side.

        It is up when this returns: it must not start while anything is timed.

        Raises:
            NoMemoryToReplay: it did not start; a second call tries again.
        """
        if self._another and recorded.packed.recording.overlaps:
            self._session.close()
            try:
                session = self._another()
                session.handshake()
            except SandboxError as error:
                raise NoMemoryToReplay(str(error)) from None
            self._session, self._another = session, None

    def load(self, recorded: RecordedCall, case: GradedCase, scratch: Arena | None, limit: TimeLimit) -> replies.Loaded:
        """Load a case's recording in place of the last one. The first call waits for the sandbox.

        `scratch`: from `scratch_for`; it must stay open while calls are made.

        Raises:
            SubmissionFault: it cannot be loaded.
        """
        self._session.handshake()
        self._mapped = None
        self._doing = f"timing {case.name}"
        self._returned, self._result_strides = recorded.packed.recording.returned, recorded.result_strides
        self._initial_scratch, self._scratch = recorded.scratch, scratch if recorded.scratch else None
        if self._initial_scratch and self._scratch:
            self._initial_scratch.put(self._scratch.bytes)
        command = commands.Load(
            input_bytes=case.layout.input_stride,
            output_bytes=case.layout.output_stride,
            host_bytes=case.layout.host_stride,
            scratch_bytes=self._scratch.nbytes if self._scratch else 0,
        )
        with memory_file(recorded.file) as file:
            shared = (file, self._scratch.descriptor()) if self._scratch else (file,)
            loaded = self._session.ask(command, replies.Loaded, limit=limit, doing=self._doing, descriptors=shared)
        give_back(self._device)
        return loaded

    def unload(self, limit: TimeLimit) -> None:
        """Release the recording and the memory of its calls. A fault is ignored here; the next call reports it."""
        with suppress(SubmissionFault, SandboxError):
            self._session.ask(commands.Release(), replies.Done, limit=limit, doing=self._doing)

    def play(self, fresh: FreshInputs, limit: TimeLimit) -> replies.Replayed:
        """Make one call on the content of the arenas. Its outputs are not checked here.

        The arenas stay mapped. A descriptor refers to the same arena until the next recording is loaded.

        Raises:
            SubmissionFault: the call failed.
        """
        if self._scratch and self._initial_scratch is not None:
            self._initial_scratch.put(self._scratch.bytes)
            for made, output in self._results(fresh.outputs):
                made.copy_(output)  # poison, so that an unwritten result is detected
            DEVICES[self._device].synchronize()
        descriptors = fresh.descriptors
        unmapped = () if descriptors == self._mapped else descriptors
        self._mapped = descriptors
        replayed = self._session.ask(
            commands.Replay(), replies.Replayed, limit=limit, doing=self._doing, descriptors=unmapped
        )
        for made, output in self._results(fresh.outputs):
            output.copy_(made)
        fresh.result_strides = self._result_strides
        return replayed

    def _results(self, outputs: torch.Tensor) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Yield, for each returned result, its bytes in scratch memory, and the bytes of its output."""
        for result in self._returned:
            assert self._scratch is not None
            made, output = result.source - SCRATCH.start, result.target - OUTPUTS.start
            yield self._scratch.bytes[made : made + result.nbytes], outputs[output : output + result.nbytes]
