"""Tests on a machine without a GPU whether the Triton kernels of a submission compile for one. Trusted.

Triton's interpreter accepts kernels that its compiler refuses. The submission's own process reports what the compiler
said, so the result is only a claim: it is shown to people and never affects a verdict.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

from harness.device import DEVICES
from harness.judge.correctness.graded_case import GradedCase
from harness.judge.correctness.layout import Layout
from harness.judge.correctness.oracle import load_reference
from harness.judge.session import BuildRequest, Session, SubmissionFault
from harness.judge.session.time_limit import TimeLimit
from harness.problem import Problem, ResolvedCase
from harness.problem.dtypes import DTYPES
from harness.profiling.watch import call_once, larger, visible_cases
from harness.sandbox import Provider
from harness.submission import Submission
from harness.wire import commands, replies

_LIMIT_S = 20.0  # for all calls together: a kernel with very large blocks may compile for half a minute
_LARGEST = 128 << 20  # bytes of a case: its tensors are generated on the host, and PyTorch may compute with them


@dataclass(frozen=True)
class Compilation:
    """The compiler's result for the kernels that the visible tests and benchmarks launch."""

    architecture: str
    tried: int = 0
    """The number of cases in which every kernel compiled."""
    cases: int = 0
    """The number of cases in total: benchmarks at a GPU's sizes, and tests."""
    refused: str = ""
    """The compiler's first error, in one line; empty if there was none."""
    unknown: str = ""
    """Why some cases were not tried, in one line; empty if all were, or if the compiler refused a kernel."""


def compilation(problem: Problem, submission: Submission, provider: Provider) -> Compilation | None:
    """Build the submission in its own sandbox and call it on the visible cases.

    Kernels are compiled for the architecture of the published boards, and not launched. All calls together have
    `_LIMIT_S` seconds; the start and the build have limits of their own.

    Returns:
        None if the submission launches no Triton kernel.

    Raises:
        HarnessError: the sandbox or the device failed.
    """
    architecture, doing = DEVICES["cpu"].architecture(), "compiling for a GPU"
    cases, limits = _cases(problem), larger(problem.limits)
    limit, reply, tried, unknown = TimeLimit(_LIMIT_S), replies.Compiled(kernels=0, refused=""), 0, ""
    reference = load_reference(problem, provider, "cpu")
    with closing(reference), Session.start(provider, "cpu", limits) as session:
        session.handshake()
        session.ask(
            commands.CompileOnly(architecture=architecture), replies.Done, limit=TimeLimit(_LIMIT_S), doing=doing
        )
        try:
            session.build(BuildRequest.of(problem, submission, cases, "cpu"), limits.build_s)
            while tried < len(cases) and not unknown:
                case = GradedCase(problem, reference, "cpu", cases[tried])
                try:
                    call_once(session, case, limit, doing)
                    tried += 1
                except SubmissionFault as fault:
                    if not fault.survives:
                        raise
                    unknown = f"kernels are compiled there and not run, and it failed ({fault.message})"
                reply = session.ask(commands.Report(), replies.Compiled, limit=limit, doing=doing)
        except SubmissionFault as fault:
            unknown = fault.message
    if reply.refused:
        return Compilation(architecture, tried, len(cases), refused=reply.refused)
    if not reply.kernels and not unknown:
        return None
    return Compilation(architecture, tried if reply.kernels else 0, len(cases), unknown=unknown)


def _cases(problem: Problem) -> list[ResolvedCase]:
    """The cases to call: first one benchmark at a GPU's sizes for each combination of dtypes, the widest dtypes first,
    because a kernel's blocks need the most shared memory there; then the other benchmarks and the tests, the smallest
    first.
    """
    large = [c for c in visible_cases(problem, "cuda", tests=False) if Layout(c).bytes_per_set <= _LARGEST]
    smallest = {tuple(tensor.dtype for tensor in case.tensors): case for case in reversed(large)}
    firsts = sorted(smallest.items(), key=lambda item: -sum(DTYPES[dtype].size_bytes for dtype in item[0]))
    names = [case.name for _, case in firsts]
    others = [case for case in large if case.name not in names]
    return [*(case for _, case in firsts), *others, *visible_cases(problem, "cpu", tests=True)]
