"""Makes the keys of a `problem.toml` from a checkout's statements and the observed behaviour of its code. Trusted.

A dimension that is the same in all cases becomes a number; one that follows a parameter of the problem becomes that
parameter; any other becomes a new parameter, which cases set.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from harness.shared.foreign import FORMS
from kernelmark.interop.importing.answer import ImporterAnswer, TensorFacts
from kernelmark.interop.importing.checkout import ForeignProblem, NotImportedError
from kernelmark.interop.importing.forms import DraftedTensor, ProblemDraft, constant, data_form, result_form, valid

_KERNELBENCH_TOLERANCE = 1e-4  # its get_tolerance_for_precision, for float32
_SMALL_BYTES = 1 << 20
_HOST_BYTES = 8 << 30
_GIB = 1 << 30


def draft(problem: ForeignProblem, answer: ImporterAnswer) -> dict[str, Any]:
    """The keys of problem.toml; of the table `foreign`, only the keys that the answer decides.

    Raises:
        NotImportedError: the problem cannot be stated.
    """
    state = ProblemDraft(problem, answer)
    _arguments_of_cases(state)
    data = data_form(state)
    result = result_form(state)
    _require_a_parameter(state)
    cost = _cost(state)
    tensors = [_tensor(state, tensor) for tensor in state.tensors.values()]
    cases = _cases(state)
    of_gpu_mode = problem.form == "gpu-mode"
    keys = {
        "title": problem.candidate.title[:120],
        "entry": FORMS[problem.form].submission,
        "parameters": list(state.parameters),
        "tensors": tensors,
        "call": _call(state, data, result),
        "foreign": {"seed_bits": answer.seed_bits} if answer.seed_bits and of_gpu_mode else {},
        "cost": {"bytes": cost, "flops": 0},
        "tolerance": {} if of_gpu_mode else {"rtol": _KERNELBENCH_TOLERANCE, "atol": _KERNELBENCH_TOLERANCE},
        "limits": {**problem.limits, **_memory(answer)},
        "tests": cases[: len(problem.tests)],
        "benchmarks": cases[len(problem.tests) :],
    }
    return {key: value for key, value in keys.items() if value or key == "foreign"}


def _memory(answer: ImporterAnswer) -> dict[str, int]:
    """The limit on host memory, if the default may be too low."""
    needed = _HOST_BYTES
    if answer.weight_bytes > _HOST_BYTES // 4:
        needed = -(-(4 * answer.weight_bytes + _HOST_BYTES) // _GIB) * _GIB
    if answer.host_bytes * 3 // 2 > needed:
        # A power of two, so that problem.toml is the same on machines on which torch itself takes more or less.
        needed = 1 << (answer.host_bytes * 3 // 2 - 1).bit_length()
    return {"memory_bytes": needed} if needed > _HOST_BYTES else {}


def _arguments_of_cases(state: ProblemDraft) -> None:
    """Integers that every case has become parameters; any other argument becomes an option."""
    cases = state.problem.cases
    whole = [name for name in _argument_names(cases) if all(type(case.get(name)) is int for case in cases)]
    if unusable := next((name for name in whole if not valid(name)), None):
        raise NotImportedError(f"its argument {unusable[:40]!r} cannot be a parameter here: the name has a meaning")
    state.options = [{name: value for name, value in case.items() if name not in whole} for case in cases]
    state.parameters = {name: tuple(case[name] for case in cases) for name in whole}


def _tensor(state: ProblemDraft, tensor: DraftedTensor) -> dict[str, Any]:
    over_cases = tensor.over_cases
    counts = [facts.count for facts in over_cases if facts.count is not None]
    shapes = zip(*(facts.shape for facts in over_cases), strict=True)
    strides = zip(*(facts.strides for facts in over_cases), strict=True)
    return {
        "name": tensor.name,
        "role": tensor.role,
        **({"count": _expression(state, counts)} if counts else {}),
        "shape": [_expression(state, sizes) for sizes in shapes],
        "dtype": _dtype(state, tensor),
        **({} if all(map(_row_major, over_cases)) else {"strides": [_expression(state, steps) for steps in strides]}),
        **({"layouts": tensor.layouts} if tensor.layouts else {}),
        **({"fill": {"kind": "generated"}} if tensor.role == "input" else {}),
    }


def _row_major(tensor: TensorFacts) -> bool:
    """Whether the tensor needs no strides in problem.toml. Repeated elements (stride 0) are stored in full here."""
    dimensions = [*zip(tensor.shape, tensor.strides, strict=False)]
    if any(stride == 0 and size > 1 for size, stride in dimensions):
        return True
    expected = 1
    for size, stride in reversed(dimensions):
        if size > 1 and stride != expected:
            return False
        expected *= size
    return True


def _expression(state: ProblemDraft, sizes: Sequence[int]) -> int | str:
    """The expression for one size in all cases: a parameter, or a number that all of them share."""
    for name, values in state.parameters.items():
        if values == tuple(sizes) and (len(set(sizes)) > 1 or name == _only(state)):
            return name
    return sizes[0] if len(set(sizes)) == 1 else state.parameter(sizes, "d")


def _only(state: ProblemDraft) -> str | None:
    """The parameter that stands for a dimension although it is the same in all cases: a problem needs one."""
    return "d0" if len(state.parameters) == 1 and not any(state.problem.cases) else None


def _require_a_parameter(state: ProblemDraft) -> None:
    """Without arguments, the largest dimension is the parameter."""
    shapes = [[facts.shape for facts in tensor.over_cases] for tensor in state.tensors.values()]
    if not state.parameters and all(len(set(over_cases)) == 1 for over_cases in shapes):
        largest = max((size for over_cases in shapes for size in over_cases[0]), default=1)
        state.parameter([largest] * len(state.problem.cases), "d")


def _dtype(state: ProblemDraft, tensor: DraftedTensor) -> str:
    dtypes = [facts.dtype for facts in tensor.over_cases]
    return dtypes[0] if len(set(dtypes)) == 1 else state.parameter(dtypes, "dtype")


def _cost(state: ProblemDraft) -> str:
    by_dtype: dict[str, list[str]] = {}
    for tensor in state.tensors.values():
        by_dtype.setdefault(_dtype(state, tensor), []).append(f"elements({tensor.name})")
    return " + ".join(
        f"{counts[0] if len(counts) == 1 else '(' + ' + '.join(counts) + ')'} * sizeof({dtype})"
        for dtype, counts in by_dtype.items()
    )


def _call(state: ProblemDraft, data: Any, result: Any) -> dict[str, Any]:
    by_role: dict[str, list[str]] = {"input": [], "output": []}
    for tensor in state.tensors.values():
        by_role[tensor.role].append(tensor.name)
    inputs, outputs = by_role["input"], by_role["output"]
    usual: Any = outputs[0] if len(outputs) == 1 else {"tuple": outputs}
    stated = {} if result == usual else {"result": result}
    if state.problem.form == "gpu-mode":
        return {"style": "tree", "data": data, **stated}
    init = [constant(node, state) for node in state.answer.init]
    arguments = {} if data["tuple"] == inputs else {"arguments": data["tuple"]}
    return {"style": "module", **({"init": init} if init else {}), **arguments, **stated}


def _cases(state: ProblemDraft) -> list[dict[str, Any]]:
    problem, made = state.problem, dict[str, dict[str, Any]]()
    names = _argument_names(problem.cases)
    varying = [name for name in names if len({repr(case.get(name)) for case in problem.cases}) > 1]
    for number, case in enumerate(problem.cases):
        plain = "test" if number < len(problem.tests) else "the only sizes"  # of a problem without arguments
        words = ", ".join(f"{name}={case[name]}" for name in varying or case if name in case) or plain
        name = _distinct(words, made)
        made[name] = {
            "name": name,
            "params": {name: values[number] for name, values in state.parameters.items()},
            **({"devices": ["cuda"]} if _only_on_a_gpu(state) else {}),
            **({"options": state.options[number]} if state.options[number] else {}),
        }
    return [*made.values()]


def _argument_names(cases: Iterable[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for case in cases for name in case))


def _distinct(words: str, taken: Container[str]) -> str:
    """A case's name of at most 64 characters that no other has."""
    words = "".join(letter if letter.isprintable() else "?" for letter in words).strip()
    for number in itertools.count(1):
        end = f" ({number})" if number > 1 else ""
        name = (words if len(words + end) <= 64 else words[: 63 - len(end)].rstrip() + "…") + end
        if name not in taken:
            break
    return name


def _only_on_a_gpu(state: ProblemDraft) -> bool:
    """Whether their code names a GPU, or a problem of KernelBench is too large for Triton's interpreter."""
    if state.problem.form == "gpu-mode":
        return state.problem.needs_gpu
    elements = [math.prod(tensor.over_cases[0].shape) for tensor in state.tensors.values()]
    return 4 * sum(elements) + state.answer.weight_bytes > _SMALL_BYTES
