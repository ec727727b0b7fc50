"""Chooses the calls for which Triton's kernels are compiled before they are needed, and the number of helper processes.

Trusted; no torch.
"""

from __future__ import annotations

from collections.abc import Iterator

from harness.device import DEVICES
from harness.judge.setup import Setup
from harness.problem import ResolvedCase
from harness.wire import commands

_HELPERS = 16  # at most


def helpers(setup: Setup) -> int:
    """How many processes may compile a submission's kernels at a time in its sandbox; 0 if it seems to have none."""
    limits, files = setup.problem.limits, (setup.submission.source, *dict(setup.submission.beside).values())
    uses_triton = setup.submission.language == "py" and any(b"triton" in content for content in files)
    if DEVICES[setup.device].on_host or not uses_triton or setup.problem.call.style == "module":
        return 0
    return min(limits.memory_bytes >> 30, limits.processes >> 4, _HELPERS)


def visible_cases(setup: Setup) -> Iterator[ResolvedCase]:
    """The cases whose sizes `problem.toml` shows: not those of hidden tests, nor of those whose sizes are drawn."""
    problem = setup.problem
    for case in (*problem.tests, *problem.benchmarks):
        if not case.hidden and not case.draw and setup.device in case.devices:
            yield problem.resolve(case)


def requests(setup: Setup, case: ResolvedCase) -> tuple[commands.Declare | commands.Ahead, ...]:
    """The commands that describe a call of this case to the helpers. They hand over no memory."""
    from harness.judge.correctness.layout import Layout  # which imports numpy: not before a grading starts

    *declared, bind = Layout(case).commands(case, setup.problem.parameters, 1, seed=0)
    assert isinstance(bind, commands.Bind)
    declarations = [command for command in declared if isinstance(command, commands.Declare)]
    return (*declarations, commands.Ahead(bind=bind, at_most=helpers(setup)))
