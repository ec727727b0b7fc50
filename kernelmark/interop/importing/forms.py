"""The forms of a call's data and result, and of a constructor's arguments, from their descriptions. Trusted.

A form is made of all cases at once: whatever differs from case to case becomes a parameter, or cannot be stated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from harness.problem.dtypes import DTYPES
from harness.shared.call import INDEX
from kernelmark.interop.importing.answer import Answer, Node, Tensor
from kernelmark.interop.importing.found import NotImportedError
from kernelmark.interop.importing.known import Argument, Known


def data_form(state: Known) -> Any:
    """The form of the data; notes every tensor in it as an input, or as an output if it is room for a result.

    Raises:
        NotImportedError: the format has no such form.
    """
    made = _form(state, [case.data for case in state.answer.cases], "", _hints(state.answer))
    for number in _room_for_results(state):
        state.tensors[number].role = "output"
    return made


def _form(state: Known, nodes: list[Node], place: str, hints: list[str]) -> Any:
    """The form of the data, from its description in each case; notes every tensor in it."""
    kind = _same_kind(nodes, place, "data")
    first = nodes[0].inside
    match kind:
        case "tensor":
            name = place.replace(INDEX, "") or (hints[0] if hints else "x")
            return _noted(state, [each.inside for each in nodes], name, "input").name
        case "list" | "tuple" | "dict" | "fields":
            made = _members(state, nodes, place, hints)
            return made if kind == "list" else {kind: made}
        case "number":
            return _number(state, [each.inside for each in nodes], place)
        case "dtype":
            values = [each.inside for each in nodes]
            return {"dtype": first} if len(set(values)) == 1 else {"param": state.parameter(values, "dtype")}
        case "text" if any(each.inside != first for each in nodes):
            raise NotImportedError(f"the text{_at(place)} differs from case to case")
        case "text" | "none":
            return {kind: first}
    raise NotImportedError(f"its data holds a {str(first)[:60]}, for which the format has no form")


def _hints(answer: Answer) -> list[str]:
    """What the members of the data are called in the code; one name each, or none at all."""
    node = answer.cases[0].data
    if node.kind == "tensor":
        return ["x"]
    members = node.inside if node.kind in ("list", "tuple") else []
    return list(answer.names[: len(members)]) if len(answer.names) >= len(members) else []


def _members(state: Known, nodes: list[Node], place: str, hints: list[str]) -> Any:
    if isinstance(nodes[0].inside, dict):
        keys = list(nodes[0].inside)
        if any(list(each.inside) != keys for each in nodes):
            raise NotImportedError(f"the table{_at(place)} has other keys from case to case")
        return {key: _form(state, [each.inside[key] for each in nodes], key, []) for key in keys}
    length = len(nodes[0].inside)
    if any(len(each.inside) != length for each in nodes):
        raise NotImportedError(f"the list{_at(place)} has another length from case to case")
    names = hints or [f"{place or 'x'}{number}" if length > 1 else place or "x" for number in range(length)]
    return [_form(state, [each.inside[number] for each in nodes], names[number], []) for number in range(length)]


def _noted(state: Known, over_cases: list[Tensor], name: str, role: str) -> Argument:
    """The tensor, as a new argument unless it was met before."""
    if len({each.number for each in over_cases}) != 1:
        raise NotImportedError("the same tensor is in two places of its data in some cases only")
    if len({each.count is None for each in over_cases}) != 1:
        raise NotImportedError(f"{name!r} is several tensors in some cases only")
    if len({len(each.shape) for each in over_cases}) != 1:
        raise NotImportedError(f"the number of dimensions of {name!r} differs from case to case")
    for dtype in {each.dtype for each in over_cases}:
        if dtype not in DTYPES:
            raise NotImportedError(f"the dtype of {name!r} is {dtype[:40]}, which the format does not have")
    number = over_cases[0].number
    if number not in state.tensors:
        state.tensors[number] = Argument(state.unused(name), role, tuple(over_cases))
    return state.tensors[number]


def _number(state: Known, values: list[bool | int | float], place: str) -> Any:
    if len({(type(each), each) for each in values}) == 1:
        return values[0]
    if all(type(each) is int for each in values):
        return {"param": state.parameter([int(each) for each in values], "d")}
    raise NotImportedError(f"the value{_at(place)} differs from case to case, and is no whole number")


def _room_for_results(state: Known) -> list[int]:
    """The tensors of the data that are the outputs: those that results are, or have the size of, one for each result.

    Raises:
        NotImportedError: a tensor of the data is returned, and nobody knows whether it is read as well.
    """
    room: list[int] = []
    for nodes in zip(*(_leaves(case.result) for case in state.answer.cases), strict=False):
        made = tuple(nodes)
        number = made[0].number
        if number in state.tensors:
            known = state.answer.filled.get(number, "no")
            if known not in ("yes", "no"):
                name = state.tensors[number].name
                raise NotImportedError(f"it returns its argument {name!r}, and its reference cannot run here ({known})")
            room += [number] if known == "yes" and number not in room else []
    for nodes in zip(*(_leaves(case.result) for case in state.answer.cases), strict=False):
        if nodes[0].number in state.tensors:
            continue
        free = [n for n in state.tensors if state.answer.filled.get(n) == "yes" and n not in room]
        # Room of [1] for a sum, which is []: the call may write there, and what it returns is copied from there.
        room += (_alike(state, free, nodes) or [n for n in free if _one_element(state.tensors[n].over_cases, nodes)])[
            :1
        ]
    return room


def _one_element(*several: Sequence[Tensor]) -> bool:
    return all(math.prod(each.shape) == 1 for over_cases in several for each in over_cases)


def _leaves(node: Node) -> list[Tensor]:
    """The tensors of a description, in order."""
    if node.kind == "tensor":
        return [node.inside]
    inner = node.inside.values() if isinstance(node.inside, dict) else node.inside
    return [each for member in inner for each in _leaves(member)] if isinstance(node.inside, list | dict) else []


def _alike(state: Known, numbers: Sequence[int], result: Sequence[Tensor]) -> list[int]:
    """Those of the data's tensors that have the result's shape; first the ones of its dtype.

    A reference may compute in more digits than the tensor has that a kernel is to fill.
    """
    over = {number: state.tensors[number].over_cases for number in numbers}
    shaped = [n for n in numbers if all(a.shape == b.shape for a, b in zip(over[n], result, strict=True))]
    return sorted(shaped, key=lambda n: [each.dtype for each in over[n]] != [each.dtype for each in result])


def result_form(state: Known) -> Any:
    """The form of the result; notes the outputs that are no tensors of the data, whose form was made before.

    Raises:
        NotImportedError: the format has no such form.
    """
    nodes = [case.result for case in state.answer.cases]
    several = len(_leaves(nodes[0])) > 1
    inputs = set(state.tensors)
    free = [number for number, each in state.tensors.items() if each.role == "output"]
    names: dict[int, str] = {}

    def form(nodes: list[Node], place: str) -> Any:
        kind = _same_kind(nodes, place, "result")
        if kind == "tensor":
            return output([each.inside for each in nodes])
        if kind in ("list", "tuple"):
            if len({len(each.inside) for each in nodes}) != 1:
                raise NotImportedError("the length of its result differs from case to case")
            made = [form([each.inside[n] for each in nodes], f"{place}[{n}]") for n in range(len(nodes[0].inside))]
            return made if kind == "list" else {kind: made}
        if kind in ("dict", "fields"):
            if any(list(each.inside) != list(nodes[0].inside) for each in nodes):
                raise NotImportedError("the keys of its result differ from case to case")
            return {kind: {key: form([each.inside[key] for each in nodes], key) for key in nodes[0].inside}}
        if kind == "none":
            return {"none": True}
        raise NotImportedError(f"its result holds a {kind if kind != 'other' else str(nodes[0].inside)[:60]}")

    def output(over_cases: list[Tensor]) -> str:
        number = over_cases[0].number
        if number in names:
            return names[number]
        room = _alike(state, free, over_cases)
        if number in free or (room and number not in inputs):
            taken = number if number in free else room[0]
            free.remove(taken)
            names[number] = state.tensors[taken].name
            return names[number]
        fresh = number if number not in inputs else max(inputs) + 1 + len(state.tensors)
        # A kernel's result may lie in memory as it likes: the reference's strides are not asked for.
        moved = [Tensor(fresh, each.dtype, each.shape, ()) for each in over_cases]
        names[number] = _noted(state, moved, f"out{len(names)}" if several else "out", "output").name
        return names[number]

    made = form(nodes, "")
    if not names:
        raise NotImportedError("its result holds no tensor")
    return made


def constant(node: Node) -> Any:
    """The form of an argument of a constructor.

    Raises:
        NotImportedError: the format has no such form.
    """
    match node.kind:
        case "number":
            return node.inside
        case "list" | "tuple":
            made = [constant(each) for each in node.inside]
            return made if node.kind == "list" else {"tuple": made}
        case "dict" | "fields":
            return {node.kind: {key: constant(each) for key, each in node.inside.items()}}
        case "text" | "none" | "dtype":
            return {node.kind: node.inside}
    kind = "tensor" if node.kind == "tensor" else str(node.inside)[:60]
    raise NotImportedError(f"its class is made with a {kind}, for which the format has no form")


def _same_kind(nodes: list[Node], place: str, what: str) -> str:
    kinds = {each.kind for each in nodes}
    if len(kinds) != 1:
        raise NotImportedError(f"its {what} has another structure in other cases{_at(place)}")
    return kinds.pop()


def _at(place: str) -> str:
    return f" at {place[:40]!r}" if place else ""
