"""The test stage: makes one call of every test case on new secret inputs, and checks its outputs. Trusted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from torch import Tensor

from harness.arena import give_back
from harness.compare import all_pass_fast_check, beyond_steps, check_by, check_output, describe, is_close
from harness.judge.correctness.batch import Batch
from harness.judge.correctness.graded_case import FailedTest, GradedCase
from harness.judge.correctness.truth import ExpectedOutputs, Truth
from harness.judge.session import Session, SubmissionFault
from harness.judge.session.time_limit import TimeLimit
from harness.problem import ResolvedCase, Tolerance
from harness.problem.elements import dtype_name
from harness.problem.lists import Tensors
from harness.shared.call import names
from harness.verdict import CaseResult, Doubt, DoubtCode, Mismatch, Outcome, OutputCheck
from harness.wire import commands, replies

OnFailure = Callable[[FailedTest], None]
_MAX_WRONG = 3  # wrong members of a list that are reported
_WARMED_UP: set[str] = set()  # hashes of problems whose device code this process has loaded
_RETURNED = "your function returned {0}: write into `{{output}}` instead, for example `{{output}}.copy_(...)`"
_INSTEAD = {
    "nothing": "in Python, `{output} = ...` does not write into `{output}`: use `{output}.copy_(...)`",
    "a tensor": _RETURNED.format("a tensor"),
    "a value": _RETURNED.format("a value"),
}


class Correctness:
    """Runs test cases in one session; a case's batch lives only as long as the case."""

    def __init__(self, on_failure: OnFailure | None = None) -> None:
        """`on_failure` is called with each visible test that fails."""
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
            self._report_failure(case, label, batch)
            if not fault.survives:
                raise _with_out_of_bounds_write(fault, batch) from None
            if not case.hidden:
                self.tracebacks[label] = fault.traceback
            return result(case.resolved, label, fault.outcome, fault.message)
        else:
            if tested.outcome is not Outcome.ACCEPTED:
                self._report_failure(case, label, batch)
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
        case.reference.release_large()
        give_back(case.device)
        called = session.ask(commands.Call(sets=(0,), within_ms=limit.left_ms), replies.Done, limit=limit, doing=doing)
        batch.result_strides = case.result_strides(called)
        batch.snapshot()
        if out_of_bounds := batch.out_of_bounds([0]):
            message = "; ".join(filter(None, (out_of_bounds.text, out_of_bounds.hint)))
            return result(case.resolved, label, Outcome.RUNTIME_ERROR, message)
        if changed := batch.inputs_changed():
            return result(case.resolved, label, Outcome.REJECTED, f"made its read-only input `{changed}` writable")
        if case.layout.is_large:  # the reference needs the memory
            session.ask(commands.Release(), replies.Done, limit=TimeLimit(limits.call_s), doing=doing)
            batch.close_arenas()
            give_back(case.device)
        findings = Findings(case.resolved)
        for check in check_batch(batch, case.truth, [0], findings.enough):
            findings.add(_with_hint(check, called))
        wrong = findings.first_wrong
        outcome = Outcome.WRONG_ANSWER if wrong else Outcome.ACCEPTED
        return result(case.resolved, label, outcome, describe(wrong) if wrong else "", findings.kept)

    def _report_failure(self, case: GradedCase, label: str, batch: Batch) -> None:
        if self._on_failure is not None and not case.hidden:
            self._on_failure(case.failed_test(label, batch))

    def warm_up_checks(self, case: GradedCase) -> None:
        """Check a case without a call, once per problem, to load the judge's device code while the runner starts."""
        if case.problem.sha256 in _WARMED_UP:
            return
        _WARMED_UP.add(case.problem.sha256)
        batch = case.batch(1)
        try:
            batch.snapshot()
            batch.out_of_bounds([0])
            batch.inputs_changed()
            if not case.reference.compares:  # `compare` may fail on outputs that no call has written
                for _ in check_batch(batch, case.truth, [0]):
                    pass
        finally:
            batch.close_arenas()

    def changed_input(self, session: Session, case: GradedCase) -> str | None:
        """Repeat a case that ended in a memory fault, with writable inputs; returns an input that the call changed."""
        batch = case.batch(1, sealed=False)
        try:
            limit = TimeLimit(case.problem.limits.call_s)
            case.bind(session, batch, limit=limit, doing="repeating", inputs_writable=True)
            session.ask(commands.Call(sets=(0,)), replies.Done, limit=limit, doing="repeating")
        except SubmissionFault:
            pass  # it fails for another reason, too, but may have written to an input before that
        try:
            return batch.inputs_changed()
        finally:
            batch.close_arenas()


def result(
    case: ResolvedCase, label: str, outcome: Outcome, message: str, outputs: Sequence[OutputCheck] = ()
) -> CaseResult:
    """The result of a case. For a hidden case it contains only the outcome."""
    if case.hidden:
        hidden = "" if outcome is Outcome.ACCEPTED else outcome.replace("_", " ")
        return CaseResult(name=label, hidden=True, outcome=outcome, message=hidden)
    return CaseResult(name=label, params=dict(case.params), outcome=outcome, message=message, outputs=tuple(outputs))


def _with_out_of_bounds_write(fault: SubmissionFault, batch: Batch) -> SubmissionFault:
    """Add to a memory fault what was written outside the outputs before, which explains it.

    The store may have run on to the end of the memory, or into an input that follows the outputs.
    """
    if not fault.memory_fault:
        return fault
    batch.snapshot()
    found = batch.out_of_bounds([0])
    if found is None:
        return fault
    message = "; ".join(filter(None, (f"{found.text}: {fault.message}", found.hint)))
    return SubmissionFault(fault.outcome, message, fault.traceback)


def _with_hint(check: OutputCheck, called: replies.Done) -> OutputCheck:
    """Add a hint to an output that a Python function did not write: what, as the runner says, it did instead."""
    mismatch = check.mismatch
    if mismatch is None or mismatch.whole != "unwritten" or not isinstance(called, replies.Called):
        return check
    hint = _INSTEAD[called.returned].format(output=check.output)
    return check.model_copy(update={"mismatch": mismatch.model_copy(update={"hints": (*mismatch.hints, hint)})})


def beyond_budget(results: Sequence[CaseResult]) -> tuple[Doubt, ...]:
    """The doubt about the worst answer that is right by the problem's own rule, but not by the error budget."""
    far = [(o.share_of_budget, case.name, o.output) for case in results for o in case.outputs if o.correct]
    share, name, output = max(far, default=(0.0, "", ""))
    if share <= 1:
        return ()
    text = f"test {name}: the error of `{output}` is {share:.3g} times the error budget"
    return (Doubt(code=DoubtCode.BEYOND_BUDGET, text=text),)


class Findings:
    """The checks of a case's outputs that the verdict keeps.

    Of a list of tensors it keeps the first wrong ones, and the right one that is nearest to its budget. A list may have
    thousands of tensors: all checks would take megabytes that nobody reads, and all explanations would take minutes.
    """

    def __init__(self, case: ResolvedCase) -> None:
        self._list_of = {tensor.name: tensor.list_name or tensor.name for tensor in case.tensors}
        self.kept: list[OutputCheck] = []
        """In the order in which they were added."""

    def enough(self, output: str) -> bool:
        """Whether so many members of the output's list are wrong that this one need not be checked."""
        return sum(not check.correct for check in self._of_its_list(output)) >= _MAX_WRONG

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
    """Compare every output of every call that was made; yields one `OutputCheck` for each output of a stack of calls.

    `measures`: also measure the errors of answers that a foreign check accepts.
    """
    for first, expected, got in batch.judge(truth, called):
        count = len(next(iter(got.values())))
        if truth.reference.compares:
            yield from _check_by_compare(truth, expected, got, count, measures=measures)
            continue
        honest = expected.honest()
        for name, values in got.items():
            if skipped(name):
                continue
            # A single call is reported without the stack's axis.
            label, at = (name, 0) if count == 1 else (f"{name} (calls from {first})", slice(None))
            got_, truth_, honest_ = values[at], expected.truth[name][at], honest[name][at]
            tolerance = truth.case.tolerance.of_output(name)
            checked = partial(check_by(tolerance), label, got_, truth_, honest_, tolerance, calls=count)
            found = checked()
            # Only the explanation of a wrong output needs the poison, which is as large as the output.
            yield found if found.correct else checked(poison=batch.poison(name, count)[at])


def first_wrong(batch: Batch, truth: Truth, called: Sequence[int]) -> OutputCheck | None:
    """The first wrong output of a batch, or None. This is cheap if all outputs are right."""
    if not truth.reference.compares and all(
        _passes_fast_check(expected.truth, got, truth.case.tolerance) for _, expected, got in batch.judge(truth, called)
    ):
        return None
    return next((check for check in check_batch(batch, truth, called, measures=False) if not check.correct), None)


def _passes_fast_check(right: Tensors, got: Tensors, tolerance: Tolerance) -> bool:
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


def _check_by_compare(
    truth: Truth, expected: ExpectedOutputs, got: Tensors, count: int, *, measures: bool
) -> Iterator[OutputCheck]:
    """Let the problem's own `compare` check each call.

    For a foreign problem the errors of right answers can be measured, too. In a problem of our own, a `compare` means
    that right answers may be far from the reference's.
    """
    # A case has an output with elements, but not every output need have some.
    name = next(output for output in (*_result_names(truth.case), *got) if got[output].numel())
    values = got[name]
    for k in range(count):
        answer, inputs, right = (
            truth.grouped({n: t[k] for n, t in stacked.items()}) for stacked in (got, expected.inputs, expected.truth)
        )
        why = truth.reference.compare(
            answer, inputs, right, truth.case, partial(_by_tolerance, truth, expected, got, k)
        )
        if measures and why is None and not truth.reference.exact:
            honest = expected.honest()
            for output in _result_names(truth.case):
                values_, truth_, honest_ = got[output][k], expected.truth[output][k], honest[output][k]
                yield check_output(output, values_, truth_, honest_, truth.case.tolerance).accepted()
            continue
        shape, dtype = tuple(values[k].shape), dtype_name(values.dtype)
        mismatch = Mismatch(output=name, shape=shape, dtype=dtype, wrong=0, total=values[k].numel(), hints=(why or "",))
        wrong = None if why is None else mismatch
        yield OutputCheck(output=name, dtype=dtype, correct=why is None, mismatch=wrong)


def _by_tolerance(truth: Truth, expected: ExpectedOutputs, got: Tensors, k: int, output: str) -> str | None:
    """Check an output of call k, or all members of a list, by the tolerance, for `compare`; None if right, else why."""
    names = [name for name in got if name.partition("[")[0] == output]
    if not names:
        raise KeyError(f"{output} is no output")
    answer, right = ({name: stacked[name][k : k + 1] for name in names} for stacked in (got, expected.truth))
    if _passes_fast_check(right, answer, truth.case.tolerance):
        return None
    honest = truth.of_call({name: tensor[k] for name, tensor in expected.inputs.items()})
    for name in names:
        tolerance = truth.case.tolerance.of_output(name)
        checked = check_by(tolerance)(name, got[name][k], expected.truth[name][k], honest[name], tolerance)
        if not checked.correct:
            return describe(checked)
    return None


def _result_names(case: ResolvedCase) -> Iterator[str]:
    """The outputs that are results, which excludes buffers that a call may use as it likes and does not return."""
    returned = set(names(case.forms.result))
    for tensor in case.tensors:
        if tensor.role == "inout" or (tensor.role == "output" and (tensor.list_name or tensor.name) in returned):
            yield tensor.name
