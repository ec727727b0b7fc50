"""The draft of a problem: its parameters and tensors, and the forms of a call's data and result. Trusted.

A form is made of all cases at once: whatever differs from case to case becomes a parameter, or cannot be stated.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter, ValidationError

from harness.problem.dtypes import DTYPES
from harness.problem.keys import Name
from harness.shared.call import INDEX, Form
from harness.shared.layouts import MIN_DIMENSIONS, OTHER_LAYOUTS, ROW_MAJOR, layout_of
from kernelmark.interop.importing.answer import Description, ImporterAnswer, TensorFacts
from kernelmark.interop.importing.checkout import ForeignProblem, NotImportedError

_NAME: TypeAdapter[str] = TypeAdapter(Name)


@dataclass
class DraftedTensor:
    """A tensor of the problem, over all cases."""

    name: str
    role: str
    over_cases: tuple[TensorFacts, ...]
    layouts: list[str] = field(default_factory=list)


@dataclass
class ProblemDraft:
    """The parameters, options and tensors that are known so far."""

    problem: ForeignProblem
    answer: ImporterAnswer
    parameters: dict[str, tuple[int | str, ...]] = field(default_factory=dict)
    """The value in each case, by name."""
    options: list[dict[str, Any]] = field(default_factory=list)
    tensors: dict[str, DraftedTensor] = field(default_factory=dict)
    """The tensors by their id in the answer."""

    def parameter(self, values: Sequence[int | str], stem: str) -> str:
        """The parameter with these values in the cases; it is made if there is none."""
        for name, known in self.parameters.items():
            if known == tuple(values):
                return name
        name = self.unused(stem, numbered=True)
        self.parameters[name] = tuple(values)
        return name

    def tensor(self, over_cases: Sequence[TensorFacts], name: str, role: str) -> DraftedTensor:
        """The tensor with these facts; if its id is new, the tensor is made, with `name` or a name like it.

        Raises:
            NotImportedError: the format has no such tensor.
        """
        if len({facts.id for facts in over_cases}) != 1:
            raise NotImportedError("the same tensor is in two places of its data in some cases only")
        if len({facts.count is None for facts in over_cases}) != 1:
            raise NotImportedError(f"{name!r} is several tensors in some cases only")
        if len({len(facts.shape) for facts in over_cases}) != 1:
            raise NotImportedError(f"the number of dimensions of {name!r} differs from case to case")
        if unknown := next((facts.dtype for facts in over_cases if facts.dtype not in DTYPES), None):
            raise NotImportedError(f"the dtype of {name!r} is {unknown}, which the format does not have")
        key = over_cases[0].id
        if key not in self.tensors:
            self.tensors[key] = DraftedTensor(self.unused(name), role, tuple(over_cases))
        return self.tensors[key]

    def unused(self, wanted: str, *, numbered: bool = False) -> str:
        """A valid and unused name: the wanted one, or one like it."""
        taken = {*self.parameters, *(tensor.name for tensor in self.tensors.values())}
        taken |= {name for options in self.options for name in options}
        stem = re.sub(r"[^A-Za-z0-9_]+", "_", wanted).lstrip("_0123456789")[:56] or "x"
        tries = ([] if numbered else [stem]) + [f"{stem}{number}" for number in range(len(taken) + 2)]
        return next(name for name in tries if name not in taken and valid(name))


def valid(name: str) -> bool:
    """Whether a parameter or tensor of a problem may have this name."""
    try:
        _NAME.validate_python(name)
    except ValidationError:
        return False
    return True


Facts = Sequence[TensorFacts]
"""The facts of one tensor, case by case."""


def data_form(state: ProblemDraft) -> Form:
    """The form of the data. Adds every tensor in it as an input, or as an output if a result is written to it.

    Raises:
        NotImportedError: the format has no such form.
    """
    nodes = [case.data for case in state.answer.cases]
    length = len(nodes[0].inside) if nodes[0].kind in ("list", "tuple") else 0
    names = state.answer.names[:length] if len(state.answer.names) >= length else ()

    def tensor(facts: Facts, place: str) -> Form:
        return state.tensor(facts, place.replace(INDEX, "") or "x", "input").name

    made = _Maker("its data", tensor, state).form(nodes, "", names)
    for key in _room_for_results(state):
        state.tensors[key].role = "output"
    return made


def result_form(state: ProblemDraft) -> Form:
    """The form of the result, to be made after that of the data. Adds the outputs that are not tensors of the data.

    Raises:
        NotImportedError: the format has no such form.
    """
    nodes = [case.result for case in state.answer.cases]
    several = len(nodes[0].tensors) > 1
    inputs = set(state.tensors)
    free = [key for key, drafted in state.tensors.items() if drafted.role == "output"]
    names: dict[str, str] = {}

    def tensor(facts: Facts, _: str) -> Form:
        key = facts[0].id
        if key in names:
            return names[key]
        room = [key] if key in free else [] if key in inputs else _alike(state, free, facts)
        if room:
            free.remove(room[0])
            names[key] = state.tensors[room[0]].name
            return names[key]
        # A kernel's result may have any memory layout, so the reference's strides only say which view costs no copy.
        moved = [case.model_copy(update={"id": f"result of {key}", "strides": ()}) for case in facts]
        made = state.tensor(moved, f"out{len(names)}" if several else "out", "output")
        names[key], made.layouts = made.name, _layouts(facts)
        return names[key]

    made = _Maker("its result", tensor).form(nodes, "")
    if not names:
        raise NotImportedError("its result holds no tensor")
    return made


def _layouts(facts: Facts) -> list[str]:
    """The layouts besides row-major that a result has in some cases; none if there is a case where it has another."""
    others = [layout for layout in OTHER_LAYOUTS if len(facts[0].shape) >= MIN_DIMENSIONS[layout]]
    found = {layout_of(case.shape, case.strides, others) or "" for case in facts}
    return [] if "" in found else sorted(found - {ROW_MAJOR})


def constant(node: Description, state: ProblemDraft) -> Form:
    """The form of an argument of a constructor.

    Raises:
        NotImportedError: the format has no such form.
    """

    def tensor(facts: Facts, place: str) -> Form:
        raise NotImportedError("its class is made with a tensor, for which the format has no form")

    return _Maker("what its class is made with", tensor, state).form([node], "")


@dataclass(frozen=True)
class _Maker:
    """Makes the form of a value from its descriptions, one for each case."""

    value: str
    """The name of the value in messages."""
    tensor: Callable[[Facts, str], Form]
    """Gives the form of a tensor at a place in the value."""
    state: ProblemDraft | None = None
    """Where parameters are added; None: the value may hold only tensors."""

    def form(self, nodes: Sequence[Description], place: str, names: Sequence[str] = ()) -> Form:
        """The form; `place` is the name of the value itself, and `names` are those of the members of a list."""
        kind, insides = nodes[0].kind, [node.inside for node in nodes]
        at = f" at {place[:40]!r}" if place else ""
        if any(node.kind != kind for node in nodes):
            raise NotImportedError(f"{self.value} has another structure in other cases{at}")
        match kind:
            case "tensor":
                return self.tensor(insides, place)
            case "none":
                return {"none": True}
            case "list" | "tuple":
                length = len(insides[0])
                if any(len(inside) != length for inside in insides):
                    raise NotImportedError(f"the list{at} in {self.value} has another length from case to case")
                stem = place or "x"
                names = names or [f"{stem}{number}" if length > 1 else stem for number in range(length)]
                made = [self.form(members, names[n]) for n, members in enumerate(zip(*insides, strict=True))]
                return made if kind == "list" else {kind: made}
            case "dict" | "fields":
                if any([*inside] != [*insides[0]] for inside in insides):
                    raise NotImportedError(f"the table{at} in {self.value} has other keys from case to case")
                return {kind: {key: self.form([inside[key] for inside in insides], key) for key in insides[0]}}
        return self._plain(kind, insides, at)

    def _plain(self, kind: str, values: Sequence[Any], at: str) -> Form:
        same = len({(type(value), value) for value in values}) == 1
        if self.state is None or kind == "other":
            what = str(values[0])[:60] if kind == "other" else kind
            raise NotImportedError(f"{self.value} holds a {what}, for which the format has no form")
        if same:
            return values[0] if kind == "number" else {kind: values[0]}
        if kind == "text":
            raise NotImportedError(f"the text{at} differs from case to case")
        if kind == "number" and any(type(value) is not int for value in values):
            raise NotImportedError(f"the value{at} differs from case to case, and is no whole number")
        return {"param": self.state.parameter(values, "d" if kind == "number" else "dtype")}


def _room_for_results(state: ProblemDraft) -> list[str]:
    """The tensors of the data that are outputs: for each result, the tensor that it is, or one of its size.

    Raises:
        NotImportedError: a tensor of the data is returned, and it is unknown whether it is read as well.
    """
    room: list[str] = []
    results = [*zip(*(case.result.tensors for case in state.answer.cases), strict=False)]
    for facts in results:
        key = facts[0].id
        if key in state.tensors:
            known = state.answer.filled.get(key, "no")
            if known not in ("yes", "no"):
                name = state.tensors[key].name
                raise NotImportedError(f"it returns its argument {name!r}, and its reference cannot run here ({known})")
            room += [key] if known == "yes" and key not in room else []
    for facts in results:
        if facts[0].id not in state.tensors:
            free = [key for key in state.tensors if state.answer.filled.get(key) == "yes" and key not in room]
            # A tensor of shape [1] may take a sum, whose shape is []: the result is copied from it.
            single = [key for key in free if _one_element(state.tensors[key].over_cases) and _one_element(facts)]
            room += (_alike(state, free, facts) or single)[:1]
    return room


def _one_element(facts: Facts) -> bool:
    return all(math.prod(case.shape) == 1 for case in facts)


def _alike(state: ProblemDraft, keys: Sequence[str], result: Facts) -> list[str]:
    """The tensors of the data that have the result's shape, those of its dtype first.

    A reference may compute with more precision than the tensor has that a kernel fills.
    """
    over = {key: state.tensors[key].over_cases for key in keys}
    shaped = [key for key in keys if [case.shape for case in over[key]] == [case.shape for case in result]]
    return sorted(shaped, key=lambda key: [case.dtype for case in over[key]] != [case.dtype for case in result])
