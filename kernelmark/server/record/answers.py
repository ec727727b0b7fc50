"""Takes a worker's answer: checks its lease, compares it with the task, and ends the lease. Trusted.

The route `worker/answer` calls `take_answer`, which makes one change of the database. A worker that did not get the
acknowledgement may send the same answer again.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, bindparam, select

from harness.kinds import Timing
from harness.languages import LANGUAGES
from harness.problem import Problem
from harness.verdict import Check, Verdict
from kernelmark.project.settings import Settings
from kernelmark.server.clock import moment
from kernelmark.server.database.tables import pins, sources, workers
from kernelmark.server.queue import endings
from kernelmark.server.record import comparing
from kernelmark.server.record.comparing import ExpectedAnswer
from kernelmark.server.service import Service
from kernelmark.service.refusal import Refusal
from kernelmark.service.work import Answer

# Statements are made once: to make one takes longer than to execute it.
_SOURCE = select(sources.c.sha256, sources.c.language, sources.c.bytes, sources.c.beside).where(
    sources.c.sha256 == bindparam("source")
)
_WORKER = select(workers.c.device, workers.c.sandbox).where(workers.c.name == bindparam("worker"))
_PINNED = select(pins.c.private_sha256).where(
    pins.c.problem == bindparam("problem"), pins.c.final == bindparam("final")
)


@dataclass(frozen=True)
class ReadAnswer:
    """An answer's document, and what the problem's files say: read before the change, which must not wait."""

    document: Check | None
    baselines: frozenset[str] | None
    timing: Timing | None


def take_answer(service: Service, due: Callable[[], None], worker: str, answer: Answer) -> Future[str]:
    """Take an answer of a worker. It reads files, so it must not be called in the event loop.

    Args:
        due: wakes the recorder.

    Returns:
        The run, once its new state is durable; then the recorder is woken. The future raises the refusals of
        `accept_answer`.

    Raises:
        Refusal: as `read_answer`.
    """
    found = read_answer(service, answer)
    result = service.database.write(lambda connection: accept_answer(connection, service, worker, answer, found))
    result.add_done_callback(lambda _: due())
    return result


def read_answer(service: Service, answer: Answer) -> ReadAnswer:
    """Read an answer's document, and what the files of its problem say.

    Raises:
        Refusal: as `comparing.read`.
    """
    document = comparing.read(answer)
    problem = service.files.snapshot.problems.get(document.problem.slug) if isinstance(document, Verdict) else None
    if problem is None:  # it was deleted after the task was leased
        return ReadAnswer(document, None, None)
    return ReadAnswer(document, _baselines(service.project.settings, problem), problem.timing)


def accept_answer(connection: Connection, service: Service, worker: str, answer: Answer, found: ReadAnswer) -> str:
    """Compare an answer with the task of its lease, keep it, and return the run. The same answer again changes nothing.

    Args:
        worker: the name in the token that it came with.
        found: the answer, as `read_answer` returned it.

    Raises:
        Refusal: 409 if the lease does not count any more or has another answer, 413 and 422 as `comparing`. Nothing
            has changed then.
    """
    grading = endings.find_answered(connection, worker, answer.lease)
    text = answer.verdict or answer.check
    if grading.state not in ("leased", "queued", "failed"):
        if text is None or text != grading.answer:
            what = "has another answer already"
            raise Refusal(409, "lease-ended", f"lease {answer.lease[:8]}", what, "drop the answer; nothing has changed")
    elif answer.error is not None:
        endings.fail(connection, service, grading, answer.error)
    else:
        assert found.document is not None, "it has one or an error"
        expected = _expected(connection, service, grading, found)
        comparing.compare(found.document, expected, moment(service.clock.now_ns()))
        device_ns = found.document.duration_ns if isinstance(found.document, Verdict) else None
        endings.finish(
            connection,
            service,
            grading,
            answer=text or "",
            outcome=found.document.outcome.value,
            score_s=score_s(found.document),
            device_ns=device_ns,
        )
    return str(grading.run)


def score_s(document: Check) -> float | None:
    """The time of a call in seconds, if it is an accepted verdict."""
    score = document.score if isinstance(document, Verdict) else None
    return None if score is None else score.median_ns / 1e9


def _expected(connection: Connection, service: Service, row: Row[Any], found: ReadAnswer) -> ExpectedAnswer:
    """What the answer of a grading must have; `row` is from `endings.find_answered`."""
    private = connection.scalar(_PINNED, {"problem": row.problem, "final": row.final})
    if row.mode != "submit" and found.document is not None and found.document.problem.private is None:
        private = None  # it may be tested without private cases where nothing is recorded
    return ExpectedAnswer(
        grading=row,
        source=connection.execute(_SOURCE, {"source": row.submission_source}).one(),
        worker=connection.execute(_WORKER, {"worker": row.worker}).one(),
        rules=service.project.settings.server,
        private_sha256=private,
        baselines=found.baselines,
        timing=found.timing,
    )


def _baselines(settings: Settings, problem: Problem) -> frozenset[str]:
    """The names of a problem's baselines in verdicts."""
    suffixes = {f".{language.suffix}" for language in LANGUAGES.values()}
    kernels = (settings.locate("reference") / problem.slug).glob("*")
    return frozenset(problem.baseline_label(file.stem) for file in kernels if file.suffix in suffixes)
