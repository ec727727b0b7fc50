"""A runner that breaks the protocol in every way: the judge gives an outcome or a `HarnessError`, and never waits on.

The conversations run over a real socket with a scripted runner; `test_wire.py` has the decoder by itself.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness import judge, wire
from harness.errors import HarnessError, SandboxError
from harness.problem import Problem, load
from harness.submission import Submission
from harness.verdict import Check, Outcome
from tests.runners import Act, Script, Scripted

SUBMISSION = Submission.of("def scale(x, y): ...", "py", author="tester")
CALL_S = 1.0


@pytest.fixture(scope="module")
def problem() -> Problem:
    loaded = load(Path(__file__).parent.parent / "problems" / "scale")
    return loaded.model_copy(update={"limits": loaded.limits.model_copy(update={"call_s": CALL_S, "build_s": CALL_S})})


def grade(problem: Problem, act: Act) -> Check:
    return judge.check(problem, SUBMISSION, provider=Scripted(act), device="cpu")


def raw(frame: bytes) -> Act:
    return lambda script, token, body: script.socket.sendall(frame)


def answer(kind: str, **fields: Any) -> Act:
    return lambda script, token, body: script.reply(token, kind, **fields)


def twice(script: Script, token: int, body: dict[str, Any]) -> None:
    script.reply(token, "Done")
    script.reply(token, "Done")


def wrong_token(script: Script, token: int, body: dict[str, Any]) -> None:
    script.reply(token ^ 1, "Done")


def early(script: Script, token: int, body: dict[str, Any]) -> None:
    for guess in range(20):
        script.reply(guess, "Done")


def with_descriptors(script: Script, token: int, body: dict[str, Any]) -> None:
    frame = json.dumps({"token": token, "kind": "Done"}).encode()
    with Path("/dev/null").open() as file:
        socket.send_fds(script.socket, [frame], [file.fileno()])


def half_close(script: Script, token: int, body: dict[str, Any]) -> None:
    script.socket.shutdown(socket.SHUT_WR)
    time.sleep(CALL_S * 20)


def silence(script: Script, token: int, body: dict[str, Any]) -> None:
    time.sleep(CALL_S * 20)


def flood(script: Script, token: int, body: dict[str, Any]) -> None:
    while True:
        script.reply(1, "Done")


def drip(script: Script, token: int, body: dict[str, Any]) -> None:
    """Empty packets: on this kind of socket they look like the end of the connection."""
    script.socket.send(b"")
    time.sleep(CALL_S * 20)


def hang_up(script: Script, token: int, body: dict[str, Any]) -> None:
    raise EOFError


HOSTILE: dict[str, tuple[Act, set[Outcome], str]] = {
    "oversized": (raw(b"x" * 100_000), {Outcome.REJECTED}, "larger than 65,536"),
    "truncated": (raw(b'{"token":1,"kind":"Do'), {Outcome.REJECTED}, "not JSON"),
    "binary": (raw(bytes(range(256))), {Outcome.REJECTED}, "not JSON"),
    "nested": (raw(b"[" * 60_000), {Outcome.REJECTED}, "not JSON"),
    "unknown": (answer("Accepted"), {Outcome.REJECTED}, "unknown kind of frame 'Accepted'"),
    "out of order": (answer("Timed", claimed_ns=1, span_ns=1), {Outcome.REJECTED}, "answered Timed"),
    "a command back": (answer("Welcome"), {Outcome.REJECTED}, "unknown kind"),
    "duplicated": (twice, {Outcome.REJECTED}, "answers no question"),
    "wrong token": (wrong_token, {Outcome.REJECTED}, "answers no question"),
    "sent ahead": (early, {Outcome.REJECTED}, "answers no question"),
    "descriptors": (with_descriptors, {Outcome.REJECTED}, "descriptors attached"),
    "half-closed": (half_close, {Outcome.REJECTED}, "closed its connection and lives on"),
    "empty packet": (drip, {Outcome.REJECTED}, "closed its connection and lives on"),
    "hung up": (hang_up, {Outcome.RUNTIME_ERROR}, "ended by itself"),
    "silent": (silence, {Outcome.TIMEOUT}, "gave no answer"),
    "endless": (flood, {Outcome.REJECTED}, "answers no question"),
    "forged outcome": (
        answer("Failed", outcome="accepted", message="", traceback="", fatal=False), {Outcome.REJECTED},
        "bad Failed frame",
    ),
    "escapes": (
        answer("Failed", outcome="runtime_error", message="\x1b[2J\ud800", traceback="", fatal=False),
        {Outcome.RUNTIME_ERROR}, r"\\x1b\[2J\\ud800",
    ),
    "says done and does nothing": (answer("Done"), {Outcome.WRONG_ANSWER}, "elements wrong"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile(name: str, problem: Problem) -> None:
    act, outcomes, message = HOSTILE[name]
    open_before = _open_descriptors()
    started = time.monotonic()
    check = grade(problem, act)
    assert time.monotonic() - started < CALL_S + 5
    assert check.outcome in outcomes
    assert re.search(message, check.message), check.message
    assert "\x1b" not in check.message
    assert _open_descriptors() <= open_before, "no descriptor is left open in the judge"


@pytest.mark.parametrize(
    "frame",
    [
        b"", b"{}", b"x" * 100_000,
        b'{"token":0,"kind":"Hello","protocol":999,"python":"3"}',
        b'{"token":0,"kind":"Done"}',
    ],
    ids=["empty", "not a frame", "oversized", "another protocol", "not a hello"],
)  # fmt: skip
def test_what_breaks_before_the_submission_is_ours(frame: bytes, problem: Problem) -> None:
    provider = Scripted(answer("Done"), on_hello=lambda script: script.socket.sendall(frame))
    with pytest.raises(SandboxError):
        judge.check(problem, SUBMISSION, provider=provider, device="cpu")


def _open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


frames = st.binary(max_size=200) | st.builds(
    lambda token, kind, fields: json.dumps({"token": token, "kind": kind, **fields}).encode(),
    st.integers(),
    st.sampled_from(sorted(wire.REPLIES)) | st.text(max_size=5),
    st.dictionaries(st.text(max_size=10), st.none() | st.integers() | st.text(max_size=10), max_size=3),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(played=st.lists(frames, min_size=1, max_size=5), answered=st.booleans())
def test_no_conversation_ends_in_a_traceback(played: list[bytes], answered: bool, problem: Problem) -> None:
    def act(script: Script, token: int, body: dict[str, Any]) -> None:
        if answered:
            script.reply(token, "Done")
        for frame in played:
            script.socket.send(frame)

    started = time.monotonic()
    with contextlib.suppress(HarnessError):
        assert grade(problem, act).outcome is not Outcome.ACCEPTED
    assert time.monotonic() - started < 3 * CALL_S + 5
