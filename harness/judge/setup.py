"""The inputs of a grading: the submission, where it is graded, and how. Trusted; imports no torch."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING

from harness.files.kept import Kept
from harness.problem import Problem
from harness.sandbox import Provider
from harness.submission import Submission
from harness.verdict import DeviceKind, Effort, Stage
from harness.verdict.roofline import Calibration

if TYPE_CHECKING:
    from harness.judge.correctness.cases import OnFailure


@dataclass(frozen=True)
class Progress:
    """The progress of a grading: item `done` of `total` of a stage is about to begin."""

    stage: Stage
    done: int
    total: int
    label: str


def ignore(_: Progress) -> None:
    """The `on_progress` of a grading that is not watched."""


@dataclass(frozen=True)
class Setup:
    """One grading of one submission."""

    problem: Problem
    submission: Submission
    _: KW_ONLY
    provider: Provider
    """The sandbox."""
    device: DeviceKind
    effort: Effort = "default"
    baselines: Sequence[Submission] = ()
    """Kernels that are timed in alternation with the submission, each in a sandbox of its own."""
    calibrations: Sequence[Calibration] = ()
    """Peak rates of devices. A time that is faster than this device's peak rates allow is rejected."""
    on_progress: Callable[[Progress], None] = ignore
    on_failure: OnFailure | None = None
    """Called with the tensors of each test that fails and is not hidden."""
    only: Collection[str] = ()
    """The names of the visible tests to run; if they pass, the outcome is `incomplete`. Empty: all tests."""
    hidden: bool = True
    """Whether hidden tests run, and benchmarks are also tried on their values. If not, the other tests decide."""
    fail_fast: bool = False
    """Whether the first failing test ends the grading."""
    run: str = field(default_factory=lambda: secrets.token_hex(8))
    """The id of the verdict, 16 hexadecimal digits."""
    kept: Kept | None = None
    """A cache of build artefacts for the next grading of the same submission; None: no cache."""
    keeps_memory: bool = False
    """Whether this process keeps freed device memory for its next grading: memory that is allocated soon after its
    release is slow (docs/decisions/0006).
    """
