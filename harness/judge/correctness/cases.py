"""The test stage: one call of every test case on fresh secret inputs, and the check of its outputs. Trusted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from torch import Tensor

from harness.arena import give_back
from harness.compare import all_pass_fast_check, beyond_steps, check_by, check_output, describe, is_close
from harness.judge.correctness.batch import Batch
from harness.judge.correctness.graded_case import FailedTest, GradedCase
from harness.judge.correctness.truth import Expected, Truth
from harness.judge.session import Session, SubmissionFault
from harness.judge.session.time_limit import TimeLimit
from harness.problem import ResolvedCase, Tolerance
from harness.problem.elements import dtype_name
from harness.problem.lists import Tensors
from harness.shared.call import names
from harness.verdict import CaseResult, Doubt, DoubtCode, Mismatch, Outcome, OutputCheck
from harness.wire import commands, replies

OnFailure = Callable[[FailedTest], None]
_WRONG_TOLD = 3  # members of a list
_REHEARSED: set[str] = set()  # problems whose device code this process has loaded
_RETURNED = "your function returned {0}: write into `{{output}}` instead, for example `{{output}}.copy_(...)`"
_INSTEAD = {
    "nothing": "in Python, `{output} = ...` does not write into `{output}`: use `{output}.copy_(...)`",
    "a tensor": _RETURNED.format("a tensor"),
    "a value": _RETURNED.format("a value"),
}


class Correctness:
    """Runs test cases in one session; a case's batch lives only as long as the case."""

    def __init__(self, on_failure: OnFailure | None = None) -> None:
        """`on_failure` is called with each test that fails, but for the hidden ones."""
        self._called, self._on_failure = False, on_failure
        self.seeds: list[int] = []  # of visible cases
        self.tracebacks: dict[str, str] = {}  # by case, of visible cases

    def run(self, session: Session, case: GradedCase, label: str) -> CaseResult:
        """Grade one case.

        Raises:
            SubmissionFault: the runner cannot go on.
        """
        give_back(case.device)
        batch = case.batch(1)
        if not case.hidden:
            self.seeds.append(batch.seed)
        try:
            tested = self._test(session, case, label, batch)
        except SubmissionFault as fault:
            self._tell(case, label, batch)
            if not fault.survives:
                raise _explained(fault, batch) from None
            if not case.hidden:
                self.tracebacks[label] = fault.traceback
            return result(case.resolved, label, fault.outcome, fault.message)
        else:
            if tested.outcome is not Outcome.ACCEPTED:
                self._tell(case, label, batch)
            return tested
        finally:
            batch.close_arenas()

    def _test(self, session: Session, case: GradedCase, label: str, batch: Batch) -> CaseResult:
        doing = f"running test {label}"
        limits = case.problem.limits
        seconds, note = limits.call_s, ""
        if not self._called and limits.build_s > limits.call_s:
            # The very first call may have to compile, as with Triton and torch.compile.
            seconds, note = limits.build_s, f" (the first test has {limits.build_s:.3g} s, since it may compile)"
        limit = TimeLimit(seconds, f"{note}; is it an endless loop, a deadlock, or just slow?")
        self._called = True
        case.bind(session, batch, limit=limit, doing=doing)
        case.reference.rest()
        give_back(case.device)
        called = session.ask(commands.Call(sets=(0,), within_ms=limit.left_ms), replies.Done, limit=limit, doing=doing)
        batch.snapshot()
        if out_of_bounds := batch.out_of_bounds([0]):
            message = "; ".join(filter(None, (out_of_bounds.text, out_of_bounds.hint)))
            return result(case.resolved, label, Outcome.RUNTIME_ERROR, message)
        if changed := batch.inputs_changed():
            return result(case.resolved, label, Outcome.REJECTED, f"made its read-only input `{changed}` writable")
        if case.layout.is_large:  # the truth needs room
            session.ask(commands.Release(), replies.Done, limit=TimeLimit(limits.call_s), doing=doing)
            batch.close_arenas()
            give_back(case.device)
        findings = Findings(case.resolved)
        for check in check_batch(batch, case.truth, [0], findings.enough):
            findings.add(_advised(check, called))
        wrong = findings.first_wrong
        outcome = Outcome.WRONG_ANSWER if wrong else Outcome.ACCEPTED
        return result(case.resolved, label, outcome, describe(wrong) if wrong else "", findings.kept)

    def _tell(self, case: GradedCase, label: str, batch: Batch) -> None:
        if self._on_failure is not None and not case.hidden:
            self._on_failure(case.failed_test(label, batch))

    def rehearse(self, case: GradedCase) -> None:
        """Check a case without a call, once for a problem: this loads the judge's own device code while the runner is
        still starting.
        """
        if case.problem.sha256 in _REHEARSED:
            return
        _REHEARSED.add(case.problem.sha256)
        batch = case.batch(1)
        try:
            batch.snapshot()
            batch.out_of_bounds([0])
            batch.inputs_changed()
            if not case.reference.compares:  # `compare` may expect the outputs of a call
                for _ in check_batch(batch, case.truth, [0]):
                    pass
        finally:
            batch.close_arenas()

    def who_wrote_to_an_input(self, session: Session, case: GradedCase) -> str | None:
        """Repeat a case whose call ended in a memory fault, with writable inputs; returns an input that it changed."""
        batch = case.batch(1, sealed=False)
        try:
            limit = TimeLimit(case.problem.limits.call_s)
            case.bind(session, batch, limit=limit, doing="repeating", inputs_writable=True)
            session.ask(commands.Call(sets=(0,)), replies.Done, limit=limit, doing="repeating")
        except SubmissionFault:
            pass  # it also fails for another reason; what it wrote before that still counts
        try:
            return batch.inputs_changed()
        finally:
            batch.close_arenas()


def result(
    case: ResolvedCase, label: str, outcome: Outcome, message: str, outputs: Sequence[OutputCheck] = ()
) -> CaseResult:
    """The record of a case; for a hidden one only its outcome and the kind of failure."""
    if case.hidden:
        hidden = "" if outcome is Outcome.ACCEPTED else outcome.replace("_", " ")
        return CaseResult(name=label, hidden=True, outcome=outcome, message=hidden)
    return CaseResult(name=label, params=dict(case.params), outcome=outcome, message=message, outputs=tuple(outputs))


def _explained(fault: SubmissionFault, batch: Batch) -> SubmissionFault:
    """A memory fault with what was written outside the outputs before: a store that ran on until memory ended, or into
    an input that follows them in the runner's memory. Then no other reason need be looked for.
    """
    if not fault.memory_fault:
        return fault
    batch.snapshot()
    found = batch.out_of_bounds([0])
    if found is None:
        return fault
    message = "; ".join(filter(None, (f"{found.text}: {fault.message}", found.hint)))
    return SubmissionFault(fault.outcome, message, fault.traceback)


def _advised(check: OutputCheck, called: replies.Done) -> OutputCheck:
    """Add a hint to an output that a Python function did not write: what it did instead, if the runner is right."""
    mismatch = check.mismatch
    if mismatch is None or mismatch.whole != "unwritten" or not isinstance(called, replies.Called):
        return check
    hint = _INSTEAD[called.returned].format(output=check.output)
    return check.model_copy(update={"mismatch": mismatch.model_copy(update={"hints": (*mismatch.hints, hint)})})


def beyond_budget(results: Sequence[CaseResult]) -> tuple[Doubt, ...]:
    """The doubt about answers that are right by the problem's own rule but not by the error budget: the worst one."""
    far = [(o.share_of_budget, case.name, o.output) for case in results for o in case.outputs if o.correct]
    share, name, output = max(far, default=(0.0, "", ""))
    if share <= 1:
        return ()
    text = f"test {name}: the error of `{output}` is {share:.3g} times the error budget"
    return (Doubt(code=DoubtCode.BEYOND_BUDGET, text=text),)


class Findings:
    """The checks that a verdict keeps of a case's outputs: for a list of tensors, the first wrong ones and the right
    one nearest to its budget.

    A list may have thousands of tensors: the verdict would hold megabytes that are never read, and explaining them all
    takes minutes.
    """

    def __init__(self, case: ResolvedCase) -> None:
        self._list_of = {tensor.name: tensor.list_name or tensor.name for tensor in case.tensors}
        self.kept: list[OutputCheck] = []
        """In the order in which they were added."""

    def enough(self, output: str) -> bool:
        """Whether so much of its list is already wrong that this one need not be checked."""
        return sum(not check.correct for check in self._of_its_list(output)) >= _WRONG_TOLD

    def add(self, check: OutputCheck) -> None:
        """Add the check of an output."""
        nearest = next((kept for kept in self._of_its_list(check.output) if kept.correct), None)
        if check.correct and nearest is not None:
            if check.share_of_budget <= nearest.share_of_budget:
                return
            self.kept.remove(nearest)
        self.kept.append(check)

    @property
    def first_wrong(self) -> OutputCheck | None:
        return next((check for check in self.kept if not check.correct), None)

    def _of_its_list(self, output: str) -> Iterator[OutputCheck]:
        name = self._list_of.get(output, output)
        return (check for check in self.kept if self._list_of.get(check.output, check.output) == name)


def check_batch(
    batch: Batch,
    truth: Truth,
    called: Sequence[int],
    skipped: Callable[[str], bool] = lambda _: False,
    *,
    measures: bool = True,
) -> Iterator[OutputCheck]:
    """Compare every output of every call that was made; one `OutputCheck` for each run of stacked calls.

    `measures`: the errors of answers that a foreign check accepts, too.
    """
    for first, expected, got in batch.judge(truth, called):
        count = len(next(iter(got.values())))
        if truth.reference.compares:
            yield from _own_compare(truth, expected, got, count, measures=measures)
            continue
        honest = expected.honest()
        for name, values in got.items():
            if skipped(name):
                continue
            # One call is shown to the participant without the axis of the stack.
            label, at = (name, 0) if count == 1 else (f"{name} (calls from {first})", slice(None))
            got_, truth_, honest_ = values[at], expected.truth[name][at], honest[name][at]
            tolerance = truth.case.tolerance.of_output(name)
            checked = partial(check_by(tolerance), label, got_, truth_, honest_, tolerance, calls=count)
            found = checked()
            # Only the explanation of a wrong output needs what was there before the call: it is as large as the output.
            yield found if found.correct else checked(poison=batch.poison(name, count)[at])


def first_wrong(batch: Batch, truth: Truth, called: Sequence[int]) -> OutputCheck | None:
    """The first wrong output of a round, or None; cheap as long as all are right."""
    if not truth.reference.compares and all(
        _surely_right(expected.truth, got, truth.case.tolerance) for _, expected, got in batch.judge(truth, called)
    ):
        return None
    return next((check for check in check_batch(batch, truth, called, measures=False) if not check.correct), None)


def _surely_right(right: Tensors, got: Tensors, tolerance: Tolerance) -> bool:
    calls = len(next(iter(got.values())))
    budgeted: dict[float, tuple[Tolerance, list[tuple[Tensor, Tensor]]]] = {}
    for name, values in got.items():
        own, pair = tolerance.of_output(name), (values, right[name])
        if own.off_by is not None:
            if beyond_steps(*pair, own, calls) is not None:
                return False
        elif own.rtol is None:
            budgeted.setdefault(own.factor, (own, []))[1].append(pair)
        elif not is_close(*pair, own):
            return False
    return all(all_pass_fast_check(pairs, own, calls) for own, pairs in budgeted.values())


def _own_compare(
    truth: Truth, expected: Expected, got: Tensors, count: int, *, measures: bool
) -> Iterator[OutputCheck]:
    """Ask the problem's own `compare` about each call.

    The errors of a right answer can be measured too, unless the problem is ours: then an author who wrote a `compare`
    has said that there are right answers far from the reference's.
    """
    name = next(_answered(truth.case), next(iter(got)))
    values = got[name]
    for k in range(count):
        answer, given, right = (
            truth.grouped({n: t[k] for n, t in stacked.items()}) for stacked in (got, expected.given, expected.truth)
        )
        why = truth.reference.compare(answer, given, right, truth.case, partial(_usual, truth, expected, got, k))
        if measures and why is None and not truth.reference.exact:
            honest = expected.honest()
            for output in _answered(truth.case):
                values_, truth_, honest_ = got[output][k], expected.truth[output][k], honest[output][k]
                yield check_output(output, values_, truth_, honest_, truth.case.tolerance).accepted()
            continue
        shape, dtype = tuple(values[k].shape), dtype_name(values.dtype)
        mismatch = Mismatch(output=name, shape=shape, dtype=dtype, wrong=0, total=values[k].numel(), hints=(why or "",))
        wrong = None if why is None else mismatch
        yield OutputCheck(output=name, dtype=dtype, correct=why is None, mismatch=wrong)


def _usual(truth: Truth, expected: Expected, got: Tensors, k: int, output: str) -> str | None:
    """What the tolerance says of an output of call k, or of all members of a list: a `compare` may build on it."""
    names = [name for name in got if name.partition("[")[0] == output]
    if not names:
        raise KeyError(f"{output} is no output")
    one, right = ({name: stacked[name][k : k + 1] for name in names} for stacked in (got, expected.truth))
    if _surely_right(right, one, truth.case.tolerance):
        return None
    honest = truth.one({name: tensor[k] for name, tensor in expected.given.items()})
    for name in names:
        tolerance = truth.case.tolerance.of_output(name)
        checked = check_by(tolerance)(name, got[name][k], expected.truth[name][k], honest[name], tolerance)
        if not checked.correct:
            return describe(checked)
    return None


def _answered(case: ResolvedCase) -> Iterator[str]:
    """The outputs that mean something: not those that a call is given to use as it likes, and does not return."""
    returned = set(names(case.forms.result))
    for tensor in case.tensors:
        if tensor.role == "inout" or (tensor.role == "output" and (tensor.list_name or tensor.name) in returned):
            yield tensor.name
