"""Calls the functions of a foreign reference that draw inputs and check answers.

Runs in a sandbox that contains the reference and no submission. The reference was built like a submission.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from harness.arena.shapes import copied
from harness.runner.kernel import value_of
from harness.shared.call import Forms, parts
from harness.shared.carrier import assign

ForeignOptions = Mapping[str, Any]


def draw(form: str, forms: Forms, seed: int, options: ForeignOptions) -> dict[str, Any]:
    """Let the reference make the arguments of a call from a seed; returns them by name."""
    with torch.no_grad():
        return _DRAWS[form](sys.modules["submission"], forms, seed, options)


def put(name: str, drawn: Any, tensors: Tensor | list[Tensor]) -> None:
    """Copy a drawn argument into the tensors of a call.

    Raises:
        TypeError: it does not match problem.toml.
    """
    members = tensors if isinstance(tensors, list) else [tensors]
    values = drawn if isinstance(tensors, list) else [drawn]
    if not isinstance(values, list | tuple) or len(values) != len(members):
        got = f"{len(values)} values" if isinstance(values, list | tuple) else type(values).__name__
        raise TypeError(f"the reference made {got} for `{name}`, which is a list of {len(members)} tensors")
    for value, tensor in zip(values, members, strict=True):
        if not isinstance(value, Tensor) or value.shape != tensor.shape or value.dtype != tensor.dtype:
            got = f"{value.dtype} {list(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
            raise TypeError(f"the reference made {got} for `{name}`, which is {tensor.dtype} {list(tensor.shape)}")
        assign(tensor, value)


def check(forms: Forms, named: Mapping[str, Any]) -> str:
    """Why the reference's own check refuses an answer, on one line; "" if it accepts it."""
    function = _function(sys.modules["submission"], "check_implementation")
    # The check may compute its own answer into the same memory.
    answer = {name: _cloned(value) for name, value in named.items()}
    [data] = [value_of(form, named) for form in forms.arguments]
    with torch.no_grad():
        result = function(data, value_of(forms.result, answer))
    right, why = result if isinstance(result, tuple) and len(result) == 2 else (not result, result)
    return "" if right else " ".join(str(why or "its check gave no reason").split())


def _gpu_mode(module: Any, forms: Forms, seed: int, options: ForeignOptions) -> dict[str, Any]:
    function = _function(module, "generate_input")
    known = inspect.signature(function).parameters
    data = function(**{name: value for name, value in options.items() if name in known}, seed=seed)
    [form] = forms.arguments
    return parts(data, form, "what it generates")


def _kernelbench(module: Any, forms: Forms, seed: int, options: ForeignOptions) -> dict[str, Any]:
    torch.manual_seed(seed)
    with torch.device("cuda" if torch.cuda.is_available() else "cpu"):
        return parts(list(_function(module, "get_inputs")()), list(forms.arguments), "what it generates")


def _cloned(value: Any) -> Any:
    return [copied(tensor) for tensor in value] if isinstance(value, list) else copied(value)


def _function(module: Any, name: str) -> Callable[..., Any]:
    function = getattr(module, name, None)
    if not callable(function):
        raise TypeError(f"the reference defines no function `{name}`")
    return function  # type: ignore[no-any-return]


_DRAWS: Mapping[str, Callable[[Any, Forms, int, ForeignOptions], dict[str, Any]]] = {
    "gpu-mode": _gpu_mode,
    "kernelbench": _kernelbench,
}
