"""Checks that a problem's keys agree: names, devices, visibility, and every case. Trusted; imports no torch.

Called by the constructor of `Problem`, so that a problem with contradicting keys cannot exist.
"""

from __future__ import annotations

from harness.errors import ProblemError, nearest
from harness.problem.another import another
from harness.problem.dtypes import DTYPES
from harness.problem.key import ProblemKey, case_key, file_key
from harness.problem.resolve import resolve_case
from harness.problem.signature import forms
from harness.problem.spec import BaselineSpec, Case, ProblemSpec
from harness.shared.call import Form, numbered
from harness.shared.call import names as form_names
from harness.shared.call import parameters as form_parameters
from harness.shared.layouts import MAX_RESULTS


def check(problem: ProblemSpec) -> None:
    """Check a whole problem, and resolve every case; if its sizes are random, for all combinations of extremes.

    Raises:
        ProblemError: describes the first contradiction, with its key.
    """
    file = file_key(problem)
    _check_names(problem, file)
    _check_call(problem, file)
    if all(spec.role == "input" for spec in problem.tensors):
        file.at("tensors").refuse("has no output", "give a tensor the role 'output' or 'inout'")
    for number, case in enumerate(problem.benchmarks):
        if case.hidden:
            only = "only tests can be hidden: a time shows its sizes"
            file.at("benchmarks", number, "hidden").refuse("is true", only)
        if case.draw:
            only = "only tests can draw sizes: a benchmark's are fixed"
            file.at("benchmarks", number, "draw").refuse("is given", only)
    for case in problem.tests:
        if "weight" in case.model_fields_set:
            only = "only benchmarks have weights: a test is right or wrong"
            case_key(problem, case).at("weight").refuse("is given", only)
    for case in problem.tests + problem.benchmarks:
        if case.memory_gib is not None and (case in problem.benchmarks or case.devices != ("cuda",)):
            key = case_key(problem, case).at("memory_gib")
            key.refuse("is given", 'only a test with devices = ["cuda"] can be left out on a smaller GPU')
    _check_schedule(problem, file)
    _check_tolerance(problem, file.at("tolerance"))
    for case in problem.tests + problem.benchmarks:
        _check_case(problem, case)
        for extreme in case.extremes():
            resolve_case(problem, extreme, case)
    for number, baseline in enumerate(problem.baselines):
        _check_baseline(problem, baseline, file.at("baselines", number))
    if problem.cost.of_data and problem.foreign is not None:
        file.at("cost").refuse("has `sum_of`, which is of what `generate` makes", "a foreign reference has none")
    _check_kinds(problem)
    _check_devices(problem, file)
    _check_used(problem, file)


def _check_baseline(problem: ProblemSpec, baseline: BaselineSpec, key: ProblemKey) -> None:
    """Check that a baseline has its own name and no generated tensors, and that its sizes resolve in every case."""
    if baseline.name in [other.name for other in problem.baselines if other is not baseline]:
        key.at("name").refuse(f"is {baseline.name!r}, as is another's", "every baseline needs a name of its own")
    for spec in baseline.tensors:
        if spec.fill.kind == "generated":
            key.at("tensors").refuse(f"has `{spec.name}` generated", "`generate` makes the problem's tensors only")
    computed = another(problem, baseline)
    _check_names(computed, key)
    for case in computed.tests + computed.benchmarks:
        try:
            for extreme in case.extremes():
                resolve_case(computed, extreme, case)
        except ProblemError as error:
            key.refuse(f"does not suit case {case.name!r}: {error.what}", error.remedy)


def _check_tolerance(problem: ProblemSpec, key: ProblemKey) -> None:
    """Check that every table names an output, and that `off_by` is for dtypes whose elements are single numbers."""
    outputs = {spec.name: spec for spec in problem.tensors if spec.role != "input"}
    for name in problem.tolerance.outputs:
        if name not in outputs:
            key.at(name).refuse("names no output", nearest(name, outputs))
    for name, spec in outputs.items():
        dtypes = {spec.dtype, *(str(case.params.get(spec.dtype)) for case in problem.tests + problem.benchmarks)}
        packed = [dtype for dtype in dtypes & DTYPES.keys() if DTYPES[dtype].family in ("complex", "packed")]
        if problem.tolerance.of_output(name).off_by is not None and packed:
            key.at(name, "off_by").refuse(f"is given for {packed[0]}, whose elements are two numbers", "remove it")


def _check_schedule(problem: ProblemSpec, file: ProblemKey) -> None:
    """Check that the other keys of the schedule come with a deadline, and that all dates are on the calendar."""
    if problem.deadline is None:
        if problem.visibility == "after_deadline":
            what = "is 'after_deadline', but there is no `deadline`"
            file.at("visibility").refuse(what, "add one, with its time zone")
        for key in ("grace", "late", "freeze"):
            if getattr(problem, key) is not None:
                file.at(key).refuse("is given, but there is no `deadline`", "add one, with its time zone")
        return
    try:
        late_in_grace, _ = problem.is_late_in_grace, problem.freezes
    except OverflowError:
        file.at("deadline").refuse("has no end of the time after it on the calendar", "set an earlier one")
    if late_in_grace:
        file.at("grace").refuse("is not shorter than the time of `late`", "shorten it, or leave `late` out")


def _check_names(problem: ProblemSpec, file: ProblemKey) -> None:
    """Check that names are distinct. All arguments share one namespace, since they are parameters of one C function."""
    named = [(file.at("parameters", number), name) for number, name in enumerate(problem.parameters)]
    named += [(file.at("tensors", number, "name"), spec.name) for number, spec in enumerate(problem.tensors)]
    named += [(file.at("scalars", number, "name"), spec.name) for number, spec in enumerate(problem.scalars)]
    _refuse_repeated(named, "parameters, tensors and scalars need distinct names")
    cases = [(case_key(problem, case).at("name"), case.name) for case in problem.tests + problem.benchmarks]
    _refuse_repeated(cases, "every case needs a name of its own")


def _refuse_repeated(named: list[tuple[ProblemKey, str]], remedy: str) -> None:
    seen: dict[str, ProblemKey] = {}
    for key, name in named:
        if name in seen:
            other = seen[name]
            key.refuse(f"is {name!r}, as is `{other.path}`{f' of {other.file}' * (other.file != key.file)}", remedy)
        seen[name] = key


def _check_call(problem: ProblemSpec, file: ProblemKey) -> None:
    """Check that a call's forms name existing arguments, and that its result consists of outputs."""
    call, roles = problem.call, {spec.name: spec.role for spec in problem.tensors}
    key = file.at("call")
    for number, form in enumerate(call.init):
        _check_form(problem, form, key.at("init", number))
        for name in form_names(form):
            if name in roles:
                what = f"names the tensor {name!r}"
                key.at("init", number).refuse(what, "a constructor gets numbers, text and parameters only")
    for number, form in enumerate(call.arguments):
        _check_form(problem, form, key.at("arguments", number))
    _check_form(problem, call.data, key.at("data"))
    result = {"none": True} if call.result is None else call.result
    for entry, _ in numbered(result):
        remedy = "name the list itself: only arguments have an entry for each member"
        key.at("result").refuse(f"has the key {entry!r}", remedy)
    _check_form(problem, result, key.at("result"))
    returned = list(form_names(result))
    for name in returned:
        if roles.get(name) != "output":
            key.at("result").refuse(f"names {name!r}, which is no output", "name tensors of role 'output'")
    if len(set(returned)) < len(returned):
        key.at("result").refuse("names an output twice", "name each once")
    if sum(bool(spec.layouts) for spec in problem.tensors) > MAX_RESULTS:
        file.at("tensors").refuse("have too many `layouts`", f"at most {MAX_RESULTS} outputs can have some")
    for number, spec in enumerate(problem.tensors):
        if spec.layouts and spec.name not in form_names(forms(problem).result):
            what = f"are given for `{spec.name}`, which no call returns"
            file.at("tensors", number, "layouts").refuse(what, 'remove them, or choose the style "returns" in `call`')
    complete = forms(problem)
    reached = {name for form in (*complete.arguments, complete.result) for name in form_names(form)}
    for name, role in roles.items() if call.style != "writes" else ():
        if role != "input" and name not in reached:
            key_of_role = key.at("result") if role == "output" else key
            what = f"leaves out the {role} {name!r}, which no call could write then"
            key_of_role.refuse(what, "name it in an argument or in the result")


def _check_form(problem: ProblemSpec, form: Form, key: ProblemKey) -> None:
    """Check that every name in a form exists, and that every entry with an index is in a list that all cases have."""
    if form is None:
        return
    tensors = {spec.name: spec for spec in problem.tensors}
    known = [*tensors, *(spec.name for spec in problem.scalars)]
    for name in form_names(form):
        if name not in known:
            key.refuse(f"names {name!r}, which does not exist", nearest(name, known))
    for entry, name in numbered(form):
        if name not in tensors or tensors[name].count is None:
            key.refuse(f"has the key {entry!r}, but {name!r} is no list of tensors", "name one with `count`")
        if tensors[name].present is not None:
            key.refuse(f"has the key {entry!r}, but {name!r} has `present`", "name a list that every case has")
    for name in form_parameters(form):
        if name not in problem.parameters:
            key.refuse(f"names the parameter {name!r}", nearest(name, problem.parameters))


def _check_case(problem: ProblemSpec, case: Case) -> None:
    """Check that a case draws only parameters without a value, and that its options have names of their own."""
    key = case_key(problem, case)
    for name in case.draw:
        if name not in problem.parameters:
            key.at("draw", name).refuse("is unknown", nearest(name, problem.parameters))
        if name in case.params:
            key.at("draw", name).refuse("has a value in `params` as well", "remove one of the two")
    for name in case.options:
        if name in problem.parameters or name == "generator":
            kind = "a parameter" if name in problem.parameters else "an argument"
            what = f"has the name of {kind} that `generate` gets anyway"
            key.at("options", name).refuse(what, "choose another name")


def _check_kinds(problem: ProblemSpec) -> None:
    """Check that a parameter is a number in every case, or a dtype in every case, since the C signature is the same."""
    first = next(problem.tests[0].extremes()).params
    for case in problem.tests + problem.benchmarks:
        for name, value in next(case.extremes()).params.items():
            if isinstance(value, str) != isinstance(first[name], str):
                key = case_key(problem, case).at("draw" if name in case.draw else "params", name)
                key.refuse(f"is {value!r}, but {first[name]!r} in `tests[0]`", "use the same kind in all cases")


def _check_devices(problem: ProblemSpec, file: ProblemKey) -> None:
    """Check that every device has both tests and benchmarks."""
    tested = {device for case in problem.tests for device in case.devices}
    timed = {device for case in problem.benchmarks for device in case.devices}
    for key, other, lacking in (("tests", "benchmarks", timed - tested), ("benchmarks", "tests", tested - timed)):
        for device in sorted(lacking):
            what = f"has no case for {device}, but `{other}` does"
            file.at(key).refuse(what, f"add a {key.removesuffix('s')} with devices [{device!r}]")


def _check_used(problem: ProblemSpec, file: ProblemKey) -> None:
    """Check that tensors use every dtype parameter, since kernels are not passed text."""
    used = {spec.dtype for spec in problem.tensors}
    for number, name in enumerate(problem.parameters):
        if problem.tests[0].params.get(name) in DTYPES and name not in used:
            file.at("parameters", number).refuse(f"`{name}` is no tensor's dtype", "remove it, or use it as a dtype")
