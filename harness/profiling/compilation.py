"""Whether the Triton kernels of a submission compile for a GPU, asked where there is none. Trusted.

Triton's interpreter accepts kernels that its compiler refuses. The submission's own process says what the compiler
said, so that it is a claim: for people to look at, and it decides nothing.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

from harness import wire
from harness.audit.watch import call_once, larger, visible_cases
from harness.device import DEVICES
from harness.judge.correctness.graded_case import GradedCase
from harness.judge.correctness.oracle import load_reference
from harness.judge.session import Handover, Session, SubmissionFault
from harness.judge.session.time_limit import TimeLimit
from harness.problem import Problem
from harness.sandbox import Provider
from harness.submission import Submission

_LIMIT_S = 5.0  # of the calls in all: a kernel with very large blocks may compile for half a minute


@dataclass(frozen=True)
class Compilation:
    """What the compiler made of the kernels that the visible tests launch."""

    architecture: str
    tried: int = 0
    """In how many tests all were compiled."""
    tests: int = 0
    """Of how many."""
    refused: str = ""
    """Why one was not, in a line."""
    unknown: str = ""
    """Why no more is known, in a line; empty if all tests were tried, or one was refused."""


def compilation(problem: Problem, submission: Submission, provider: Provider) -> Compilation | None:
    """Build the submission in a sandbox of its own, and call it in the visible tests, the smallest first; the calls may
    take some seconds, besides the start and the build, which have their own limits. Kernels are compiled for the
    architecture of the published boards, and not launched.

    None if no Triton kernel is launched.

    Raises:
        HarnessError: the sandbox or the device failed.
    """
    architecture, doing = DEVICES["cpu"].architecture(), "compiling for a GPU"
    cases, limits = visible_cases(problem, "cpu", tests=True), larger(problem.limits)
    limit, told, tried, unknown = TimeLimit(_LIMIT_S), wire.Compiled(kernels=0, refused=""), 0, ""
    reference = load_reference(problem, provider, "cpu")
    with closing(reference), Session.start(provider, "cpu", limits) as session:
        session.handshake()
        session.ask(wire.CompileOnly(architecture=architecture), wire.Done, limit=TimeLimit(_LIMIT_S), doing=doing)
        try:
            session.hand_over(Handover.of(problem, submission, cases, "cpu"), limits.build_s)
            while tried < len(cases) and not unknown:
                case = GradedCase(problem, reference, "cpu", cases[tried])
                try:
                    call_once(session, case, limit, doing)
                    tried += 1
                except SubmissionFault as fault:
                    if not fault.survives:
                        raise
                    unknown = f"kernels are compiled there and not run, and it failed ({fault.message})"
                told = session.ask(wire.Report(), wire.Compiled, limit=limit, doing=doing)
        except SubmissionFault as fault:
            unknown = fault.message
    if told.refused:
        return Compilation(architecture, tried, len(cases), refused=told.refused)
    if not told.kernels and not unknown:
        return None
    return Compilation(architecture, tried if told.kernels else 0, len(cases), unknown=unknown)
