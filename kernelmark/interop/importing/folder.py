"""Writes the folder of an imported problem: whole or not at all, and only if it can be loaded. Trusted."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.errors import ProblemError
from harness.files import outside
from harness.files.outside import real
from harness.problem import Problem, load
from harness.shared.document import parse_toml
from kernelmark.interop.importing.found import Found, NotImportedError
from kernelmark.interop.importing.toml import written

_README = """\
# {title}

This problem is stated elsewhere, in a checkout of {project}:

{files}

`kernelmark import` wrote this folder. It holds the sizes and dtypes of that problem, and no code: the files above are
read from where they are, and must stay as they were. A submission defines `{entry}`, as it would there.

{arguments}
"""
_PROJECTS = {"gpu-mode": "gpu-mode's reference-kernels", "kernelbench": "KernelBench"}


def refuse_existing(folder: Path, *, force: bool) -> None:
    """Check that a problem may be written there.

    Raises:
        NotImportedError: something is there, and either `force` is not given, or it was not imported.
    """
    if not os.path.lexists(folder):
        return
    if not force:
        raise NotImportedError(f"{folder.name} exists; --force writes it again")
    try:
        imported = "foreign" in parse_toml(outside.read(folder / "problem.toml", outside.TEXT_BYTES))
    except (OSError, ValueError):
        imported = False
    if not imported or folder.is_symlink():
        raise NotImportedError(f"{folder.name} exists and was not imported; move it away")


def write(
    folder: Path, found: Found, keys: Mapping[str, Any], checkout: Path, project: Path, *, force: bool
) -> Problem:
    """Write the problem, and load it. Files of an older import are replaced, and others left alone.

    Raises:
        NotImportedError: it cannot be loaded, something is there, or the folder cannot be written.
    """
    refuse_existing(folder, force=force)
    here = together(folder, checkout, project)
    near, root = (real(folder), None) if here else (real(checkout), checkout)
    final = _text(found, keys, {each.name: os.path.relpath(each.path, near) for each in found.files}, checkout=not here)
    _try(found, keys)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".import-", dir=folder.parent) as temporary:
            whole = Path(temporary) / folder.name
            whole.mkdir()
            (whole / "README.md").write_text(_readme(found, keys), encoding="utf-8")
            (whole / "problem.toml").write_text(final, encoding="utf-8")
            if folder.is_dir():
                for name in ("README.md", "problem.toml"):
                    (whole / name).replace(folder / name)
            else:
                whole.rename(folder)
    except OSError as error:
        raise NotImportedError(f"{folder} cannot be written ({error.strerror})") from None
    try:
        return load(folder, checkouts={found.form: root} if root else {})
    except ProblemError as error:
        raise NotImportedError(str(error)) from None


def _try(found: Found, keys: Mapping[str, Any]) -> None:
    """Load it from a scratch folder: what cannot be graded is never written."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / found.slug
        folder.mkdir()
        text = _text(found, keys, {each.name: str(each.path) for each in found.files}, checkout=False)
        (folder / "problem.toml").write_text(text, encoding="utf-8")
        try:
            load(folder)
        except ProblemError as error:
            raise NotImportedError(f"its problem.toml would not be valid: {error.what}") from None


def _text(found: Found, keys: Mapping[str, Any], paths: Mapping[str, str], *, checkout: bool) -> str:
    files = [
        {"name": each.name, "path": paths[each.name], "sha256": each.sha256, **({"shown": True} if each.shown else {})}
        for each in found.files
    ]
    ordered: dict[str, Any] = {}
    for key, value in keys.items():
        if key != "foreign":
            ordered[key] = value
        if key == "call":
            more = {**keys.get("foreign", {}), **({"checkout": True} if checkout else {})}
            ordered["foreign"] = {"form": found.form, **more, "files": files}
    return written(ordered)


def together(folder: Path, checkout: Path, project: Path) -> bool:
    """Whether both are in the project, so that they are moved together; else a setting says where the checkout is."""
    return all(real(each).is_relative_to(real(project)) for each in (checkout, folder))


def _shape(tensor: Mapping[str, Any]) -> str:
    shape = f"`[{', '.join(map(str, tensor['shape']))}]`"
    return f"`{tensor['count']}` tensors of {shape}" if "count" in tensor else shape


def _readme(found: Found, keys: Mapping[str, Any]) -> str:
    rows = ["| argument | role | shape | dtype |", "|---|---|---|---|"]
    rows += [f"| `{each['name']}` | {each['role']} | {_shape(each)} | {each['dtype']} |" for each in keys["tensors"]]
    return _README.format(
        title=found.title,
        project=_PROJECTS[found.form],
        files="\n".join(f"- `{'/'.join(each.path.parts[-3:])}`, imported as `{each.name}`" for each in found.files),
        entry=keys["entry"],
        arguments="\n".join(rows),
    )
