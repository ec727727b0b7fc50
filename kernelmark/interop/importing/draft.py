"""Makes the keys of a `problem.toml` of what a checkout states and what its code was seen to do. Trusted.

A dimension that is the same in all cases becomes a number; one that follows a parameter of the problem becomes that
parameter; any other becomes a new parameter, which cases set.
"""

from __future__ import annotations

import math
from typing import Any

from harness.shared.foreign import FORMS
from kernelmark.interop.importing.answer import Answer, Tensor
from kernelmark.interop.importing.forms import constant, data_form, result_form
from kernelmark.interop.importing.found import Found, NotImportedError
from kernelmark.interop.importing.known import Argument, Known, valid

_KERNELBENCH_TOLERANCE = 1e-4  # its get_tolerance_for_precision, for float32
_SMALL_BYTES = 1 << 20
_HOST_BYTES = 8 << 30
_GIB = 1 << 30


def draft(found: Found, answer: Answer) -> dict[str, Any]:
    """The keys of problem.toml but for `foreign`.

    Raises:
        NotImportedError: the problem cannot be stated.
    """
    state = Known(found, answer)
    _arguments_of_cases(state)
    data = data_form(state)
    result = result_form(state)
    _require_a_parameter(state)
    cost = _cost(state)
    tensors = [_tensor(state, each) for each in state.tensors.values()]
    cases = _cases(state)
    tests, benchmarks = cases[: len(found.tests)], cases[len(found.tests) :]
    limits = {**found.limits, **_memory(answer)}
    own_tolerance = {"rtol": _KERNELBENCH_TOLERANCE, "atol": _KERNELBENCH_TOLERANCE}
    return {
        "title": found.title,
        "entry": FORMS[found.form].submission,
        "parameters": list(state.parameters),
        "tensors": tensors,
        "call": _call(state, data, result),
        **({"foreign": {"seed_bits": answer.seed_bits}} if answer.seed_bits and found.form == "gpu-mode" else {}),
        "cost": {"bytes": cost, "flops": 0},
        **({"tolerance": own_tolerance} if found.form == "kernelbench" else {}),
        **({"limits": limits} if limits else {}),
        "tests": tests,
        "benchmarks": benchmarks,
    }


def _memory(answer: Answer) -> dict[str, int]:
    """The limit of host memory, where the usual one may be too low."""
    needed = _HOST_BYTES
    if answer.weight_bytes > _HOST_BYTES // 4:
        needed = -(-(4 * answer.weight_bytes + _HOST_BYTES) // _GIB) * _GIB
    if answer.host_bytes * 3 // 2 > needed:
        # A power of two, so that problem.toml is the same on machines on which torch itself takes more or less.
        needed = 1 << (answer.host_bytes * 3 // 2 - 1).bit_length()
    return {"memory_bytes": needed} if needed > _HOST_BYTES else {}


def _arguments_of_cases(state: Known) -> None:
    """Whole numbers that every case gives become parameters, anything else options."""
    cases = state.found.cases
    whole = [name for name in _argument_names(state.found) if all(type(case.get(name)) is int for case in cases)]
    for name in whole:
        if not valid(name):
            raise NotImportedError(f"its argument {name[:40]!r} cannot be a parameter here: the name has a meaning")
    state.options = [{name: value for name, value in case.items() if name not in whole} for case in cases]
    for name in whole:
        state.parameters[name] = tuple(case[name] for case in cases)


def _tensor(state: Known, argument: Argument) -> dict[str, Any]:
    counts = [each.count for each in argument.over_cases if each.count is not None]
    sizes = zip(*(each.shape for each in argument.over_cases), strict=True)
    spec: dict[str, Any] = {
        "name": argument.name,
        "role": argument.role,
        **({"count": _expression(state, counts)} if counts else {}),
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


def _expression(state: Known, sizes: list[int]) -> int | str:
    for name, values in state.parameters.items():
        if values == tuple(sizes) and (len(set(sizes)) > 1 or name == _only(state)):
            return name
    return sizes[0] if len(set(sizes)) == 1 else state.parameter(sizes, "d")


def _only(state: Known) -> str | None:
    """The parameter that stands for a dimension although it is the same in all cases: a problem needs one."""
    return "d0" if len(state.parameters) == 1 and not any(state.found.cases) else None


def _require_a_parameter(state: Known) -> None:
    """Without arguments, the largest dimension is the parameter."""
    shapes = [each.over_cases for each in state.tensors.values()]
    varying = any(len({each.shape for each in over}) > 1 for over in shapes)
    if not state.parameters and not varying:
        largest = max((size for over in shapes for size in over[0].shape), default=1)
        state.parameter([largest] * len(state.found.cases), "d")


def _dtype(state: Known, argument: Argument) -> str:
    dtypes = [each.dtype for each in argument.over_cases]
    return dtypes[0] if len(set(dtypes)) == 1 else state.parameter(dtypes, "dtype")


def _cost(state: Known) -> str:
    """Every element of every tensor, once."""
    by_dtype: dict[str, list[str]] = {}
    for each in state.tensors.values():
        by_dtype.setdefault(_dtype(state, each), []).append(f"elements({each.name})")
    return " + ".join(
        f"{counts[0] if len(counts) == 1 else '(' + ' + '.join(counts) + ')'} * sizeof({dtype})"
        for dtype, counts in by_dtype.items()
    )


def _call(state: Known, data: Any, result: Any) -> dict[str, Any]:
    outputs = [each.name for each in state.tensors.values() if each.role == "output"]
    usual: Any = outputs[0] if len(outputs) == 1 else {"tuple": outputs}
    told = {} if result == usual else {"result": result}
    if state.found.form == "gpu-mode":
        return {"style": "tree", "data": data, **told}
    init = [constant(each) for each in state.answer.init]
    arguments = data["tuple"]
    inputs = [each.name for each in state.tensors.values() if each.role == "input"]
    given = {} if arguments == inputs else {"arguments": arguments}
    return {"style": "module", **({"init": init} if init else {}), **given, **told}


def _cases(state: Known) -> list[dict[str, Any]]:
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


def _only_on_a_gpu(state: Known) -> bool:
    """Whether their code names a GPU, or a problem of KernelBench is too large for Triton's interpreter."""
    if state.found.form == "gpu-mode":
        return state.found.needs_gpu
    elements = [math.prod(each.over_cases[0].shape) for each in state.tensors.values()]
    return 4 * sum(elements) + state.answer.weight_bytes > _SMALL_BYTES
