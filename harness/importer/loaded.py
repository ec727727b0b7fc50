"""Imports the files of a foreign problem; for gpu-mode, also calls its functions on one device. Untrusted."""

from __future__ import annotations

import contextlib
import copy
import importlib
import inspect
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from harness.importer.elsewhere import elsewhere
from harness.importer.values import Describer, ImportRefused, Tree, leaves

_FUNCTIONS = ("generate_input", "ref_kernel", "check_implementation")


class ReferenceFiles:
    """The files of a problem, written to a folder from which they can be imported; the first one is the reference."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        folder = Path(tempfile.mkdtemp())
        for name, source in sources.items():
            (folder / name).write_text(source, encoding="utf-8")
        self._modules = [name.removesuffix(".py") for name in sources]
        sys.path.insert(0, str(folder))

    def load(self) -> ModuleType:
        """Import the reference again, and with it the files of the problem that it imports.

        Raises:
            ImportRefused: a module that it imports is not installed here.
        """
        for name in self._modules:
            sys.modules.pop(name, None)
        try:
            return importlib.import_module(self._modules[0])
        except ModuleNotFoundError as error:
            raise ImportRefused(f"it imports {error.name!r}, which is not installed here") from None


def defined(module: ModuleType, name: str) -> Any:
    """The function or class that the module defines under a name.

    Raises:
        ImportRefused: there is none.
    """
    if not callable(found := getattr(module, name, None)):
        raise ImportRefused(f"it defines no {name}()")
    return found


def in_one_line(error: BaseException) -> str:
    """Describe an exception in one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:400] if text else type(error).__name__


class LoadedReference:
    """A reference that is imported on first use, and runs on one device whatever device it names."""

    def __init__(self, device: str, files: ReferenceFiles) -> None:
        self.device, self._files = device, files
        self.module: ModuleType | None = None

    @contextlib.contextmanager
    def here(self) -> Iterator[ModuleType]:
        """Yield the module, whose functions may be called in this block.

        Raises:
            ImportRefused: it lacks one of the required functions.
        """
        with contextlib.nullcontext() if self.device == "cuda" else elsewhere(self.device), torch.no_grad():
            if self.module is None:
                module = self._files.load()
                for name in _FUNCTIONS:
                    defined(module, name)
                self.module = module
            yield self.module

    def sizes(self, arguments: dict[str, Any], seeds: int) -> dict[str, Any]:
        """The description of a case's data and result.

        Args:
            arguments: the arguments of `generate_input` without the seed.
            seeds: the number of seeds with which the data are generated, which takes long if tensors have values.
        """
        describer = Describer()
        with self.here() as module:
            data = generated(module, arguments, 1)
            described = describer.describe(data)
            if other := next((inside for kind, inside in leaves(described) if kind == "other"), None):
                raise ImportRefused(f"its data holds a {other}, for which the format has no form")
            for seed in range(2, seeds + 1):
                if Describer().describe(generated(module, arguments, seed)) != described:
                    raise ImportRefused("the sizes or numbers of its inputs depend on the seed")
        if self.device == "cpu":  # sizes are found faster without values
            with contextlib.suppress(Exception):
                result = _result_without_values(module, data, describer.tensors.values())
                return {"data": described, "result": result}
        with self.here():
            return {"data": described, "result": describer.describe(module.ref_kernel(data), "result")}


def _result_without_values(module: ModuleType, data: Any, tensors: Iterable[torch.Tensor]) -> Tree:
    """The description of the reference's result for the same data on the meta device."""
    describer = Describer()
    with elsewhere("meta"), torch.no_grad():
        moved = copy.deepcopy(data, {id(tensor): tensor.to("meta") for tensor in tensors})
        describer.describe(moved)
        return describer.describe(module.ref_kernel(moved), "result")


def generated(module: ModuleType, arguments: dict[str, Any], seed: int) -> Any:
    """Call `generate_input`.

    Raises:
        ImportRefused: it does not take the arguments of the cases.
    """
    parameters = inspect.signature(module.generate_input).parameters
    if "seed" not in parameters:
        raise ImportRefused("generate_input() takes no seed, so its inputs are always the same")
    if unknown := next((name for name in arguments if name not in parameters), None):
        raise ImportRefused(f"its cases give {unknown!r}, which generate_input() does not take")
    required = [name for name, p in parameters.items() if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    if missing := next((name for name in required if name != "seed" and name not in arguments), None):
        raise ImportRefused(f"generate_input() needs {missing!r}, which its cases do not give")
    torch.manual_seed(seed)
    return module.generate_input(**arguments, seed=seed)
