"""The tensors of a test that failed, for its author's debugger. Trusted; a hidden test has none."""

from __future__ import annotations

from dataclasses import dataclass

from harness.judge.correctness.batch import Batch
from harness.judge.correctness.graded_case import GradedCase
from harness.judge.correctness.truth import Tensors
from harness.verdict import DeviceKind


@dataclass(frozen=True)
class FailedTest:
    """One call: its sizes, the seed of its inputs on this device, and its tensors by name, on the host."""

    problem: str
    test: str
    params: dict[str, int | str]
    device: DeviceKind
    seed: int
    inputs: Tensors
    """What the call got, an `inout` included."""
    outputs: Tensors
    """What the call left there; random bytes where it wrote nothing."""
    expected: Tensors
    """What the reference gives for these inputs: in float64, where an output is not of integers and the reference is
    exact.
    """


def failed_test(case: GradedCase, label: str, batch: Batch) -> FailedTest:
    """The tensors of the first call of a batch, whose arenas are still open."""
    batch.snapshot()
    _, expected, outputs = next(batch.judge(case.truth, [0]))
    inputs, outputs, truth = (
        # Clones: views of one memory with several dtypes cannot be saved.
        {name: stacked[0].cpu().clone() for name, stacked in tensors.items()}
        for tensors in (expected.given, outputs, expected.truth)
    )
    return FailedTest(
        case.problem.slug, label, dict(case.resolved.params), case.device, batch.seed, inputs, outputs, truth
    )
