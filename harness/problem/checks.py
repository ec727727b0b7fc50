"""Checks that a problem's keys agree: names, devices, visibility, and every case; trusted, no torch.

`Problem` calls it at construction, so that a problem with contradicting keys cannot exist.
"""

from __future__ import annotations

from harness.call import names as form_names
from harness.call import numbered
from harness.call import parameters as form_parameters
from harness.errors import nearest
from harness.problem.dtypes import DTYPES
from harness.problem.flaws import Flaws, case_key, flaws_of
from harness.problem.resolve import resolve_case
from harness.problem.signature import unreachable_outputs
from harness.problem.spec import Case, ProblemSpec


def check(problem: ProblemSpec) -> None:
    """Check a whole problem, and resolve every case; for one that draws its sizes, all combinations of extremes.

    Raises:
        ProblemError: the first contradiction, with its key.
    """
    flaws = Flaws(str(problem.directory / "problem.toml"))
    _check_names(problem, flaws)
    _check_call(problem, flaws)
    if all(spec.role == "input" for spec in problem.tensors):
        flaws.at("tensors", "has no output", "give a tensor the role 'output' or 'inout'")
    for number, case in enumerate(problem.benchmarks):
        if case.hidden:
            flaws.at(f"benchmarks[{number}].hidden", "is true", "only tests can be hidden: a time shows its sizes")
        if case.draw:
            flaws.at(f"benchmarks[{number}].draw", "is given", "only tests can draw sizes: a benchmark's are fixed")
    for case in problem.tests:
        if "weight" in case.model_fields_set:
            key = f"{case_key(problem, case)}.weight"
            flaws_of(problem, case).at(key, "is given", "only benchmarks have weights: a test is right or wrong")
    _check_schedule(problem, flaws)
    for case in problem.tests + problem.benchmarks:
        _check_draw(problem, case)
        _check_options(problem, case)
        for extreme in case.extremes():
            resolve_case(problem, extreme, case)
    _check_kinds(problem)
    _check_devices(problem, flaws)
    _check_used(problem, flaws)


def _check_schedule(problem: ProblemSpec, flaws: Flaws) -> None:
    """Everything else about submitting needs a deadline, and a period that has a place on the calendar."""
    if problem.deadline is None:
        if problem.visibility == "after_deadline":
            flaws.at("visibility", "is 'after_deadline', but there is no `deadline`", "add one, with its time zone")
        for key, value in (("grace", problem.grace), ("late", problem.late)):
            if value is not None:
                flaws.at(key, "is given, but there is no `deadline`", "add one, with its time zone")
        return
    try:
        on_time_until, closes = problem.on_time_until, problem.closes
    except OverflowError:
        flaws.at("deadline", "has no end of the time after it on the calendar", "set an earlier one")
    if problem.late is not None and on_time_until is not None and closes is not None and on_time_until >= closes:
        flaws.at("grace", "is not shorter than the time of `late`", "shorten it, or leave `late` out")


def _check_names(problem: ProblemSpec, flaws: Flaws) -> None:
    """All arguments share one namespace: they are the parameters of one C function."""
    seen: dict[str, str] = {}
    named = [(f"parameters[{n}]", name) for n, name in enumerate(problem.parameters)]
    named += [(f"tensors[{n}].name", spec.name) for n, spec in enumerate(problem.tensors)]
    named += [(f"scalars[{n}].name", spec.name) for n, spec in enumerate(problem.scalars)]
    for key, name in named:
        if name in seen:
            flaws.at(key, f"is {name!r}, as is `{seen[name]}`", "parameters, tensors and scalars need distinct names")
        seen[name] = key
    seen = {}
    for case in problem.tests + problem.benchmarks:
        key = f"{case_key(problem, case)}.name"
        if case.name in seen:
            flaws_of(problem, case).at(
                key, f"is {case.name!r}, as is `{seen[case.name]}`", "every case needs a name of its own"
            )
        seen[case.name] = key


def _check_call(problem: ProblemSpec, flaws: Flaws) -> None:
    """A call's forms name what exists, and its result is made of outputs."""
    call = problem.call
    tensors = {spec.name: spec.role for spec in problem.tensors}
    lists = {spec.name for spec in problem.tensors if spec.count is not None}
    optional = {spec.name for spec in problem.tensors if spec.present is not None}
    known = [*tensors, *(spec.name for spec in problem.scalars)]
    given = [(f"call.init[{n}]", form) for n, form in enumerate(call.init)]
    given += [(f"call.arguments[{n}]", form) for n, form in enumerate(call.arguments)]
    for key, form in (*given, ("call.data", call.data), ("call.result", call.result)):
        if form is None:
            continue
        for name in form_names(form):
            if name not in known:
                flaws.at(key, f"names {name!r}, which does not exist", nearest(name, known))
            if key.startswith("call.init") and name in tensors:
                flaws.at(key, f"names the tensor {name!r}", "a constructor gets numbers, text and parameters only")
            if key == "call.result" and tensors.get(name) != "output":
                flaws.at(key, f"names {name!r}, which is no output", "name tensors of role 'output'")
        for entry, name in numbered(form):
            what = f"has the key {entry!r}"
            if key == "call.result":
                flaws.at(key, what, "name the list itself: only arguments have an entry for each member")
            if name not in lists:
                flaws.at(key, f"{what}, but {name!r} is no list of tensors", "name one with `count`")
            if name in optional:
                flaws.at(key, f"{what}, but {name!r} has `present`", "name a list that every case has")
        for name in form_parameters(form):
            if name not in problem.parameters:
                flaws.at(key, f"names the parameter {name!r}", nearest(name, problem.parameters))
    returned = list(form_names(call.result)) if call.result is not None else []
    if len(set(returned)) < len(returned):
        flaws.at("call.result", "names an output twice", "name each once")
    for name in unreachable_outputs(problem):
        what = f"leaves out the {tensors[name]} {name!r}, which no call could write then"
        key = "call.result" if tensors[name] == "output" else "call"
        flaws.at(key, what, "name it in an argument or in the result")


def _check_kinds(problem: ProblemSpec) -> None:
    """A parameter is a number in every case, or a dtype in every case: the C signature is the same for all."""
    first = next(problem.tests[0].extremes()).params
    for case in problem.tests + problem.benchmarks:
        for name, value in next(case.extremes()).params.items():
            if isinstance(value, str) != isinstance(first[name], str):
                key = f"{case_key(problem, case)}.{'draw' if name in case.draw else 'params'}.{name}"
                what = f"is {value!r}, but {first[name]!r} in `tests[0]`"
                flaws_of(problem, case).at(key, what, "use the same kind in all cases")


def _check_draw(problem: ProblemSpec, case: Case) -> None:
    flaws, key = flaws_of(problem, case), case_key(problem, case)
    for name in case.draw:
        if name not in problem.parameters:
            flaws.at(f"{key}.draw.{name}", "is unknown", nearest(name, problem.parameters))
        if name in case.params:
            flaws.at(f"{key}.draw.{name}", "has a value in `params` as well", "remove one of the two")


def _check_options(problem: ProblemSpec, case: Case) -> None:
    """`generate` gets the parameters and the options by name."""
    for name in case.options:
        if name in problem.parameters or name == "generator":
            what = "has the name of a parameter" if name in problem.parameters else "has the name of an argument"
            key = f"{case_key(problem, case)}.options.{name}"
            flaws_of(problem, case).at(key, f"{what} that `generate` gets anyway", "choose another name")


def _check_devices(problem: ProblemSpec, flaws: Flaws) -> None:
    """A device needs both tests and benchmarks: without tests nothing is proved, without benchmarks nothing ranked."""
    tested = {device for case in problem.tests for device in case.devices}
    timed = {device for case in problem.benchmarks for device in case.devices}
    for device in sorted(timed - tested):
        flaws.at("tests", f"has no case for {device}, but `benchmarks` does", f"add a test with devices [{device!r}]")
    for device in sorted(tested - timed):
        flaws.at(
            "benchmarks", f"has no case for {device}, but `tests` does", f"add a benchmark with devices [{device!r}]"
        )


def _check_used(problem: ProblemSpec, flaws: Flaws) -> None:
    """A dtype parameter that no tensor uses would reach no kernel: neither Python nor C is passed text."""
    used = {spec.dtype for spec in problem.tensors}
    for number, name in enumerate(problem.parameters):
        value = problem.tests[0].params.get(name)
        if value in DTYPES and name not in used:
            flaws.at(f"parameters[{number}]", f"`{name}` is no tensor's dtype", "remove it, or use it as a dtype")
