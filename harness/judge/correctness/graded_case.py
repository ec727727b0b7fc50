"""One case of a problem on one device, as all stages of a grading use it. Trusted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from harness.device import DEVICES
from harness.judge.correctness.arenas import bind
from harness.judge.correctness.batch import Batch, Generate
from harness.judge.correctness.layout import Layout
from harness.judge.correctness.oracle import Oracle
from harness.judge.correctness.truth import Truth
from harness.judge.session import Session, SubmissionFault
from harness.judge.session.time_limit import TimeLimit
from harness.problem import Problem, ResolvedCase
from harness.problem.lists import Tensors
from harness.problem.reference import NoReference, Reference
from harness.shared.layouts import ROW_MAJOR, strides_of
from harness.submission import Submission
from harness.verdict import DeviceKind, Outcome
from harness.wire import replies


@dataclass(frozen=True)
class FailedTest:
    """The call of a failed visible test, for the author's debugger; all tensors are on the host, by name."""

    problem: str
    test: str
    params: dict[str, int | str]
    device: DeviceKind
    seed: int
    inputs: Tensors
    """The inputs and the initial values of `inout` tensors."""
    outputs: Tensors
    """The outputs after the call; they contain random bytes where it wrote nothing."""
    expected: Tensors
    """The results of the reference; if it is exact, in float64, except for integers."""


@dataclass(frozen=True)
class GradedCase:
    """A case with its problem, the problem's reference, and the device."""

    problem: Problem
    reference: Reference | Oracle
    device: DeviceKind
    resolved: ResolvedCase
    seed: int | None = None
    """The seed of the inputs of all batches; None: each batch draws its own."""

    @property
    def name(self) -> str:
        return self.resolved.name

    @property
    def hidden(self) -> bool:
        return self.resolved.hidden

    @cached_property
    def layout(self) -> Layout:
        """The places of its tensors in the arenas."""
        return Layout(self.resolved, keeps_copy=self.reference.generates)

    @cached_property
    def truth(self) -> Truth:
        """Computes its expected outputs."""
        return Truth(self.reference, self.resolved)

    @cached_property
    def other_values(self) -> Sequence[ResolvedCase]:
        """For a benchmark: the same case with the values of the problem's tests."""
        return self.problem.other_values(self.resolved, self.device)

    def batch(
        self,
        sets: int,
        *,
        sealed: bool = True,
        filled: bool = True,
        values: Sequence[ResolvedCase] = (),
        judged: bool = True,
    ) -> Batch:
        """Make arenas for `sets` calls; the other arguments are as for `Batch`."""
        return Batch(
            self.layout,
            self.device,
            sets,
            sealed=sealed,
            filled=filled,
            seed=self.seed,
            generate=self.generate,
            values=values,
            judged=judged,
        )

    def of_baseline(self, kernel: Submission) -> GradedCase:
        """The case as this baseline computes it."""
        problem = self.problem.of_baseline(kernel.stem)
        if problem is self.problem:
            return self
        [same] = [case for case in problem.benchmarks if case.name == self.name]
        return GradedCase(problem, NoReference(), self.device, problem.resolve(same))

    @property
    def generate(self) -> Generate | None:
        """The function that makes the inputs of a call from a seed, if the problem has one."""
        if not self.reference.generates:
            return None
        return lambda seed, case: self.reference.generate(case or self.resolved, DEVICES[self.device].generator(seed))

    def bind(
        self, session: Session, batch: Batch, *, limit: TimeLimit, doing: str, inputs_writable: bool = False
    ) -> None:
        """Let a runner prepare the calls of a batch.

        Raises:
            SubmissionFault: as for `Session.ask`.
        """
        seed, parameters = self.reference.weights_seed, self.problem.parameters
        bindings = self.layout.commands(
            self.resolved, parameters, batch.sets, seed=seed, inputs_writable=inputs_writable
        )
        bind(session, bindings, batch.descriptors, limit=limit, doing=doing)

    def result_strides(self, called: replies.Done) -> dict[str, tuple[int, ...]]:
        """The strides of the results that are not row-major, by name, as the runner says.

        Whatever it says, each element of the truth is compared with another element of the output.

        Raises:
            SubmissionFault: the problem does not allow them, which an honest runner never says.
        """
        layouts = called.layouts if isinstance(called, replies.Called) else ()
        several = [tensor for tensor in self.resolved.tensors if tensor.layouts]
        said = list(zip(several, layouts, strict=False))
        if len(layouts) > len(several) or any(layout not in (ROW_MAJOR, *tensor.layouts) for tensor, layout in said):
            raise SubmissionFault(Outcome.REJECTED, "the runner names layouts that the problem does not allow")
        return {tensor.name: strides_of(layout, tensor.shape) for tensor, layout in said if layout != ROW_MAJOR}

    def time_limit(self) -> TimeLimit:
        """The time limit for all timing of the case."""
        return TimeLimit(self.problem.limits.time_s)

    def failed_test(self, label: str, batch: Batch) -> FailedTest:
        """The first call of a batch whose arenas are still open."""
        batch.snapshot()
        _, expected, outputs = next(batch.judge(self.truth, [0]))
        inputs, outputs, truth = (
            # Clones: views of one memory with several dtypes cannot be saved.
            {name: stacked[0].cpu().clone() for name, stacked in tensors.items()}
            for tensors in (expected.inputs, outputs, expected.truth)
        )
        params = dict(self.resolved.params)
        return FailedTest(self.problem.slug, label, params, self.device, batch.seed, inputs, outputs, truth)
