"""What a grading is given, in one object: the submission, where it is graded, and how. Trusted; imports no torch."""

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
    """One submission to grade once, by a check or with its times."""

    problem: Problem
    submission: Submission
    _: KW_ONLY
    provider: Provider
    """The sandbox."""
    device: DeviceKind
    effort: Effort = "default"
    baselines: Sequence[Submission] = ()
    """Kernels to alternate with, each in its own sandbox, which starts together with the submission's."""
    calibrations: Sequence[Calibration] = ()
    """What devices can do: a time that beats the calibration of this one is rejected."""
    on_progress: Callable[[Progress], None] = ignore
    on_failure: OnFailure | None = None
    """Called with the tensors of each test that fails and is not hidden."""
    only: Collection[str] = ()
    """The tests that a check runs, without the hidden ones; if they are right, it is `incomplete`. Empty: all tests."""
    hidden: bool = True
    """Whether hidden tests run, and whether benchmarks are tried on their values; without, a grading is accepted if all
    others are right.
    """
    fail_fast: bool = False
    """Whether the first test that fails ends the grading."""
    run: str = field(default_factory=lambda: secrets.token_hex(8))
    """The id of the verdict, 16 hexadecimal digits."""
    kept: Kept | None = None
    """Where what separate builds leave is kept for the next grading of the same submission; None: nowhere."""
    keeps_memory: bool = False
    """Whether device memory that is free again stays with this process, for its next grading: memory allocated soon
    after its release is slow (docs/decisions/0006).
    """
