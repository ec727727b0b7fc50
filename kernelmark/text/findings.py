"""Formats the tests of a grading as plain text: what failed, why, and where outputs differ.

Trusted code over untrusted text: everything from a participant goes through `visible`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from harness.verdict import Outcome
from harness.verdict.case import how_informative, most_informative
from kernelmark.text.terminal import INDENT, columns, counted, labelled, visible
from leaderboard.text.visible import parameters

if TYPE_CHECKING:
    from harness.verdict import Budget, CaseResult, Check, Mismatch, OutputCheck

_NAMED = 4  # how many tests are named that failed in the same way
_WAYS = 4  # how many lines describe ways in which tests failed; all further ways share the last one


def reason(result: Check) -> str:
    """The message of a result. For a wrong answer it is about the test whose wrong elements are shown."""
    failed = [case for case in result.tests if case.outcome.exit_code]
    if result.outcome is not Outcome.WRONG_ANSWER or not (shown := _shown(failed)):
        return result.message
    first = next(case for case in failed if case.outcome is result.outcome)
    return result.message.replace(f"test {first.name}: {first.message}", f"test {shown.name}: {shown.message}", 1)


def failures(failed: Sequence[CaseResult], *, none_right: bool = False) -> Iterator[str]:
    """One line for each way in which tests failed, and one table of a wrong output: people do not read twelve.

    `none_right` says that all tests ran and failed. If they failed in the same way, the headline has the reason.
    """
    if none_right and (alike := _alike(failed)):
        yield labelled("failed", alike)
    else:
        yield from _failed(failed)
    if case := _shown(failed):
        output, mismatch = min(_mismatches(case), key=lambda pair: how_informative(pair[1]))
        yield from _mismatch(mismatch, f" in {visible(case.name)}")
        yield from _budgets(output, f" in {mismatch.dtype}")


def outputs(case: CaseResult) -> Iterator[str]:
    """The errors of every output, and its wrong elements."""
    for output in case.outputs:
        yield from _budgets(output, f" in {output.mismatch.dtype}" if output.mismatch else "")
        if output.mismatch is not None:
            yield from _mismatch(output.mismatch)


def line(case: CaseResult) -> str:
    """A test with its sizes and its outcome."""
    return f"{named(case)}: {_why(case)}"


def named(case: CaseResult) -> str:
    """A test with its sizes."""
    name = visible(case.name) + (" (hidden)" if case.hidden else "")
    params = f" ({parameters(case.params)})" if case.params else ""
    return f"{name}{params}"


def _shown(failed: Sequence[CaseResult]) -> CaseResult | None:
    """The test whose wrong elements are shown; None if no output is wrong."""
    explained = [case for case in failed if _mismatches(case)]
    return most_informative(explained) if explained else None


def _alike(failed: Sequence[CaseResult]) -> str:
    """A line about all tests, if the visible ones failed with one message and all have the same outcome; else empty."""
    shown = [case for case in failed if not case.hidden]
    if len(shown) < 2 or len({case.message for case in shown}) > 1 or len({case.outcome for case in failed}) > 1:
        return ""
    hidden = len(failed) - len(shown)
    return f"all {len(shown)} tests in the same way" + (f", and {counted(hidden, 'hidden test')}" if hidden else "")


def _failed(failed: Sequence[CaseResult]) -> Iterator[str]:
    """Tests with the same message share a line. If there are too many such lines, the rest share one per outcome."""
    alike: dict[tuple[bool, str, str], list[CaseResult]] = {}
    for case in failed:
        alike.setdefault((case.hidden, case.outcome.value, case.message), []).append(case)
    ways = list(alike.values())
    first_ways = ways if len(ways) <= _WAYS else ways[: _WAYS - 1]
    rest: dict[tuple[bool, str], list[CaseResult]] = {}
    for case in (case for cases in ways[len(first_ways) :] for case in cases):
        rest.setdefault((case.hidden, case.outcome.value), []).append(case)
    for cases in first_ways:
        several = f"{_several(cases, _NAMED)}: {_why(cases[0])}" if cases[1:] else ""
        yield labelled("failed", several or line(cases[0]))
    for (_, outcome), cases in rest.items():
        yield labelled("failed", f"{_several(cases)}: {outcome.replace('_', ' ')}")


def _several(cases: Sequence[CaseResult], named: int | None = None) -> str:
    kind = "hidden test" if cases[0].hidden else "test"
    more = ", ..." if named is not None and len(cases) > named else ""
    names = ", ".join(visible(case.name) for case in cases[:named]) + more
    return f"{counted(len(cases), kind)} ({names})"


def _why(case: CaseResult) -> str:
    outcome = case.outcome.value.replace("_", " ")
    return outcome + (f": {visible(case.message)}" if case.message not in ("", outcome) else "")


def _mismatches(case: CaseResult) -> list[tuple[OutputCheck, Mismatch]]:
    return [(output, output.mismatch) for output in case.outputs if output.mismatch is not None]


def _mismatch(mismatch: Mismatch, where: str = "") -> Iterator[str]:
    if not mismatch.wrong:  # the problem's own `compare` neither counts elements nor needs to name an output
        yield labelled("output", f"refused by the problem's own check{where}")
        return
    shape = ", ".join(map(str, mismatch.shape))
    worst = f", worst at {list(mismatch.worst_index)}" if mismatch.worst_index is not None else ""
    counts = f"{mismatch.wrong:,} of {mismatch.total:,} elements wrong ({mismatch.percent:.3g} %){worst}"
    unwritten = mismatch.whole == "unwritten"
    how_many = f"none of {mismatch.total:,} elements was written" if unwritten else counts
    yield labelled("output", f"{visible(mismatch.output)} [{shape}] {mismatch.dtype}{where}: {how_many}")
    for kind, got, expected in (
        ("NaN", mismatch.nan_got, mismatch.nan_expected),
        ("infinite", mismatch.inf_got, mismatch.inf_expected),
    ):
        if (got or expected) and not unwritten:
            yield f"{INDENT * 2}{kind}: {got:,} in yours, {expected:,} expected"
    if mismatch.first:
        cells = [(str(list(b.index)), visible(b.got), visible(b.expected), visible(b.error)) for b in mismatch.first]
        head = ("index", "got", "expected", "absolute error")
        yield from columns(cells, head=head, right={1, 2, 3}, indent=INDENT * 2)
    for hint in mismatch.hints:
        yield f"{INDENT * 2}hint: {visible(hint)}"


def _budgets(output: OutputCheck, in_dtype: str) -> Iterator[str]:
    m = output.mismatch
    if m and m.whole == "unwritten":
        return
    finite = " where both are finite" if m and m.nan_got + m.nan_expected + m.inf_got + m.inf_expected else ""
    for label, budget in (("largest relative error", output.max_error), ("relative RMS error", output.rms_error)):
        if budget is not None:
            anyway = "; the problem's own rule accepts it" if output.correct and not budget.met else ""
            yield f"{INDENT * 2}{visible(output.output)}, {label}{finite}: {budget_text(budget, in_dtype)}{anyway}"


def budget_text(budget: Budget, in_dtype: str = "") -> str:
    """`your error 3.1e-07, allowed 4.8e-07 (4 × the reference's own in float32)`."""
    own = f"{budget.factor:g} × the reference's own{visible(in_dtype)}"
    floored = budget.factor * budget.reference_error < budget.floor
    why = f"the floor; {own} is less" if floored else own
    return f"your error {budget.error:.2g}, allowed {budget.allowed:.2g} ({why})"
