"""Formats a problem: its statement, and what a submission must define. Trusted; organizers write problems."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, NotRequired

from typing_extensions import TypedDict

from harness.problem.signature import lacks_weights
from kernelmark.text.terminal import INDENT, Line, counted, labelled, visible
from leaderboard.text.units import duration
from leaderboard.text.visible import parameters

if TYPE_CHECKING:
    from harness.problem import Case, Problem
    from harness.problem.fill_spec import Fill
    from harness.problem.schedule import Schedule
    from harness.problem.spec import TensorSpec
    from harness.problem.tolerance import Tolerance

WIDTH = 80
_VALUES = 8  # how many values of a choice are shown
_STYLES = {
    "returns": "a function that returns its outputs",
    "module": "a class, whose instance is called and returns its outputs",
    "tree": "a function of one value that returns its outputs",
}


class BaselineTime(NamedTuple):
    """The time of a baseline on a device: the geometric mean over all benchmark cases of one run."""

    name: str
    device: str
    time_ns: int
    run: str


def lines(
    spec: Problem,
    statement: str = "",
    entry_points: Mapping[str, Sequence[str]] = {},
    times: Sequence[BaselineTime] = (),
    now: datetime | None = None,
    width: int = WIDTH,
) -> Iterator[str]:
    """The title, the statement (in Markdown), the entry points, tensors and cases, and the times of baselines.

    With `now`, they include the state of the deadline at this moment. Lines have at most `width` columns unless a word
    is longer.
    """
    yield Line(f"{spec.slug}: {spec.title}", "bold")
    if statement.strip():
        yield ""
        yield from _rendered(statement, width)
        yield ""
    for label, text in _facts(spec, entry_points, times, now):
        line = labelled(label, text, "dim")
        first, *others = line.wrapped(width)
        yield Line(first, "dim", styled=len(label) + len(INDENT))
        yield from others


def open_now(spec: Schedule, now: datetime) -> str:
    """The state of the deadline now, and how much time is left until it changes."""
    ends = [end for end in (spec.deadline, spec.on_time_until, spec.closes) if end is not None and now <= end]
    if not ends:
        return spec.schedule_at(now)
    left = ends[0] - now
    hours = left.seconds // 3600
    remaining = counted(left.days, "day") if left.days else counted(hours, "hour") if hours else "less than an hour"
    return f"{spec.schedule_at(now)}, {remaining} left"


def _facts(
    spec: Problem, entry_points: Mapping[str, Sequence[str]], times: Sequence[BaselineTime], now: datetime | None
) -> Iterator[tuple[str, str]]:
    written = " and ".join(", ".join(tensor.name for tensor in spec.tensors if tensor.role != "input").rsplit(", ", 1))
    style = _STYLES.get(spec.call.style, f"a function that writes into {written}")
    yield "Python", f"{spec.signature}: {style}"
    for suffix, declared in entry_points.items():
        yield from ((f".{suffix}", line) for line in declared)
    if entry_points and lacks_weights(spec):
        yield "weights", "are Python's alone: where the class draws any, no .cu or .cpp can be right"
    if imported := [source.name for source in spec.foreign.files if source.shown] if spec.foreign else []:
        yield "imports", f"{', '.join(imported)}, if it likes"
    for tensor in spec.tensors:
        yield tensor.role, _tensor(tensor)
    for scalar in spec.scalars:
        yield "scalar", f"{scalar.name} {scalar.dtype} = {scalar.value}"
    yield "tolerance", _tolerance(spec)
    if spec.timing == "calls":
        yield "timing", "plain calls on GPUs too, with their work on the host"
    if spec.deadline is not None:
        yield "open", spec.schedule
        if now is not None:
            yield "now", open_now(spec, now)
    if spec.tags:
        yield "tags", ", ".join(spec.tags)
    yield "sources", spec.visibility.replace("_", " ")
    weighted = any(case.weight != 1 for case in spec.benchmarks)
    for kind, cases in (("test", spec.tests), ("benchmark", spec.benchmarks)):
        for case in cases:
            if not case.hidden:
                weight = f", weight {case.weight:g}" if weighted and kind == "benchmark" else ""
                yield kind, _case(case) + weight
        if hidden := sum(case.hidden for case in cases):
            private = f", {spec.private.cases} of them private" if spec.private else ""
            yield kind, f"and {counted(hidden, 'hidden one')}{private}"
    for baseline in times:
        mean = f"{duration(baseline.time_ns)} on {visible(baseline.device)}"
        yield "baseline", f"{visible(baseline.name)}: {mean}, the geometric mean of run {baseline.run}"


def _tensor(spec: TensorSpec) -> str:
    shape = ", ".join(str(extent) for extent in spec.shape)
    copies = "" if spec.count is None else f", a list of {spec.count}"
    apart = "" if spec.strides is None else f", strides [{', '.join(str(stride) for stride in spec.strides)}]"
    apart += f", may be returned {' or '.join(spec.layouts)}" if spec.layouts else ""
    place = "" if spec.memory == "device" else ", in the host's memory"
    absent = "" if spec.present is None else f"; None, in C a null pointer, where {spec.present} is 0"
    filled = "" if spec.role == "output" else f": {_fill(spec.fill)}"
    return f"{spec.name} [{shape}] {spec.dtype}{apart}{copies}{place}{filled}{absent}"


def _case(case: Case) -> str:
    drawn = {name: f"{size.low}..{size.high}" for name, size in case.draw.items()}
    fills = "".join(f"; {name}: {_fill(fill)}" for name, fill in case.fill.items())
    return f"{case.name}: {parameters({**case.params, **drawn})} ({', '.join(case.devices)}){fills}"


def _fill(fill: Fill) -> str:
    values = {
        "normal": f"normal, mean {fill.mean:g}, standard deviation {fill.scale:g}",
        "uniform": f"uniform from {fill.low} to {fill.high}",
        "integers": f"whole numbers from {fill.low} to {fill.high}",
        "choice": f"each one of {', '.join(f'{value:g}' for value in fill.values[:_VALUES])}"
        + (f", ... ({len(fill.values)} values)" if len(fill.values) > _VALUES else ""),
        "powers": f"powers of 2 with exponents from {fill.low} to {fill.high}",
        "zeros": "zeros",
        "generated": "made by `generate` in reference.py",
    }[fill.kind]
    return values + (f"; {100 * fill.neg_inf:g} % are -inf" if fill.neg_inf else "")


def _rendered(statement: str, width: int) -> Iterator[str]:
    """Markdown as plain text, without its main title."""
    from rich.console import Console
    from rich.markdown import Markdown

    title, _, rest = statement.lstrip().partition("\n")
    body = rest if title.startswith("# ") else statement
    printed = io.StringIO()
    console = Console(file=printed, width=width - 2 * len(INDENT), color_system=None, force_terminal=False)
    console.print(Markdown(body, hyperlinks=False))
    blank = True
    for line in printed.getvalue().rstrip().split("\n"):
        if line.strip() or not blank:
            yield (INDENT + visible(line)).rstrip()
        blank = not line.strip()


def _tolerance(spec: Problem) -> str:
    allowed = spec.tolerance
    match spec.decided_by:
        case "reference":
            return "the imported reference checks answers itself"
        case "compare":
            return f"`compare` in reference.py decides{_of_outputs(spec)}"
        case "allclose":
            return f"{allowed.atol:g} + {allowed.rtol:g} × |expected| for each element{_of_outputs(spec)}"
    equal = f"{', '.join(f'`{name}`' for name in spec.exact_outputs)} must be equal" if spec.exact_outputs else ""
    if len(spec.exact_outputs) == sum(tensor.role != "input" for tensor in spec.tensors):
        return equal
    also = (f"; {equal}" if equal else "") + _of_outputs(spec, spec.exact_outputs)
    if allowed.off_by:
        return f"each output {_off_by(allowed)}{also}"
    own = "" if spec.foreign else f"{allowed.factor:g} × the reference's own error, at least "
    grows = "" if allowed.sum_length == 1 else f", and more for long sums, here of {allowed.sum_length} terms"
    floor = f"{allowed.floor_ulps:g} ulps of the output's dtype ({allowed.accumulation_ulps:g} of float32{grows})"
    return f"{own}{floor} for the largest error, a quarter for the RMS{also}"


def _of_outputs(spec: Problem, named: Sequence[str] = ()) -> str:
    """The tolerances of outputs that have their own, without those that were named."""
    own = {name: spec.tolerance.of_output(name) for name in spec.tolerance.outputs if name not in named}
    return "".join(f"; `{name}` {_off_by(tolerance)}" for name, tolerance in own.items())


def _off_by(tolerance: Tolerance) -> str:
    if tolerance.off_by is None:
        return f"with the factor {tolerance.factor:g}"
    most = "" if tolerance.share == 1 else f" in at most {100 * tolerance.share:g} % of the elements"
    return f"may be off by {tolerance.off_by}{most}" if tolerance.off_by else "must be equal"


class ProblemNotes(TypedDict):
    """The fields that are added to a problem for programs."""

    decided_by: str
    hidden_tests: int
    private_tests: NotRequired[int]


def document(spec: Problem) -> dict[str, Any]:
    """The same for programs: the parsed `problem.toml` with `ProblemNotes`; hidden cases are counted but left out."""
    shown = [case for case in spec.tests if not case.hidden]
    left_out = {"tests": tuple(shown), "private": None}
    document = spec.model_copy(update=left_out).model_dump(mode="json", exclude_none=True)
    notes: ProblemNotes = {"decided_by": spec.decided_by, "hidden_tests": len(spec.tests) - len(shown)}
    if spec.private:
        notes["private_tests"] = spec.private.cases
    return {**document, **notes}
