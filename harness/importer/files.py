"""Imports the files of a foreign problem, and turns what goes wrong into one line."""

from __future__ import annotations

import importlib
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from harness.importer.values import Refusal


class Files:
    """The files, written to a folder from which they can be imported; the first one is the reference."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        folder = Path(tempfile.mkdtemp())
        for name, source in sources.items():
            (folder / name).write_text(source, encoding="utf-8")
        self._modules = [name.removesuffix(".py") for name in sources]
        sys.path.insert(0, str(folder))

    def load(self) -> ModuleType:
        """Import the reference afresh, and with it whatever files of the problem it imports.

        Raises:
            Refusal: a module that it imports is not installed here.
        """
        for name in self._modules:
            sys.modules.pop(name, None)
        try:
            return importlib.import_module(self._modules[0])
        except ModuleNotFoundError as error:
            raise Refusal(f"it imports {error.name!r}, which is not installed here") from None


def defined(module: ModuleType, name: str) -> Any:
    """The function or class that the module defines by a name.

    Raises:
        Refusal: it does not.
    """
    if not callable(found := getattr(module, name, None)):
        raise Refusal(f"it defines no {name}()")
    return found


def in_one_line(error: BaseException) -> str:
    """An exception in one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:400] if text else type(error).__name__
