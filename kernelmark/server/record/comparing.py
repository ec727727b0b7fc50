"""Compares a worker's answer with its task, field by field. Pure. Trusted, but reads hostile documents.

`answers` calls it before anything of an answer is committed. With a worker's token one can still forge times: the
comparison bounds which rows of which board a worker can write.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from pydantic import ValidationError
from sqlalchemy import Row

from harness.files.identity import with_private_cases
from harness.kinds import Timing, isolates
from harness.verdict import Check, Verdict
from harness.wire.protocol import PROTOCOL
from kernelmark.project.serving import ServerSettings
from kernelmark.server.clock import moment
from kernelmark.server.database.database import AnyRow
from kernelmark.server.record.sources import stored_files
from kernelmark.service.refusal import Refusal
from kernelmark.service.work import ANSWER_BYTES, Answer

CLOCK = timedelta(seconds=5)
"""How far a worker's clock may be from the server's."""
_SHOWN = 80  # characters of a value in a refusal


@dataclass(frozen=True)
class ExpectedAnswer:
    """What the answer to a lease is compared with."""

    grading: Row[Any]
    """With the columns of its submission, as from `endings.find_answered`."""
    source: AnyRow
    worker: AnyRow
    rules: ServerSettings
    private_sha256: str | None
    """The hash of private cases that an organizer has confirmed; None: there are none."""
    baselines: frozenset[str] | None
    """The names that verdicts have for the problem's baselines; None if they are not known."""
    timing: Timing | None
    """How a GPU must time it to rank; None if that is not known."""


def read(answer: Answer) -> Verdict | Check | None:
    """The document in an answer; None if the answer has an error instead.

    Raises:
        Refusal: it has not exactly one of the three, is too large, has an unknown key, or is not written as
            `Verdict.to_json` writes it.
    """
    fields = {"verdict": answer.verdict, "check": answer.check, "error": answer.error}
    names = [name for name, value in fields.items() if value is not None]
    if len(names) != 1:
        raise _refused("answer", "holds not exactly one of verdict, check and error", "send one of them")
    name = names[0]
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
        key, why = "", "it is nested too deeply"
        if isinstance(error, ValidationError):
            first = error.errors(include_url=False)[0]
            key, why = ".".join(map(str, first["loc"])), first["msg"]
        raise _refused(f"{name} {key}".strip(), f"is not valid ({why:.200})", _VERSION) from None
    if document.model_dump_json(exclude_none=True) != text:
        raise _refused(name, "is not written as its version of kernelmark writes it", _VERSION)
    return document


def compare(document: Check, expected: ExpectedAnswer, now: datetime) -> None:
    """Compare a document with its task.

    Args:
        now: when the document arrived, by the server's clock.

    Raises:
        Refusal: a field differs; the message names it, and what was expected.
    """
    mode = expected.grading.mode
    if (mode == "check") == isinstance(document, Verdict):
        wanted = "a check" if mode == "check" else "a verdict"
        raise _refused("answer", f"is not {wanted}, and its task has the mode {mode}", f"send {wanted}")
    for field, actual, expected_value in _fields(document, expected):
        if actual != expected_value:
            what = f"is {actual!r:.{_SHOWN}}, and its task has {expected_value!r:.{_SHOWN}}"
            raise _refused(field, what, "answer the task of this lease")
    _environment(document, expected)
    if mode != "submit" and not expected.rules.checks_hidden and any(case.hidden for case in document.tests):
        raise _refused("tests", "have hidden ones", "hidden tests run in the mode submit alone")
    if isinstance(document, Verdict):
        _times(document, expected, now)
        _baselines(document, expected)


def _fields(document: Check, expected: ExpectedAnswer) -> Iterator[tuple[str, object, object]]:
    problem, submission, environment = document.problem, document.submission, document.environment
    grading, source, worker = expected.grading, expected.source, expected.worker
    private, public = expected.private_sha256, grading.problem_sha256
    yield "problem.slug", problem.slug, grading.problem
    yield "problem.private.sha256", problem.private and problem.private.sha256, private
    yield "problem.sha256", problem.sha256, public if private is None else with_private_cases(public, private)
    yield "submission.author", submission.author, grading.submission_author
    yield "submission.name", submission.name, grading.submission_name
    yield "submission.language", submission.language, source.language
    yield "submission.sha256", submission.sha256, source.sha256
    yield "submission.size_bytes", submission.size_bytes, source.bytes
    yield "submission.beside", submission.beside, tuple(file.name for file in stored_files(source.beside)) or None
    yield "protocol", document.protocol, PROTOCOL
    yield "environment.device_name", environment.device_name, grading.pool
    if worker.device is not None:
        yield "environment.device_kind", environment.device_kind, worker.device
    if worker.sandbox is not None:
        yield "environment.sandbox", environment.sandbox, worker.sandbox
    if isinstance(document, Verdict):
        yield "run", document.run, grading.run
        yield "effort", document.effort, "screen" if grading.mode == "screen" else grading.submission_effort


def _environment(document: Check, expected: ExpectedAnswer) -> None:
    ran = document.environment
    if not isolates(ran.sandbox) or ran.sandbox not in expected.rules.sandboxes:
        accepted = ", ".join(expected.rules.sandboxes)
        raise _refused("environment.sandbox", f"is {ran.sandbox}", f"grade in one that is accepted: {accepted}")
    if ran.interpreted and ran.device_kind != "cpu":
        raise _refused("environment.interpreted", f"is set for {ran.device_kind}", "the interpreter runs on a CPU")


def _times(verdict: Verdict, expected: ExpectedAnswer, now: datetime) -> None:
    leased_at = moment(expected.grading.leased_ns)
    if not leased_at - CLOCK <= verdict.created_at <= now + CLOCK:
        was, since, until = (
            at.astimezone(UTC).isoformat(" ", "seconds") for at in (verdict.created_at, leased_at, now)
        )
        what = f"is {was}, and the lease was from {since} to {until} by the server's clock"
        raise _refused("created_at", what, "set the worker's clock")
    held = now - leased_at + CLOCK
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


def _baselines(verdict: Verdict, expected: ExpectedAnswer) -> None:
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


def _refused(field: str, what: str, remedy: str, status: Literal[413, 422] = 422) -> Refusal:
    return Refusal(status, "answer-differs", field, what, remedy)
