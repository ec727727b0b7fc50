"""Examines a problem of KernelBench: `Model`, `get_inputs()` and `get_init_inputs()`. Untrusted."""

from __future__ import annotations

import contextlib
import inspect
import math
from collections.abc import Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from harness.importer.drawn import fixed
from harness.importer.elsewhere import elsewhere, on_first
from harness.importer.loaded import ReferenceFiles, defined
from harness.importer.values import Describer, ImportRefused, tensor_facts

_DRAWN_ELEMENTS = 1 << 26  # drawing them twice takes a few seconds


def look(request: dict[str, Any], files: ReferenceFiles) -> dict[str, Any]:
    """The sizes of inputs and results, which are the same in every case; tries one device after the other.

    Raises:
        ImportRefused: it is not such a problem, or cannot be described.
        Exception: it failed on the last device.
    """
    answer = on_first(request["devices"], lambda device: _on(device, files, len(request["cases"])))
    with contextlib.suppress(Exception):  # the sizes are known, and a grading will find the rest
        if sum(math.prod(facts["shape"]) for facts in tensor_facts(answer["cases"][0]["data"])) <= _DRAWN_ELEMENTS:
            return {**answer, "fixed": fixed(lambda seed: _drawn(files, seed))}
    return answer


def _drawn(files: ReferenceFiles, seed: int) -> list[Any]:
    with elsewhere("cpu"), torch.no_grad():
        module = files.load()
        torch.manual_seed(seed)
        return _listed(module.get_inputs(), "get_inputs")


def _on(device: str, files: ReferenceFiles, cases: int) -> dict[str, Any]:
    with elsewhere(device), torch.no_grad():
        module = files.load()
        model_class, inputs, init = (defined(module, name) for name in ("Model", "get_inputs", "get_init_inputs"))
        constructed_with = _listed(init(), "get_init_inputs")
        described = Describer().describe(constructed_with)["list"]
        torch.manual_seed(1)
        model = model_class(*constructed_with)
        arguments = tuple(_listed(inputs(), "get_inputs"))
        describer = Describer()
        data = describer.describe(arguments)
        with _Repeatable():  # type: ignore[no-untyped-call]  # of torch's base class
            returned = model(*arguments)
        result = describer.describe(returned, "result")
        del returned, arguments, describer
        torch.manual_seed(2)
        if data != Describer().describe(tuple(_listed(inputs(), "get_inputs"))):
            raise ImportRefused("the sizes or numbers of its inputs are random")
        weights = [*model.parameters(), *model.buffers()] if isinstance(model, torch.nn.Module) else []
        return {
            "init": described,
            "cases": [{"data": data, "result": result}] * cases,
            "names": list(inspect.signature(model_class.forward).parameters)[1:],
            "weight_bytes": sum(tensor.numel() * tensor.element_size() for tensor in weights),
        }


def _listed(value: Any, function: str) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise ImportRefused(f"{function}() returns a {type(value).__name__}, not a list")
    return list(value)


class _Repeatable(TorchDispatchMode):
    """Refuses operators that draw random numbers, such as dropout in training: two right kernels would disagree."""

    def __torch_dispatch__(
        self,
        operator: Any,
        types: tuple[type, ...],
        arguments: tuple[Any, ...] = (),
        named: Mapping[str, Any] | None = None,
    ) -> Any:
        if torch.Tag.nondeterministic_seeded in operator.tags:
            raise ImportRefused(f"its result is random: forward() calls {operator.name()}")
        return operator(*arguments, **(named or {}))
