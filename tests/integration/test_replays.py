"""The judge's side of recording and replaying, against a runner and a launcher that are scripted, honest and not."""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from harness.errors import SandboxError
from harness.judge.correctness.graded_case import GradedCase
from harness.judge.session import BuildRequest, Session, SubmissionFault
from harness.judge.session.time_limit import TimeLimit
from harness.judge.timing import NotReplayed
from harness.judge.timing.replayed.benchmark import Player
from harness.judge.timing.replayed.fresh_inputs import FreshInputs
from harness.judge.timing.replayed.launcher import (
    LauncherSession,
    RecordedCall,
    ScratchCopy,
    _check_returned,
    record,
    scratch_for,
)
from harness.problem import load
from harness.problem.reference import Reference
from harness.problem.spec import CallSpec
from harness.recording.file import pack
from harness.recording.schema import Recording, Returned
from harness.recording.windows import OUTPUTS, SCRATCH
from harness.verdict import Outcome
from harness.wire import checks, commands
from kernelmark.diagnostics.selftest import PROBLEMS
from tests.recordings import BLOBS, CALL
from tests.runners import Act, Script, Scripted, answering, but, doubling, failing

LIMIT_S = 2.0
DOUBLE = load(PROBLEMS / "double")
ADAM = Path(__file__).parents[2] / "problems/adam_multi_tensor"
PROBLEM = DOUBLE.model_copy(update={"limits": DOUBLE.limits.model_copy(update={"time_s": LIMIT_S})})
CASE = GradedCase(PROBLEM, Reference.load(PROBLEM), "cpu", PROBLEM.resolve(PROBLEM.tests[1]))
WITH_SCRATCH = replace(CALL, scratch_bytes=8192)
TIMES = {"device_ns": 5000, "event_ns": 7000, "span_ns": 20_000, "nodes_ns": [5000]}
LOADED = {
    "functions": [{"registers": 16, "local_bytes": 0, "shared_bytes": 0}],
    "event_extra_ns": 2900,
    "span_extra_ns": 20_000,
}


def recording(file: bytes, scratch: bytes = b"", reply: dict[str, Any] | None = None) -> Act:
    """A runner that doubles honestly, and delivers this."""
    answer = {"file_bytes": len(file), "scratch_bytes": len(scratch), "reason": "", "note": "", "host_ns": 0}
    answer |= reply or {}

    def deliver(script: Script, token: int, body: dict[str, Any]) -> None:
        os.pwrite(script.descriptors[0], file, 0)
        if scratch:
            os.pwrite(script.descriptors[1], scratch, 0)
        script.reply(token, "Done")

    return but(doubling(), Record=answering("Recorded", **answer), Deliver=deliver)


def recorded(act: Act, case: GradedCase = CASE) -> RecordedCall:
    session = Session.start(Scripted(act), "cpu", PROBLEM.limits, modes=["records"])
    with session:
        session.handshake()
        build = commands.Build(language="py", symbols=("twice",), architecture="x86")
        session.build(BuildRequest(build, b"", {}), LIMIT_S)
        return record(session, case)


def test_a_recording_comes_whole_and_its_scratch_is_copied() -> None:
    scratch = bytes(range(256)) * 32
    found = recorded(recording(pack(WITH_SCRATCH, BLOBS), scratch))
    assert found.packed.recording == WITH_SCRATCH
    memory = torch.zeros(found.scratch.nbytes, dtype=torch.uint8)
    found.scratch.put(memory)
    assert bytes(memory.numpy()) == scratch


def test_results_in_the_scratch_are_no_part_of_its_copy() -> None:
    memory = torch.arange(64, dtype=torch.uint8)
    results = [Returned(SCRATCH.start + at, OUTPUTS.start, nbytes) for at, nbytes in ((48, 16), (8, 8), (16, 4))]
    copy = ScratchCopy(memory, results)
    memory.fill_(255)
    copy.put(memory)
    assert memory.tolist() == [*range(8), *[255] * 12, *range(20, 48), *[255] * 16]


def test_what_cannot_be_replayed_says_why() -> None:
    with pytest.raises(NotReplayed, match=r"^a host node$"):
        recorded(recording(b"", reply={"reason": "a host node"}))
    for size in ({"file_bytes": 1 << 40}, {"scratch_bytes": 1 << 40}):
        with pytest.raises(NotReplayed, match="too large a recording"):
            recorded(recording(b"", reply=size))


@pytest.mark.parametrize(
    ("file", "scratch"),
    [
        (b"", b""),
        (b"{}" * 100, b""),
        (pack(CALL, BLOBS)[:-1], b""),
        (pack(CALL, BLOBS), b"x" * 64),
        (pack(WITH_SCRATCH, BLOBS), b""),
    ],
    ids=["nothing", "noise", "cut short", "scratch that it has not", "scratch that never came"],
)
def test_what_is_no_recording_is_the_submissions_fault(file: bytes, scratch: bytes) -> None:
    with pytest.raises(SubmissionFault, match="the runner's recording is not valid") as raised:
        recorded(recording(file, scratch))
    assert raised.value.outcome is Outcome.REJECTED


def test_a_recording_that_is_cut_off_while_it_is_read_ends_no_judge() -> None:
    def cut_off(script: Script, token: int, body: dict[str, Any]) -> None:
        os.ftruncate(script.descriptors[0], 3)
        script.reply(token, "Done")

    with pytest.raises(SubmissionFault, match="a recording of 3 bytes"):
        recorded(but(recording(pack(CALL, BLOBS)), Deliver=cut_off))


Doing = Callable[[Any, Any], None]


def launching(work: Doing) -> Act:
    """A launcher that maps both arenas for a call and works on `x` and the whole output region."""

    def replay(script: Script, token: int, body: dict[str, Any]) -> None:
        inputs, outputs = script.arenas()
        with mmap.mmap(inputs, 0, prot=mmap.PROT_READ) as given, mmap.mmap(outputs, 0) as to:
            slots = {slot.tensor.name: slot for slot in CASE.layout.slots}
            x = np.frombuffer(given[: slots["x"].nbytes], np.float32)
            y = np.frombuffer(to, np.uint8)
            work(x, y)
            del y
        script.reply(token, "Replayed", **TIMES)

    return but(replay, Load=answering("Loaded", **LOADED), Release=answering("Done"))


def twice(x: Any, region: Any) -> None:
    y = next(slot for slot in CASE.layout.outputs)
    region[y.offset : y.offset + y.nbytes].view(np.float32)[:] = 2 * x


@contextmanager
def launcher_of(act: Act, begin: Callable[[Script], None] | None = None) -> Iterator[LauncherSession]:
    provider = Scripted(act, begin) if begin else Scripted(act)
    with Session.start(provider, "cpu", PROBLEM.limits, role="launcher") as session:
        yield LauncherSession(session, "cpu")


@contextmanager
def loaded(
    act: Act, of: Recording = CALL, scratch: bytes = b"", case: GradedCase = CASE
) -> Iterator[tuple[Player, FreshInputs]]:
    found = recorded(recording(pack(of, BLOBS), scratch), case)
    with (
        closing(FreshInputs(CASE)) as fresh,
        launcher_of(act) as launcher,
        scratch_for([found], "cpu") as memory,
    ):
        yield Player(launcher, found, case, memory), fresh


def make(player: Player, fresh: FreshInputs, calls: int) -> None:
    for _ in range(calls):
        fresh.next()
        player.play(fresh)
        fresh.keep()
    fresh.check()


def test_every_call_is_made_on_other_inputs_and_is_timed() -> None:
    seen: list[bytes] = []

    def work(x: Any, region: Any) -> None:
        seen.append(x.tobytes())
        twice(x, region)

    with loaded(launching(work)) as (player, fresh):
        calls = fresh.group + 3
        make(player, fresh, calls)
    assert [call.device_ns for call in player.made] == [5000] * calls
    assert len(set(seen)) == calls
    assert len(set(fresh.seeds)) == 2


def test_a_baseline_is_given_the_inputs_of_the_call_before() -> None:
    seen: list[bytes] = []

    def work(x: Any, region: Any) -> None:
        seen.append(x.tobytes() + region.tobytes())
        twice(x, region)

    with loaded(launching(work)) as (player, fresh):
        make(player, fresh, 1)
        fresh.again()
        player.play(fresh)
    assert seen[0] == seen[1]


def test_arenas_are_handed_over_again_only_when_they_are_others() -> None:
    given, honest = [], launching(twice)

    def replay(script: Script, token: int, body: dict[str, Any]) -> None:
        given.append(len(script.descriptors))
        honest(script, token, body)

    with loaded(but(honest, Replay=replay)) as (player, fresh):
        make(player, fresh, 2)
        fresh.move()
        make(player, fresh, 2)
    assert given == [2, 0, 2, 0]


def cached() -> Doing:
    """Computes once, and writes that result ever after."""
    kept: list[Any] = []

    def work(x: Any, region: Any) -> None:
        kept.append(x.copy())
        twice(kept[0], region)

    return work


def outside(x: Any, region: Any) -> None:
    twice(x, region)
    region[0] ^= 1


@pytest.mark.parametrize(
    ("work", "outcome", "message"),
    [
        (lambda x, region: None, Outcome.WRONG_ANSWER, "one of the calls 1 to 3: y"),
        (cached(), Outcome.WRONG_ANSWER, "one of the calls 1 to 3: y"),
        (outside, Outcome.RUNTIME_ERROR, "call 1: wrote 1 byte outside its outputs"),
    ],
    ids=["nothing is done", "done once", "a red zone"],
)
def test_wrong_outputs_of_any_call_are_found(work: Doing, outcome: Outcome, message: str) -> None:
    with loaded(launching(work)) as (player, fresh), pytest.raises(SubmissionFault, match=message) as raised:
        make(player, fresh, 3)
    assert raised.value.outcome is outcome


def launching_with_scratch(work: Callable[[Any, Any, Any], None]) -> Act:
    """A launcher whose calls work on `x`, the output region and the scratch, as bytes."""
    held: list[mmap.mmap] = []

    def load_it(script: Script, token: int, body: dict[str, Any]) -> None:
        held.append(mmap.mmap(script.descriptors[1], 0))
        script.reply(token, "Loaded", **LOADED)

    def replay(script: Script, token: int, body: dict[str, Any]) -> None:
        scratch = np.frombuffer(held[0], np.uint8)
        launching(lambda x, region: work(x, region, scratch))(script, token, body)

    return but(replay, Load=load_it)


def test_scratch_is_what_it_was_before_every_call() -> None:
    scratch, seen = b"\x07" * 8192, list[bytes]()

    def work(x: Any, region: Any, found: Any) -> None:
        seen.append(found[:8192].tobytes())
        found[:] = 0xFF
        twice(x, region)

    with loaded(launching_with_scratch(work), WITH_SCRATCH, scratch) as (player, fresh):
        make(player, fresh, 3)
    assert seen == [scratch] * 3


def test_players_use_the_same_scratch_and_see_nothing_of_each_other() -> None:
    seen: dict[str, list[tuple[int, bytes]]] = {"small": [], "large": []}

    def of(name: str) -> Callable[[Any, Any, Any], None]:
        def work(x: Any, region: Any, found: Any) -> None:
            seen[name].append((len(found), found.tobytes()))
            found[:] = 0xFF
            twice(x, region)

        return work

    small, large = b"\x07" * 4096, b"\x09" * 16384
    of_size = [replace(CALL, scratch_bytes=len(first)) for first in (small, large)]
    both = [recorded(recording(pack(each, BLOBS), first)) for each, first in zip(of_size, (small, large), strict=True)]
    with (
        closing(FreshInputs(CASE)) as fresh,
        launcher_of(launching_with_scratch(of("small"))) as one,
        launcher_of(launching_with_scratch(of("large"))) as other,
        scratch_for(both, "cpu") as memory,
    ):
        players = [Player(*each, CASE, memory) for each in zip((one, other), both, strict=True)]
        for player in players * 2:
            make(player, fresh, 1)
    assert seen["small"] == [(16384, small.ljust(16384, b"\0"))] * 2
    assert seen["large"] == [(16384, large)] * 2


RETURNS = PROBLEM.model_copy(update={"call": CallSpec(style="returns")})
RETURNING_CASE = GradedCase(RETURNS, Reference.load(RETURNS), "cpu", RETURNS.resolve(RETURNS.tests[1]))
Y = CASE.layout.outputs[0]
MADE = 512  # where the call makes its result, in the scratch
RETURNING = replace(
    CALL, scratch_bytes=MADE + Y.nbytes, returned=(Returned(SCRATCH.start + MADE, OUTPUTS.start + Y.offset, Y.nbytes),)
)


def returning(work: Callable[[Any, Any], None]) -> Act:
    """A launcher whose call works on `x` and the memory of the result, and not on the outputs."""
    return launching_with_scratch(lambda x, _, scratch: work(x, scratch[MADE : MADE + Y.nbytes].view(np.float32)))


def doubled(x: Any, result: Any) -> None:
    result[:] = 2 * x


def half(x: Any, result: Any) -> None:
    result[: len(x) // 2] = 2 * x[: len(x) // 2]


def test_a_result_is_fetched_from_where_the_call_made_it() -> None:
    scratch = bytes(RETURNING.scratch_bytes)
    with loaded(returning(doubled), RETURNING, scratch, RETURNING_CASE) as (player, fresh):
        make(player, fresh, 3)


@pytest.mark.parametrize(
    ("work", "message"),
    [(lambda x, result: None, r"y .*: never written"), (half, r"1,5\d\d of 3,027 elements wrong")],
    ids=["nothing is done", "half is done"],
)
def test_a_result_that_the_call_does_not_write_is_never_written(work: Doing, message: str) -> None:
    scratch = b"\x01" * RETURNING.scratch_bytes
    with (
        loaded(returning(work), RETURNING, scratch, RETURNING_CASE) as (player, fresh),
        pytest.raises(SubmissionFault, match=message),
    ):
        make(player, fresh, 3)


RESULT = RETURNING.returned[0]


@pytest.mark.parametrize(
    "returned",
    [
        (replace(RESULT, nbytes=RESULT.nbytes - 4),),
        (replace(RESULT, target=RESULT.target + 4, nbytes=RESULT.nbytes - 4),),
        (replace(RESULT, target=OUTPUTS.start),),
        (RESULT, replace(RESULT, source=RESULT.source + RESULT.nbytes)),
    ],
    ids=["a part of it", "its end", "a red zone", "the same output twice"],
)
def test_a_result_that_is_not_an_output_is_refused(returned: tuple[Returned, ...]) -> None:
    hostile = replace(RETURNING, returned=returned, scratch_bytes=2 * RETURNING.scratch_bytes)
    with pytest.raises(SubmissionFault, match="which is not an output's"):
        recorded(recording(pack(hostile, BLOBS), bytes(hostile.scratch_bytes)), RETURNING_CASE)


def test_two_results_in_the_same_memory_are_refused() -> None:
    """Written once, they would be fetched twice, and the second copy is not timed."""
    shifted = replace(RESULT, source=RESULT.source + 4, nbytes=RESULT.nbytes - 4)
    hostile = replace(RETURNING, returned=(shifted, RESULT))
    with pytest.raises(SubmissionFault, match="two results in the same memory"):
        recorded(recording(pack(hostile, BLOBS), bytes(hostile.scratch_bytes)), RETURNING_CASE)


def test_a_call_that_should_write_its_outputs_leaves_none_elsewhere() -> None:
    with pytest.raises(SubmissionFault, match="results, where a call returns none"):
        recorded(recording(pack(RETURNING, BLOBS), bytes(RETURNING.scratch_bytes)))


def test_what_an_inout_holds_is_not_copied_for_the_call() -> None:
    problem = load(ADAM).model_copy(update={"call": CallSpec(style="returns")})
    case = GradedCase(problem, Reference.load(problem), "cpu", problem.resolve(problem.tests[0]))
    slot = next(slot for slot in case.layout.outputs if slot.tensor.role == "inout")
    with pytest.raises(checks.WireError, match="which is not an output's"):
        _check_returned([Returned(SCRATCH.start, OUTPUTS.start + slot.offset, slot.nbytes)], case)


def silence(script: Script, token: int, body: dict[str, Any]) -> None:
    time.sleep(2 * LIMIT_S)


@pytest.mark.parametrize(
    ("act", "outcome", "message"),
    [
        (silence, Outcome.TIMEOUT, "gave no answer within 2 s, while timing prime"),
        (answering("Done"), Outcome.REJECTED, "answered Done"),
        (failing("runtime_error", "CUDA driver: ", fatal=True), Outcome.RUNTIME_ERROR, "CUDA driver"),
    ],
    ids=["it never ends", "it answers something else", "the driver refuses it"],
)
def test_device_code_that_spoils_its_launcher_spoils_its_own_grading(act: Act, outcome: Outcome, message: str) -> None:
    with pytest.raises(SubmissionFault, match=message) as raised, loaded(act):
        pass
    assert raised.value.outcome is outcome


BROKEN = answering("Broken", message="KeyError: 7", traceback="in our own code")


def test_a_mistake_of_the_launchers_own_is_our_failure() -> None:
    with pytest.raises(SandboxError, match=r"the launcher failed while timing prime: KeyError: 7"), loaded(BROKEN):
        pass


def test_no_runner_can_blame_its_fault_on_us() -> None:
    with pytest.raises(SubmissionFault, match="answered Broken") as raised:
        recorded(BROKEN)
    assert raised.value.outcome is Outcome.REJECTED


def test_a_launcher_that_does_not_start_is_our_failure() -> None:
    def hang_up(script: Script) -> None:
        script.socket.close()

    with launcher_of(silence, hang_up) as launcher, pytest.raises(SandboxError):
        launcher.load(recorded(recording(pack(CALL, BLOBS))), CASE, None, TimeLimit(LIMIT_S))
