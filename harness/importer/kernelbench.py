"""Looks at a problem of KernelBench: `Model`, `get_inputs()` and `get_init_inputs()`."""

from __future__ import annotations

import contextlib
import inspect
from typing import Any

import torch

from harness.importer.devices import on_first
from harness.importer.drawn import fixed
from harness.importer.elsewhere import elsewhere
from harness.importer.files import Files, defined
from harness.importer.values import Describer, Refusal

_DRAWN_ELEMENTS = 1 << 26  # drawn twice in a few seconds


def look(request: dict[str, Any], files: Files) -> dict[str, Any]:
    """The sizes of its inputs and results, the same in every case; tries one device after the other.

    Raises:
        Refusal: it is not such a problem, or cannot be stated.
        Exception: it failed on the last device.
    """
    answer = on_first(request["devices"], lambda device: _on(device, files, len(request["cases"])))
    with contextlib.suppress(Exception):  # sizes are known, and a grading will tell the rest
        if sum(each.numel() for each in _sized(answer)) <= _DRAWN_ELEMENTS:
            return {**answer, "fixed": fixed(lambda seed: _drawn(files, seed))}
    return answer


def _sized(answer: dict[str, Any]) -> list[torch.Tensor]:
    """Tensors without values of the sizes of the inputs."""
    told = [each["tensor"] for each in answer["cases"][0]["data"]["tuple"] if "tensor" in each]
    return [torch.empty(each["shape"], device="meta") for each in told]


def _drawn(files: Files, seed: int) -> list[Any]:
    with elsewhere("cpu"), torch.no_grad():
        module = files.load()
        torch.manual_seed(seed)
        return _listed(module.get_inputs(), "get_inputs")


def _on(device: str, files: Files, cases: int) -> dict[str, Any]:
    with elsewhere(device), torch.no_grad():
        module = files.load()
        model_class, inputs, init = (defined(module, name) for name in ("Model", "get_inputs", "get_init_inputs"))
        constructed_with = _listed(init(), "get_init_inputs")
        given = Describer()
        told_init = [given.describe(each) for each in constructed_with]
        torch.manual_seed(1)
        model = model_class(*constructed_with)
        arguments = _listed(inputs(), "get_inputs")
        describer = Describer()
        data = {"tuple": [describer.describe(each) for each in arguments]}
        result = describer.describe(model(*arguments))
        del arguments, describer
        torch.manual_seed(2)
        again = Describer()
        if data["tuple"] != [again.describe(each) for each in _listed(inputs(), "get_inputs")]:
            raise Refusal("the sizes or numbers of its inputs are random")
        weights = [*model.parameters(), *model.buffers()] if isinstance(model, torch.nn.Module) else []
        return {
            "init": told_init,
            "cases": [{"data": data, "result": result}] * cases,
            "names": list(inspect.signature(model_class.forward).parameters)[1:],
            "weight_bytes": sum(each.numel() * each.element_size() for each in weights),
        }


def _listed(value: Any, function: str) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise Refusal(f"{function}() returns a {type(value).__name__}, not a list")
    return list(value)
