"""Whether the Triton kernels of a submission compile for a GPU, asked where there is none. Trusted.

Triton's interpreter accepts kernels that its compiler refuses. The submission's own process says what the compiler
said, so that it is a claim: for people to look at, and it decides nothing.
"""

from __future__ import annotations

import time
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

_ENOUGH_S = 4.0  # then no further test is called
_LIMIT_S = 20.0


@dataclass(frozen=True)
class Compilation:
    """What the compiler made of the kernels that some tests launch: all compile if nothing else is said."""

    architecture: str
    refused: str = ""
    """Why one does not, in a line."""
    unknown: str = ""
    """Why it is not known, in a line."""


def compilation(problem: Problem, submission: Submission, provider: Provider) -> Compilation | None:
    """Build the submission in a sandbox of its own, and call it in the visible tests, the largest first, until a few
    seconds have passed. Kernels are compiled for the architecture of the published boards, and not launched.

    None if it launches no Triton kernel.

    Raises:
        HarnessError: the sandbox or the device failed.
    """
    architecture, limit, doing = DEVICES["cpu"].architecture(), TimeLimit(_LIMIT_S), "compiling for a GPU"
    cases = visible_cases(problem, "cpu", tests=True)
    limits, unknown = larger(problem.limits), ""
    reference = load_reference(problem, provider, "cpu")
    with closing(reference), Session.start(provider, "cpu", limits) as session:
        session.handshake()
        session.ask(wire.CompileOnly(architecture=architecture), wire.Done, limit=limit, doing=doing)
        try:
            session.hand_over(Handover.of(problem, submission, cases, "cpu"), limits.build_s)
            begun = time.monotonic()
            try:
                for case in reversed(cases):
                    if time.monotonic() - begun > _ENOUGH_S:
                        break
                    call_once(session, GradedCase(problem, reference, "cpu", case), limit, doing)
            except SubmissionFault as fault:
                if not fault.survives:
                    raise
                unknown = fault.message
            told = session.ask(wire.Report(), wire.Compiled, limit=limit, doing=doing)
        except SubmissionFault as fault:
            return Compilation(architecture, unknown=fault.message)
    if told.refused:
        return Compilation(architecture, refused=told.refused)
    return Compilation(architecture, unknown=unknown) if told.kernels or unknown else None
