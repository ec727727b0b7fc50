"""Calls a submission in a sandbox of its own, and fetches what the runner then tells of it. Trusted."""

from __future__ import annotations

from collections.abc import Iterator

from harness.audit.watch import larger
from harness.judge.correctness.graded_case import GradedCase
from harness.judge.session import Handover, Session, documents
from harness.judge.session.time_limit import TimeLimit
from harness.languages import LANGUAGES
from harness.problem import Limits
from harness.sandbox import Provider
from harness.submission import Submission
from harness.wire import commands, replies


def limit_s(limits: Limits) -> float:
    """Calls that are watched take longer, and the first may have to compile."""
    return limits.time_s + limits.build_s


def artefacts(
    submission: Submission,
    case: GradedCase,
    provider: Provider,
    command: commands.Profile | commands.Inspect,
    *,
    doing: str,
    sets: int,
    first: commands.CompileOnly | None = None,
    too_large: list[str],
) -> Iterator[tuple[str, bytes]]:
    """Build the submission in a sandbox of its own and call it, if it runs on this device; then ask for documents.

    Those that are too large are not fetched, and a line about each is added. `first` is sent before the build.

    Raises:
        SubmissionFault: it cannot be built or called, or its process broke the protocol.
        HarnessError: the sandbox or the device failed.
    """
    limits, batch = larger(case.problem.limits), case.batch(sets)
    limit = TimeLimit(limit_s(limits))
    try:
        with Session.start(provider, case.device, limits) as session:
            session.handshake()
            if first is not None:
                session.ask(first, replies.Done, limit=limit, doing=doing)
            handover = Handover.of(case.problem, submission, [case.resolved], case.device, line_info=True)
            session.hand_over(handover, limits.build_s)
            if case.device in LANGUAGES[submission.language].devices:
                case.bind(session, batch, limit=limit, doing=doing)
                session.ask(commands.Call(sets=(0,)), replies.Done, limit=limit, doing=doing)
            offer = session.ask(command, replies.Profiled, limit=limit, doing=doing)
            yield from documents(session, offer, limit, doing, too_large)
    finally:
        batch.close_arenas()
