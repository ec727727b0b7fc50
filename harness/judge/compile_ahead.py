"""Chooses the calls whose Triton kernels are compiled ahead of time, and the number of helper processes that do it.

Trusted; imports no torch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.device import DEVICES
from harness.judge.session import Session
from harness.judge.session.time_limit import TimeLimit
from harness.judge.setup import Setup
from harness.problem import ResolvedCase
from harness.wire import commands, replies

_HELPERS = 16  # at most


def helper_count(setup: Setup) -> int:
    """How many processes may compile Triton kernels in a submission's sandbox; 0 if it seems to have none."""
    limits, files = setup.problem.limits, (setup.submission.source, *dict(setup.submission.beside).values())
    uses_triton = setup.submission.language == "py" and any(b"triton" in content for content in files)
    if DEVICES[setup.device].on_host or not uses_triton or setup.problem.call.style == "module":
        return 0
    return min(limits.memory_bytes >> 30, limits.processes >> 4, _HELPERS)


def known_cases(setup: Setup) -> Iterator[ResolvedCase]:
    """The cases whose sizes are public: neither hidden tests nor cases with random sizes."""
    problem = setup.problem
    for case in (*problem.tests, *problem.benchmarks):
        if not case.hidden and not case.draw and setup.device in case.devices:
            yield problem.resolve(case)


def requests(setup: Setup, case: ResolvedCase) -> tuple[commands.Declare | commands.Ahead, ...]:
    """The commands that describe a call of this case to the helpers. They share no memory."""
    from harness.judge.correctness.layout import Layout  # imports numpy, so not before a grading starts

    *declared, bind = Layout(case).commands(case, setup.problem.parameters, 1, seed=0)
    assert isinstance(bind, commands.Bind)
    declarations = [command for command in declared if isinstance(command, commands.Declare)]
    return (*declarations, commands.Ahead(bind=bind, at_most=helper_count(setup)))


def compile_ahead(setup: Setup, session: Session, cases: Sequence[ResolvedCase], limit: TimeLimit) -> None:
    """Let helpers in a runner's sandbox compile the kernels of these cases, in parallel; does not wait for them.

    Raises:
        SubmissionFault: the runner has failed.
    """
    if helper_count(setup) < 1:
        return
    for case in cases:
        for command in requests(setup, case):
            session.ask(command, replies.Done, limit=limit, doing="building")
