"""Makes the keys of a `problem.toml` of what a checkout states and what its code was seen to do. Trusted.

A dimension that is the same in all cases becomes a number; one that follows a parameter of the problem becomes that
parameter; any other becomes a new parameter, which cases set.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter, ValidationError

from harness.problem.dtypes import DTYPES
from harness.problem.keys import Name
from kernelmark.services.importing.answer import Answer, Node, Tensor
from kernelmark.services.importing.found import Found, NotImportedError

_NAME: TypeAdapter[str] = TypeAdapter(Name)
_ENTRIES = {"gpu-mode": "custom_kernel", "kernelbench": "ModelNew"}
_KERNELBENCH_TOLERANCE = 1e-4  # its get_tolerance_for_precision, for float32
_SMALL_BYTES = 1 << 20
_HOST_BYTES = 8 << 30
_GIB = 1 << 30


@dataclass
class _Argument:
    """A tensor of the problem, over all cases."""

    name: str
    role: str
    over_cases: tuple[Tensor, ...]


@dataclass
class _Draft:
    """What is known so far."""

    found: Found
    answer: Answer
    parameters: dict[str, tuple[int | str, ...]] = field(default_factory=dict)
    """The value in each case, by name."""
    options: list[dict[str, Any]] = field(default_factory=list)
    tensors: dict[int, _Argument] = field(default_factory=dict)

    def parameter(self, values: Sequence[int | str], stem: str) -> str:
        """The parameter that has these values, which is made if there is none."""
        for name, known in self.parameters.items():
            if known == tuple(values):
                return name
        name = self.unused(stem, numbered=True)
        self.parameters[name] = tuple(values)
        return name

    def unused(self, wanted: str, *, numbered: bool = False) -> str:
        """A valid name that nothing has, like the wanted one."""
        taken = {*self.parameters, *(each.name for each in self.tensors.values())}
        taken |= {name for options in self.options for name in options}
        stem = re.sub(r"[^A-Za-z0-9_]+", "_", wanted).lstrip("_0123456789")[:56] or "x"
        tries = ([] if numbered else [stem]) + [f"{stem}{number}" for number in range(len(taken) + 2)]
        return next(name for name in tries if name not in taken and _valid(name))


def draft(found: Found, answer: Answer) -> dict[str, Any]:
    """The keys of problem.toml but for `foreign`.

    Raises:
        NotImportedError: the problem cannot be stated.
    """
    state = _Draft(found, answer)
    _arguments_of_cases(state)
    data = _form(state, [case.data for case in answer.cases], "", _hints(found, answer))
    for number in _room_for_results(state):
        state.tensors[number].role = "output"
    result = _result(state, [case.result for case in answer.cases])
    _require_a_parameter(state)
    cost = _cost(state)
    tensors = [_tensor(state, each) for each in state.tensors.values()]
    cases = _cases(state)
    tests, benchmarks = cases[: len(found.tests)], cases[len(found.tests) :]
    limits = dict(found.limits)
    if answer.weight_bytes > _HOST_BYTES // 4:
        limits["memory_bytes"] = -(-(4 * answer.weight_bytes + _HOST_BYTES) // _GIB) * _GIB
    own_tolerance = {"rtol": _KERNELBENCH_TOLERANCE, "atol": _KERNELBENCH_TOLERANCE}
    return {
        "title": found.title,
        "entry": _ENTRIES[found.form],
        "parameters": list(state.parameters),
        "tensors": tensors,
        "call": _call(state, data, result),
        "cost": {"bytes": cost, "flops": 0},
        **({"tolerance": own_tolerance} if found.form == "kernelbench" else {}),
        **({"limits": limits} if limits else {}),
        "tests": tests,
        "benchmarks": benchmarks,
    }


def _arguments_of_cases(state: _Draft) -> None:
    """Whole numbers that every case gives become parameters, anything else options."""
    cases = state.found.cases
    names = list(dict.fromkeys(name for case in cases for name in case))
    whole = [name for name in names if all(type(case.get(name)) is int for case in cases)]
    for name in whole:
        if not _valid(name):
            raise NotImportedError(f"its argument {name[:40]!r} cannot be a parameter here: the name has a meaning")
    state.options = [{name: value for name, value in case.items() if name not in whole} for case in cases]
    for name in whole:
        state.parameters[name] = tuple(case[name] for case in cases)


def _hints(found: Found, answer: Answer) -> list[str]:
    """What the members of the data are called in the code; one name each, or none at all."""
    node = answer.cases[0].data
    if node.kind == "tensor":
        return ["x"]
    members = node.inside if node.kind in ("list", "tuple") else []
    return list(answer.names[: len(members)]) if len(answer.names) >= len(members) else []


def _form(state: _Draft, nodes: list[Node], place: str, hints: list[str]) -> Any:
    """The form of the data, from its description in each case; notes every tensor in it."""
    kind = _same_kind(nodes, place, "data")
    first = nodes[0].inside
    match kind:
        case "tensor":
            return _noted(state, [each.inside for each in nodes], place or (hints[0] if hints else "x"), "input").name
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


def _members(state: _Draft, nodes: list[Node], place: str, hints: list[str]) -> Any:
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


def _noted(state: _Draft, over_cases: list[Tensor], name: str, role: str) -> _Argument:
    """The tensor, as a new argument unless it was met before."""
    if len({each.number for each in over_cases}) != 1:
        raise NotImportedError("the same tensor is in two places of its data in some cases only")
    if len({len(each.shape) for each in over_cases}) != 1:
        raise NotImportedError(f"the number of dimensions of {name!r} differs from case to case")
    for dtype in {each.dtype for each in over_cases}:
        if dtype not in DTYPES:
            raise NotImportedError(f"the dtype of {name!r} is {dtype[:40]}, which the format does not have")
    number = over_cases[0].number
    if number not in state.tensors:
        state.tensors[number] = _Argument(state.unused(name), role, tuple(over_cases))
    return state.tensors[number]


def _number(state: _Draft, values: list[bool | int | float], place: str) -> Any:
    if len({(type(each), each) for each in values}) == 1:
        return values[0]
    if all(type(each) is int for each in values):
        return {"param": state.parameter([int(each) for each in values], "d")}
    raise NotImportedError(f"the value{_at(place)} differs from case to case, and is no whole number")


def _room_for_results(state: _Draft) -> list[int]:
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


def _alike(state: _Draft, numbers: Sequence[int], result: Sequence[Tensor]) -> list[int]:
    """Those of the data's tensors that have the result's shape; first the ones of its dtype.

    A reference may compute in more digits than the tensor has that a kernel is to fill.
    """
    over = {number: state.tensors[number].over_cases for number in numbers}
    shaped = [n for n in numbers if all(a.shape == b.shape for a, b in zip(over[n], result, strict=True))]
    return sorted(shaped, key=lambda n: [each.dtype for each in over[n]] != [each.dtype for each in result])


def _result(state: _Draft, nodes: list[Node]) -> Any:
    """The form of the result; notes the outputs that are no tensors of the data."""
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


def _same_kind(nodes: list[Node], place: str, what: str) -> str:
    kinds = {each.kind for each in nodes}
    if len(kinds) != 1:
        raise NotImportedError(f"its {what} is made up differently from case to case{_at(place)}")
    return kinds.pop()


def _at(place: str) -> str:
    return f" at {place[:40]!r}" if place else ""


def _tensor(state: _Draft, argument: _Argument) -> dict[str, Any]:
    sizes = zip(*(each.shape for each in argument.over_cases), strict=True)
    spec: dict[str, Any] = {
        "name": argument.name,
        "role": argument.role,
        "shape": [_expression(state, list(over_cases)) for over_cases in sizes],
        "dtype": _dtype(state, argument),
    }
    if not all(map(_row_major, argument.over_cases)):
        strides = zip(*(each.strides for each in argument.over_cases), strict=True)
        spec["strides"] = [_expression(state, list(over_cases)) for over_cases in strides]
    if argument.role == "input":
        spec["fill"] = {"kind": "generated"}
    return spec


def _row_major(tensor: Tensor) -> bool:
    """Whether it can be stated without strides. Dimensions that repeat their elements are stored in full here."""
    if not tensor.strides or any(
        stride == 0 and size > 1 for size, stride in zip(tensor.shape, tensor.strides, strict=True)
    ):
        return True
    expected = 1
    for size, stride in zip(reversed(tensor.shape), reversed(tensor.strides), strict=True):
        if size > 1 and stride != expected:
            return False
        expected *= size
    return True


def _expression(state: _Draft, sizes: list[int]) -> int | str:
    for name, values in state.parameters.items():
        if values == tuple(sizes) and (len(set(sizes)) > 1 or name == _only(state)):
            return name
    return sizes[0] if len(set(sizes)) == 1 else state.parameter(sizes, "d")


def _only(state: _Draft) -> str | None:
    """The parameter that stands for a dimension although it is the same in all cases: a problem needs one."""
    return "d0" if len(state.parameters) == 1 and not any(state.found.cases) else None


def _require_a_parameter(state: _Draft) -> None:
    """Without arguments, the largest dimension is the parameter."""
    shapes = [each.over_cases for each in state.tensors.values()]
    varying = any(len({each.shape for each in over}) > 1 for over in shapes)
    if not state.parameters and not varying:
        largest = max((size for over in shapes for size in over[0].shape), default=1)
        state.parameter([largest] * len(state.found.cases), "d")


def _dtype(state: _Draft, argument: _Argument) -> str:
    dtypes = [each.dtype for each in argument.over_cases]
    return dtypes[0] if len(set(dtypes)) == 1 else state.parameter(dtypes, "dtype")


def _cost(state: _Draft) -> str:
    """Every element of every tensor, once."""
    by_dtype: dict[str, list[str]] = {}
    for each in state.tensors.values():
        by_dtype.setdefault(_dtype(state, each), []).append(f"elements({each.name})")
    return " + ".join(
        f"{counts[0] if len(counts) == 1 else '(' + ' + '.join(counts) + ')'} * sizeof({dtype})"
        for dtype, counts in by_dtype.items()
    )


def _call(state: _Draft, data: Any, result: Any) -> dict[str, Any]:
    outputs = [each.name for each in state.tensors.values() if each.role == "output"]
    usual: Any = outputs[0] if len(outputs) == 1 else {"tuple": outputs}
    told = {} if result == usual else {"result": result}
    if state.found.form == "gpu-mode":
        return {"style": "tree", "data": data, **told}
    init = [_constant(each) for each in state.answer.init]
    arguments = data["tuple"]
    inputs = [each.name for each in state.tensors.values() if each.role == "input"]
    given = {} if arguments == inputs else {"arguments": arguments}
    return {"style": "module", **({"init": init} if init else {}), **given, **told}


def _constant(node: Node) -> Any:
    """The form of an argument of a constructor."""
    match node.kind:
        case "number":
            return node.inside
        case "list" | "tuple":
            made = [_constant(each) for each in node.inside]
            return made if node.kind == "list" else {"tuple": made}
        case "dict" | "fields":
            return {node.kind: {key: _constant(each) for key, each in node.inside.items()}}
        case "text" | "none" | "dtype":
            return {node.kind: node.inside}
    kind = "tensor" if node.kind == "tensor" else str(node.inside)[:60]
    raise NotImportedError(f"its class is made with a {kind}, for which the format has no form")


def _cases(state: _Draft) -> list[dict[str, Any]]:
    found, made = state.found, list[dict[str, Any]]()
    varying = [name for name in _argument_names(found) if len({repr(case.get(name)) for case in found.cases}) > 1]
    for number, case in enumerate(found.cases):
        plain = "test" if number < len(found.tests) else "the only sizes"  # of a problem without arguments
        words = ", ".join(f"{name}={case[name]}" for name in varying or case if name in case) or plain
        spec: dict[str, Any] = {
            "name": _distinct(words, {each["name"] for each in made}),
            "params": {name: values[number] for name, values in state.parameters.items()},
        }
        if _only_on_a_gpu(state):
            spec["devices"] = ["cuda"]
        if state.options[number]:
            spec["options"] = state.options[number]
        made.append(spec)
    return made


def _argument_names(found: Found) -> list[str]:
    return list(dict.fromkeys(name for case in found.cases for name in case))


def _distinct(words: str, taken: set[str]) -> str:
    """A case's name of at most 64 characters that no other has."""
    words = "".join(each if each.isprintable() else "?" for each in words).strip()
    for number in range(1, len(taken) + 2):
        end = f" ({number})" if number > 1 else ""
        name = (words if len(words + end) <= 64 else words[: 63 - len(end)].rstrip() + "…") + end
        if name not in taken:
            return name
    raise AssertionError("more names than cases")


def _only_on_a_gpu(state: _Draft) -> bool:
    """Whether their code names a GPU, or a problem of KernelBench is too large for Triton's interpreter."""
    if state.found.form == "gpu-mode":
        return state.found.needs_gpu
    elements = [_elements(each.over_cases[0].shape) for each in state.tensors.values()]
    return 4 * sum(elements) + state.answer.weight_bytes > _SMALL_BYTES


def _elements(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def _valid(name: str) -> bool:
    try:
        _NAME.validate_python(name)
    except ValidationError:
        return False
    return True
