"""A runner that breaks the protocol in every way: the judge gives an outcome or a `HarnessError`, and never waits on.

The conversations run over a real socket with a scripted runner; `test_wire.py` has the decoder by itself.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import re
import resource
import select
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.errors import HarnessError, SandboxError
from harness.judge.session import BuildRequest, Session, SubmissionFault, conversation, time_limit
from harness.judge.session.time_limit import TimeLimit
from harness.problem import Problem, load
from harness.submission import Submission
from harness.verdict import Check, Outcome
from harness.wire import commands, frame, protocol, replies
from kernelmark.diagnostics.selftest import PROBLEMS
from tests.grading import checked, graded
from tests.open_files import open_files
from tests.runners import Act, Script, Scripted, answering, doubling, failing

SUBMISSION = Submission.of("def scale(x, y): ...", "py", author="tester")
CALL_S = 1.0  # where a runner is to be late
SHORT_S = 0.2  # for many conversations in a row
PATIENT_S = 60.0
SO_PEEK_OFF = 42  # asm-generic/socket.h
CAP_SYS_ADMIN, CAP_SYS_RESOURCE = 21, 24


@pytest.fixture(scope="module")
def problem() -> Problem:
    return limited(load(PROBLEMS / "scale"), PATIENT_S)


def limited(problem: Problem, seconds: float) -> Problem:
    limits = problem.limits.model_copy(update={"call_s": seconds, "build_s": seconds})
    return problem.model_copy(update={"limits": limits})


def grade(problem: Problem, act: Act) -> Check:
    return checked(problem, SUBMISSION, provider=Scripted(act))


def raw(packet: bytes) -> Act:
    return lambda script, token, body: script.socket.sendall(packet)


def twice(script: Script, token: int, body: dict[str, Any]) -> None:
    script.reply(token, "Done")
    script.reply(token, "Done")


def wrong_token(script: Script, token: int, body: dict[str, Any]) -> None:
    script.reply(token ^ 1, "Done")


def early(script: Script, token: int, body: dict[str, Any]) -> None:
    for guess in range(20):
        script.reply(guess, "Done")


def with_descriptors(script: Script, token: int, body: dict[str, Any]) -> None:
    packet = json.dumps({"token": token, "kind": "Done"}).encode()
    with Path("/dev/null").open() as file:
        socket.send_fds(script.socket, [packet], [file.fileno()])


def half_close(script: Script, token: int, body: dict[str, Any]) -> None:
    script.socket.shutdown(socket.SHUT_WR)
    until_the_judge_hangs_up(script)


def until_the_judge_hangs_up(script: Script) -> None:
    """Without reading what it has sent."""
    ended = select.poll()
    ended.register(script.socket, 0)
    ended.poll(1000 * PATIENT_S)


def silence(script: Script, token: int, body: dict[str, Any]) -> None:
    until_the_judge_hangs_up(script)


def flood(script: Script, token: int, body: dict[str, Any]) -> None:
    while True:
        script.reply(1, "Done")


def drip(script: Script, token: int, body: dict[str, Any]) -> None:
    """Empty packets: on this kind of socket they look like the end of the connection."""
    script.socket.send(b"")
    until_the_judge_hangs_up(script)


def peek(script: Script, token: int, body: dict[str, Any]) -> None:
    """Answers what it looked at, and leaves it in the socket."""
    script.reply(token, "Done")
    looked_at = script.socket.recv(frame.MAX_FRAME_BYTES, socket.MSG_PEEK)
    script.reply(json.loads(looked_at)["token"], "Done")
    until_the_judge_hangs_up(script)


def peek_on(script: Script, token: int, body: dict[str, Any]) -> None:
    """The same from an offset, so that every look finds the next command, and the socket fills."""
    script.socket.setsockopt(socket.SOL_SOCKET, SO_PEEK_OFF, 0)
    script.reply(token, "Done")
    while looked_at := script.socket.recv(frame.MAX_FRAME_BYTES, socket.MSG_PEEK):
        script.reply(json.loads(looked_at)["token"], "Done")


def deaf(script: Script, token: int, body: dict[str, Any]) -> None:
    script.socket.shutdown(socket.SHUT_RD)  # first, since the next command comes at once
    script.reply(token, "Done")
    until_the_judge_hangs_up(script)


def with_least_buffers(act: Act) -> Act:
    def play(script: Script, token: int, body: dict[str, Any]) -> None:
        for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
            script.socket.setsockopt(socket.SOL_SOCKET, option, 0)
        act(script, token, body)

    return play


def dawdling(seconds: float) -> Act:
    return doubling(lambda script, body: seconds)


def hang_up(script: Script, token: int, body: dict[str, Any]) -> None:
    raise EOFError


HOSTILE: dict[str, tuple[Act, set[Outcome], str]] = {
    "oversized": (raw(b"x" * 100_000), {Outcome.REJECTED}, "larger than 65,536"),
    "truncated": (raw(b'{"token":1,"kind":"Do'), {Outcome.REJECTED}, "not JSON"),
    "binary": (raw(bytes(range(256))), {Outcome.REJECTED}, "not JSON"),
    "nested": (raw(b"[" * 60_000), {Outcome.REJECTED}, "nested more than 100 deep"),
    "unknown": (answering("Accepted"), {Outcome.REJECTED}, "unknown kind of frame 'Accepted'"),
    "out of order": (answering("Said", text=""), {Outcome.REJECTED}, "answered Said"),
    "a command back": (answering("Welcome"), {Outcome.REJECTED}, "unknown kind"),
    "duplicated": (twice, {Outcome.REJECTED}, "answers no question"),
    "wrong token": (wrong_token, {Outcome.REJECTED}, "answers no question"),
    "sent ahead": (early, {Outcome.REJECTED}, "answers no question"),
    "descriptors": (with_descriptors, {Outcome.REJECTED}, "descriptors attached"),
    "half-closed": (half_close, {Outcome.REJECTED}, "closed its connection but is still alive"),
    "empty packet": (drip, {Outcome.REJECTED}, "closed its connection but is still alive"),
    "hung up": (hang_up, {Outcome.RUNTIME_ERROR}, "ended by itself"),
    "peeking": (peek, {Outcome.REJECTED}, "answered a command that it had not received"),
    "peeking on": (peek_on, {Outcome.REJECTED}, "answered a command that it had not received"),
    "deaf": (deaf, {Outcome.REJECTED}, "closed its connection but is still alive"),
    "least buffers": (with_least_buffers(doubling()), {Outcome.ACCEPTED}, "^$"),
    "least buffers, full": (with_least_buffers(flood), {Outcome.REJECTED}, "answers no question"),
    "each answer in time, all together late": (
        dawdling(0.45 * CALL_S), {Outcome.TIMEOUT}, "gave no answer within 1 s, while running test one",
    ),
    "honest": (doubling(), {Outcome.ACCEPTED}, "^$"),
    "silent": (silence, {Outcome.TIMEOUT}, "gave no answer"),
    "endless": (flood, {Outcome.REJECTED}, "answers no question"),
    "forged outcome": (failing("accepted", "no"), {Outcome.REJECTED}, "bad Failed frame"),
    "no reason": (failing("runtime_error", ""), {Outcome.REJECTED}, "bad Failed frame"),
    "escapes": (failing("runtime_error", "\x1b[2J\ud800"), {Outcome.RUNTIME_ERROR}, r"\\x1b\[2J\\ud800"),
    "says done and does nothing": (answering("Done"), {Outcome.WRONG_ANSWER}, "y: never written"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile(name: str, problem: Problem) -> None:
    act, outcomes, message = HOSTILE[name]
    open_before = open_files().total()
    check = grade(limited(problem, CALL_S) if Outcome.TIMEOUT in outcomes else problem, act)
    assert check.outcome in outcomes
    assert re.search(message, check.message), check.message
    assert "\x1b" not in check.message
    deadline = time.monotonic() + PATIENT_S  # the runner is a thread of this process, which may still be about to end
    while open_files().total() > open_before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert open_files().total() <= open_before, "no descriptor is left open in the judge"


@pytest.mark.parametrize(
    "packet",
    [
        b"", b"{}", b"x" * 100_000,
        b'{"token":0,"kind":"Hello","protocol":999,"python":"3"}',
        b'{"token":0,"kind":"Done"}',
    ],
    ids=["empty", "not a frame", "oversized", "another protocol", "not a hello"],
)  # fmt: skip
def test_what_breaks_before_the_submission_is_ours(packet: bytes, problem: Problem) -> None:
    provider = Scripted(answering("Done"), on_hello=lambda script: script.socket.sendall(packet))
    with pytest.raises(SandboxError):
        checked(problem, SUBMISSION, provider=provider)


def test_an_archive_of_its_build_that_cannot_be_unpacked_is_the_submissions_fault(problem: Problem) -> None:
    build = commands.Build(language="py", symbols=("scale",), architecture="")
    with Session.start(Scripted(failing("runtime_error", "ReadError: no archive")), "cpu", problem.limits) as session:
        session.handshake()
        with pytest.raises(SubmissionFault, match="ReadError: no archive"):
            session.build(BuildRequest(build, b"", {}, b"no archive"), PATIENT_S)


@pytest.mark.parametrize(
    "slow",
    [
        pytest.param({"Round"}, id="the rounds"),
        pytest.param({"MapOutputs", "Unmap"}, id="what comes before and after", marks=pytest.mark.full),
        pytest.param({"Bind", "Call"}, id="what prepares them", marks=pytest.mark.full),
    ],
)
def test_time_s_is_for_all_of_a_case(slow: set[str], problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every answer is in time by itself; when `time_s` is used up, that is a timeout and not a moment later.

    The judge's clock goes on by itself while a slow answer is made, which the second never is.
    """
    time_s, each_s, bound, late = 200.0, 120.0, 0, list[str]()
    limits = problem.limits.model_copy(update={"call_s": 1000.0, "time_s": time_s})
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + each_s * len(late), sleep=time.sleep)
    for module in (conversation, time_limit):
        monkeypatch.setattr(module, "time", clock)

    def seconds(script: Script, body: dict[str, Any]) -> float:
        nonlocal bound
        kind, tested = body["kind"], len(problem.tests)
        bound += script.built and kind == "Bind"
        if bound > tested and kind in slow:  # a test binds its call once
            late.append(kind)
            if len(late) > 1:
                until_the_judge_hangs_up(script)
        return 0.0

    provider = Scripted(doubling(seconds))
    limited = problem.model_copy(update={"limits": limits})
    verdict = graded(limited, SUBMISSION, provider=provider)
    assert (verdict.outcome, verdict.stage) == (Outcome.TIMEOUT, "time")
    assert verdict.message == "benchmark a million: gave no answer within 200 s, while timing a million"
    assert len(late) == 2, "the second of the slow answers is waited for no longer than is left"


def test_an_honest_runner_is_accepted_in_the_same_way(problem: Problem) -> None:
    verdict = graded(problem, SUBMISSION, provider=Scripted(doubling()))
    assert (verdict.outcome, verdict.message) == (Outcome.ACCEPTED, "")


def test_where_no_time_is_left_nothing_is_sent(problem: Problem) -> None:
    seen: list[str] = []

    def act(script: Script, token: int, body: dict[str, Any]) -> None:
        seen.append(body["kind"])
        script.reply(token, "Done")

    with Session.start(Scripted(act), "cpu", problem.limits) as session:
        session.handshake()
        build = commands.Build(language="py", symbols=("scale",), architecture="")
        session.build(BuildRequest(build, b"", {}), PATIENT_S)
        session.ask(commands.Release(), replies.Done, limit=TimeLimit(PATIENT_S), doing="releasing")
        with pytest.raises(SubmissionFault, match="gave no answer within 0 s") as fault:
            session.ask(commands.Unmap(), replies.Done, limit=TimeLimit(0.0), doing="unmapping")
        assert fault.value.outcome is Outcome.TIMEOUT
        session.ask(commands.Release(), replies.Done, limit=TimeLimit(PATIENT_S), doing="releasing")
    assert seen == ["Release", "Release"]


@pytest.mark.parametrize("handed_over", [True, False])
def test_descriptors_in_flight_until_the_kernel_refuses_more(handed_over: bool, problem: Problem) -> None:
    """It counts those of all processes of a user that lack the rights of root, so that others can use them up."""
    ours, theirs = socket.socketpair()

    def fill() -> None:
        with contextlib.suppress(OSError), Path("/dev/null").open() as file:
            while True:
                socket.send_fds(ours, [b"x"], [file.fileno()] * 200)

    def act(script: Script, token: int, body: dict[str, Any]) -> None:
        if not full:
            fill()
            full.append(True)
        script.reply(token, "Done")

    def hello(script: Script) -> None:
        fill()
        script.reply(0, "Hello", protocol=protocol.PROTOCOL, python="3.11.7")
        until_the_judge_hangs_up(script)

    full: list[bool] = []
    with ours, theirs, _as_anybody(descriptors=512):
        provider = Scripted(act, None if handed_over else hello)
        if handed_over:
            check = checked(problem, SUBMISSION, provider=provider)
            assert check.outcome is Outcome.REJECTED
            assert "a frame that cannot be sent (Too many references" in check.message
        else:
            with pytest.raises(SandboxError, match="Too many references"):
                checked(problem, SUBMISSION, provider=provider)


@contextlib.contextmanager
def _as_anybody(descriptors: int) -> Iterator[None]:
    """This thread, and those that it starts, without the capabilities by which root may have any number in flight."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    libc = ctypes.CDLL(None, use_errno=True)
    header, before = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    assert libc.capget(header, before) == 0
    less = (ctypes.c_uint32 * 6)(*before)
    less[0] &= ~(1 << CAP_SYS_ADMIN | 1 << CAP_SYS_RESOURCE)  # of the effective ones
    assert libc.capset(header, less) == 0
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, hard))
    try:
        yield
    finally:
        assert libc.capset(header, before) == 0
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


frames = st.binary(max_size=200) | st.builds(
    lambda token, kind, fields: json.dumps({"token": token, "kind": kind, **fields}).encode(),
    st.integers(),
    st.sampled_from(sorted(replies.REPLIES)) | st.text(max_size=5),
    st.dictionaries(st.text(max_size=10), st.none() | st.integers() | st.text(max_size=10), max_size=3),
)


@pytest.mark.full
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(played=st.lists(frames, min_size=1, max_size=5), answered=st.booleans())
def test_no_conversation_ends_in_a_traceback(played: list[bytes], answered: bool, problem: Problem) -> None:
    def act(script: Script, token: int, body: dict[str, Any]) -> None:
        if answered:
            script.reply(token, "Done")
        for packet in played:
            script.socket.send(packet)

    started = time.monotonic()
    with contextlib.suppress(HarnessError):
        assert grade(limited(problem, SHORT_S), act).outcome is not Outcome.ACCEPTED
    assert time.monotonic() - started < 30 * CALL_S
