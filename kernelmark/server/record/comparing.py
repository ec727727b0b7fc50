"""Compares a worker's answer with the task that it answers, field by field. Pure; trusted, over hostile documents.

`answers` calls it before anything of an answer is committed. Whoever has a worker's token can still forge times: what
is compared here bounds which rows of which board a worker can write.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pydantic import ValidationError

from harness.files.identity import with_private_cases
from harness.kinds import DeviceKind, Effort, SandboxName, Timing, isolates
from harness.verdict import Check, Verdict
from harness.wire.protocol import PROTOCOL
from kernelmark.service.refusal import Refusal
from kernelmark.service.submissions import Mode
from kernelmark.service.work import ANSWER_BYTES, Answer

CLOCK = timedelta(seconds=5)
"""How far a worker's clock may be from the server's."""
_SHOWN = 80  # characters of a value in a refusal


@dataclass(frozen=True)
class Expected:
    """What the task of a lease, its worker and the project's settings say of its answer."""

    run: str
    problem: str
    problem_sha256: str
    """Of the public part."""
    private_sha256: str | None
    """The hash of private cases that an organizer has confirmed; None: there are none."""
    author: str
    name: str
    language: str
    source_sha256: str
    size_bytes: int
    beside: tuple[str, ...] | None
    mode: Mode
    effort: Effort
    pool: str
    device: DeviceKind | None
    """Of the worker, as its hello said; None if it said none."""
    sandbox: SandboxName | None
    """As `device`."""
    sandboxes: tuple[SandboxName, ...]
    """Those that the project accepts."""
    baselines: frozenset[str] | None
    """The names that verdicts have for the problem's baselines; None if they are not known."""
    timing: Timing | None
    """How a GPU must time it to rank; None if that is not known."""
    checks_hidden: bool
    """Whether hidden tests also run where nothing is recorded."""
    leased_at: datetime


def read(answer: Answer) -> Verdict | Check | None:
    """The document in an answer; None if it says why there is none.

    Raises:
        Refusal: it has not exactly one of the three, is too large, has an unknown key, or is not written as
            `Verdict.to_json` writes it.
    """
    given = {"verdict": answer.verdict, "check": answer.check, "error": answer.error}
    [name, *others] = [name for name, value in given.items() if value is not None] or [""]
    if others or not name:
        raise _refused("answer", "holds not exactly one of verdict, check and error", "send one of them")
    if name == "error":
        return None
    kind: type[Check] = Verdict if name == "verdict" else Check
    text = answer.verdict if answer.verdict is not None else answer.check
    assert text is not None
    if len(text.encode(errors="replace")) > ANSWER_BYTES:
        raise _refused(name, f"has more than {ANSWER_BYTES:,} bytes", "shorten its log", status=413)
    try:
        document = kind.model_validate_json(text)
    except (ValidationError, RecursionError) as error:
        said = (
            error.errors(include_url=False)[0] if isinstance(error, ValidationError) else {"loc": (), "msg": "is deep"}
        )
        key = ".".join(map(str, said["loc"]))
        raise _refused(f"{name} {key}".strip(), f"is not valid ({said['msg']:.200})", _VERSION) from None
    if document.model_dump_json(exclude_none=True) != text:
        raise _refused(name, "is not written as its version of kernelmark writes it", _VERSION)
    return document


def compare(document: Check, expected: Expected, now: datetime) -> None:
    """Compare a document with its task, at the moment of the server's clock at which it came.

    Raises:
        Refusal: a field differs; the message names it, and what was expected.
    """
    if (expected.mode == "check") == isinstance(document, Verdict):
        wanted = "a check" if expected.mode == "check" else "a verdict"
        raise _refused("answer", f"is not {wanted}, and its task has the mode {expected.mode}", f"send {wanted}")
    for field, said, expected_value in _fields(document, expected):
        if said != expected_value:
            what = f"is {said!r:.{_SHOWN}}, and its task has {expected_value!r:.{_SHOWN}}"
            raise _refused(field, what, "answer the task of this lease")
    _environment(document, expected)
    if expected.mode != "submit" and not expected.checks_hidden and any(case.hidden for case in document.tests):
        raise _refused("tests", "have hidden ones", "hidden tests run in the mode submit alone")
    if isinstance(document, Verdict):
        _times(document, expected, now)
        _baselines(document, expected)


def _fields(document: Check, expected: Expected) -> Iterator[tuple[str, object, object]]:
    problem, submission = document.problem, document.submission
    private, public = expected.private_sha256, expected.problem_sha256
    yield "problem.slug", problem.slug, expected.problem
    yield "problem.private.sha256", problem.private and problem.private.sha256, private
    yield "problem.sha256", problem.sha256, public if private is None else with_private_cases(public, private)
    yield "submission.author", submission.author, expected.author
    yield "submission.name", submission.name, expected.name
    yield "submission.language", submission.language, expected.language
    yield "submission.sha256", submission.sha256, expected.source_sha256
    yield "submission.size_bytes", submission.size_bytes, expected.size_bytes
    yield "submission.beside", submission.beside, expected.beside
    yield "protocol", document.protocol, PROTOCOL
    yield "environment.device_name", document.environment.device_name, expected.pool
    if expected.device is not None:
        yield "environment.device_kind", document.environment.device_kind, expected.device
    if expected.sandbox is not None:
        yield "environment.sandbox", document.environment.sandbox, expected.sandbox
    if isinstance(document, Verdict):
        yield "run", document.run, expected.run
        yield "effort", document.effort, "screen" if expected.mode == "screen" else expected.effort


def _environment(document: Check, expected: Expected) -> None:
    ran = document.environment
    if not isolates(ran.sandbox) or ran.sandbox not in expected.sandboxes:
        accepted = ", ".join(expected.sandboxes)
        raise _refused("environment.sandbox", f"is {ran.sandbox}", f"grade in one that is accepted: {accepted}")
    if ran.interpreted and ran.device_kind != "cpu":
        raise _refused("environment.interpreted", f"is set for {ran.device_kind}", "the interpreter runs on a CPU")


def _times(verdict: Verdict, expected: Expected, now: datetime) -> None:
    if not expected.leased_at - CLOCK <= verdict.created_at <= now + CLOCK:
        was, since, until = (
            moment.astimezone(UTC).isoformat(" ", "seconds") for moment in (verdict.created_at, expected.leased_at, now)
        )
        what = f"is {was}, and the lease was from {since} to {until} by the server's clock"
        raise _refused("created_at", what, "set the worker's clock")
    held = now - expected.leased_at + CLOCK
    if timedelta(microseconds=verdict.duration_ns / 1e3) > held:
        what = f"is {verdict.duration_ns / 1e9:.1f} s, and the lease has lasted {held.total_seconds():.1f} s"
        raise _refused("duration_ns", what, "answer the task of this lease")
    if verdict.environment.device_kind == "cpu":
        ranked: Timing | None = verdict.timing
    else:
        ranked = expected.timing
    if ranked is not None and verdict.ranked_timing != ranked:
        what = f"is {verdict.ranked_timing}, and the problem's is {ranked}"
        raise _refused("ranked_timing", what, "use the problem's own files")


def _baselines(verdict: Verdict, expected: Expected) -> None:
    if verdict.requested_baselines is None:
        raise _refused("requested_baselines", "are left out", _VERSION)
    known = verdict.requested_baselines if expected.baselines is None else expected.baselines
    if unknown := [name for name in verdict.requested_baselines if name not in known]:
        what = f"have {unknown[0]!r:.{_SHOWN}}, which is not one of the problem's"
        raise _refused("requested_baselines", what, "use the project's own `reference/`")
    for speedup in verdict.speedups:
        if speedup.baseline not in verdict.requested_baselines:
            raise _refused("speedups", f"have {speedup.baseline!r:.{_SHOWN}}, which was not requested", "leave it out")


_VERSION = "use the server's version of kernelmark"


def _refused(field: str, what: str, remedy: str, status: int = 422) -> Refusal:
    return Refusal(413 if status == 413 else 422, "answer-differs", field, what, remedy)
