"""Examines a problem of gpu-mode: `generate_input(**arguments)`, `ref_kernel(data)`, `check_implementation`."""

from __future__ import annotations

import ast
import contextlib
import inspect
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from harness.importer.drawn import fixed, seed_bits
from harness.importer.elsewhere import on_first
from harness.importer.filled import filled, limited, smallest
from harness.importer.loaded import LoadedReference, ReferenceFiles, generated
from harness.importer.numbered import check_result, folded
from harness.importer.values import Describer, ImportRefused, Tree, structure


def look(request: dict[str, Any], files: ReferenceFiles) -> dict[str, Any]:
    """The sizes of all cases, and the tensors in the data that are memory for the result.

    Raises:
        ImportRefused: it is not such a problem, or cannot be described.
        Exception: it failed on the last device.
    """
    loaded = {device: LoadedReference(device, files) for device in request["devices"]}
    _check_structures(loaded[request["devices"][0]], request["cases"])
    cases: list[dict[str, Any]] = []
    for arguments in request["cases"]:
        cases.append(_case(loaded, arguments, seeds=1 if cases else 2))
        _same_structures([cases[0]["data"], cases[-1]["data"]])
    for case, data in zip(cases, _same_structures([case["data"] for case in cases]), strict=True):
        check_result(case["result"], case["data"], data)
        case["data"] = data
    module = next(found.module for found in loaded.values() if found.module is not None)
    return {
        "cases": cases,
        "names": _unpacked(module),
        "filled": filled(request["cases"], cases, loaded),
        **_drawn(loaded, request["cases"][smallest(cases)]),
    }


def _drawn(loaded: dict[str, LoadedReference], arguments: dict[str, Any]) -> dict[str, Any]:
    """How seeds change the inputs of a case; empty if they cannot be drawn here."""
    *_, real = loaded.values()
    with contextlib.suppress(Exception), limited(), real.here() as module:

        def draw(seed: int) -> Any:
            return generated(module, arguments, seed)

        return {"fixed": fixed(draw), "seed_bits": seed_bits(draw) or 0}
    return {}


def _check_structures(loaded: LoadedReference, cases: list[dict[str, Any]]) -> None:
    """Refuse data with different structures in different cases, before the reference runs, which may take long."""
    seen: list[Tree] = []
    with contextlib.suppress(Exception), loaded.here() as module:
        for arguments in cases if loaded.device == "meta" else []:
            seen.append(Describer().describe(generated(module, arguments, 1)))
    _same_structures(seen)


def _same_structures(seen: Sequence[Tree]) -> Sequence[Tree]:
    """The descriptions of the data of several cases, unchanged or folded, so that all have the same structure.

    Raises:
        ImportRefused: their structures differ.
    """
    for trees in (seen, folded(seen)):
        if all(structure(tree) == structure(trees[0]) for tree in trees[1:]):
            return trees
    raise ImportRefused("its data has another structure in other cases")


def _case(loaded: dict[str, LoadedReference], arguments: dict[str, Any], seeds: int) -> dict[str, Any]:
    """The sizes of one case, from the first device on which they can be found."""
    *_, last = loaded
    return on_first(loaded, lambda device: loaded[device].sizes(arguments, seeds if device == last else 2))


def _unpacked(module: ModuleType) -> list[str]:
    """The names in the first `a, b, c = data` of ref_kernel; none if there is no such line."""
    try:
        [function] = ast.parse(inspect.getsource(module.ref_kernel)).body
    except (OSError, TypeError, ValueError, SyntaxError):
        return []
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Name(id=value)):
                if value == _first_argument(function) and all(isinstance(name, ast.Name) for name in names):
                    return [name.id for name in names if isinstance(name, ast.Name)]
    return []


def _first_argument(function: ast.stmt) -> str | None:
    arguments = function.args.args if isinstance(function, ast.FunctionDef) else []
    return arguments[0].arg if arguments else None
