"""Takes a worker's answer: whether its lease counts, whether it answers its task, and what follows. Trusted.

The route `worker/answer` calls `take_answer`; the rest is one change of the database. A worker that did not hear the
acknowledgement may send the same answer again.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, select

from harness.kinds import Timing
from harness.languages import LANGUAGES
from harness.problem import Problem
from harness.verdict import Check, Verdict
from kernelmark.project.settings import Settings
from kernelmark.server.clock import moment
from kernelmark.server.database.tables import pins, sources, workers
from kernelmark.server.queue import endings
from kernelmark.server.record import comparing
from kernelmark.server.record.comparing import Expected
from kernelmark.server.record.sources import stored_files
from kernelmark.server.service import Service
from kernelmark.service.refusal import Refusal
from kernelmark.service.work import Answer


@dataclass(frozen=True)
class ReadAnswer:
    """What of an answer is found out before the change, since it takes time."""

    document: Check | None
    baselines: frozenset[str] | None
    timing: Timing | None


def take_answer(service: Service, due: Callable[[], None], worker: str, answer: Answer) -> Future[str]:
    """Take an answer of the worker of this name; callable in any thread but the event loop's, since it reads files.

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
    """Read the document in an answer, and what the problem's files say of it.

    Raises:
        Refusal: as `comparing.read`.
    """
    document = comparing.read(answer)
    problem = service.files.known.problems.get(document.problem.slug) if isinstance(document, Verdict) else None
    if problem is None:  # it has gone since; it was not when the task was given out
        return ReadAnswer(document, None, None)
    return ReadAnswer(document, _baselines(service.project.settings, problem), problem.timing)


def accept_answer(
    connection: Connection, service: Service, worker: str, answer: Answer, found: ReadAnswer | None = None
) -> str:
    """Compare an answer with the task of its lease, and move the grading on; returns its run. The same answer again
    changes nothing.

    Args:
        worker: the name in the token that it came with.
        found: as `read_answer` has it, which is called otherwise.

    Raises:
        Refusal: 409 if the lease does not count any more or has another answer, 413 and 422 as `comparing`. Nothing
            has changed then.
    """
    found = found or read_answer(service, answer)
    grading = endings.answered(connection, worker, answer.lease)
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
        endings.end(
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


def _expected(connection: Connection, service: Service, row: Row[Any], found: ReadAnswer) -> Expected:
    """What is compared of a grading, from `endings.answered`."""
    rules = service.project.settings.server
    source = connection.execute(select(sources).where(sources.c.sha256 == row.submission_source)).one()
    worker = connection.execute(select(workers).where(workers.c.name == row.worker)).one()
    pinned = select(pins.c.private_sha256).where(pins.c.problem == row.problem, pins.c.final == row.final)
    private = connection.scalar(pinned)
    if row.mode != "submit" and found.document is not None and found.document.problem.private is None:
        private = None  # it may be tested without private cases where nothing is recorded
    return Expected(
        run=row.run,
        problem=row.problem,
        problem_sha256=row.problem_sha256,
        private_sha256=private,
        author=row.submission_author,
        name=row.submission_name,
        language=source.language,
        source_sha256=source.sha256,
        size_bytes=source.bytes,
        beside=tuple(file.name for file in stored_files(source.beside)) or None,
        mode=row.mode,
        effort=row.submission_effort,
        pool=row.pool,
        device=worker.device,
        sandbox=worker.sandbox,
        sandboxes=rules.sandboxes,
        baselines=found.baselines,
        timing=found.timing,
        checks_hidden=rules.checks_hidden,
        leased_at=moment(row.leased_ns),
    )


def _baselines(settings: Settings, problem: Problem) -> frozenset[str]:
    """The names of a problem's baselines in verdicts."""
    suffixes = {f".{language.suffix}" for language in LANGUAGES.values()}
    kernels = (settings.locate("reference") / problem.slug).glob("*")
    return frozenset(problem.baseline_label(file.stem) for file in kernels if file.suffix in suffixes)
