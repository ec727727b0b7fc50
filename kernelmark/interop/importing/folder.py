"""Writes the folder of an imported problem: completely or not at all, and only if it can be loaded. Trusted.

The project's settings name a checkout outside the project, and imported problems look for it there.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from harness.errors import ProblemError, UsageError
from harness.files import outside
from harness.files.outside import real
from harness.problem import Problem, load
from harness.shared.document import parse_toml
from harness.shared.foreign import FORMS, ForeignForm
from kernelmark.authoring.rendering import render
from kernelmark.interop.importing.checkout import ForeignProblem, NotImportedError
from kernelmark.interop.importing.toml import written
from kernelmark.project.settings import FILE_NAME, PREFIX, Settings, find_file

_PROJECTS = {"gpu-mode": "gpu-mode's reference-kernels", "kernelbench": "KernelBench"}


def refuse_existing(folder: Path, *, force: bool) -> None:
    """Check that a problem may be written there.

    Raises:
        NotImportedError: something is there, and either `force` is false or it was not imported.
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
    folder: Path, problem: ForeignProblem, keys: Mapping[str, Any], checkout: Path, project: Path, *, force: bool
) -> Problem:
    """Write the problem, and load it. Files of an older import are replaced, and others left alone.

    Raises:
        NotImportedError: it cannot be loaded, something is there, or the folder cannot be written.
    """
    refuse_existing(folder, force=force)
    here = together(folder, checkout, project)
    near = real(folder if here else checkout)
    texts = {
        "README.md": render("problem/imported.md.jinja", **keys, project=_PROJECTS[problem.form], files=problem.files),
        "problem.toml": _toml(problem, keys, lambda path: os.path.relpath(path, near), checkout=not here),
    }
    _try(problem, keys)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".import-", dir=folder.parent) as temporary:
            whole = Path(temporary) / folder.name
            whole.mkdir()
            for name, text in texts.items():
                (whole / name).write_text(text, encoding="utf-8")
            if folder.is_dir():
                for name in texts:
                    (whole / name).replace(folder / name)
            else:
                whole.rename(folder)
    except OSError as error:
        raise NotImportedError(f"{folder} cannot be written ({error.strerror})") from None
    try:
        return load(folder, checkouts={} if here else {problem.form: checkout})
    except ProblemError as error:
        raise NotImportedError(str(error)) from None


def _try(problem: ForeignProblem, keys: Mapping[str, Any]) -> None:
    """Load the problem from a scratch folder, so that one that cannot be graded is never written."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / problem.candidate.slug
        folder.mkdir()
        (folder / "problem.toml").write_text(_toml(problem, keys, str, checkout=False), encoding="utf-8")
        try:
            load(folder)
        except ProblemError as error:
            raise NotImportedError(f"its problem.toml would not be valid: {error.what}") from None


def _toml(problem: ForeignProblem, keys: Mapping[str, Any], path: Callable[[Path], str], *, checkout: bool) -> str:
    """The text of problem.toml, with the files at the paths that `path` gives them."""
    files = [
        {"name": file.name, "path": path(file.path), "sha256": file.sha256, **({"shown": True} if file.shown else {})}
        for file in problem.files
    ]
    foreign = {"form": problem.form, **keys["foreign"], **({"checkout": True} if checkout else {}), "files": files}
    return written({**keys, "foreign": foreign})


def project_around(into: Path, settings: Settings) -> Settings:
    """The settings of the project in which problems are written; those given count where that has no settings.

    Outside of any project its root is that of all files: problems point to the checkout by relative paths there.
    """
    folder = real(into)
    if (file := find_file(folder)) is not None:
        return Settings.load(file.parent)
    inside = folder.is_relative_to(settings.root)
    return settings if inside else settings.model_copy(update={"root": Path(folder.anchor)})


def together(folder: Path, checkout: Path, project: Path) -> bool:
    """Whether both are in the project, and so move together; otherwise a setting says where the checkout is."""
    return all(real(path).is_relative_to(real(project)) for path in (checkout, folder))


def refuse_another_checkout(settings: Settings, form: ForeignForm, checkout: Path, into: Path) -> None:
    """Check that the settings name no other checkout, where problems imported from this one would be looked for.

    Raises:
        UsageError: they do.
    """
    known, setting = settings.checkouts.get(form), FORMS[form].setting
    if known not in (None, real(checkout)) and not together(into, checkout, settings.root):
        remedy = f"import from there, or change `{setting}` in {FILE_NAME} or {PREFIX}{setting.upper()}"
        raise UsageError(str(checkout), f"is not the checkout that the settings name, {known}", remedy)


def name_checkout(settings: Settings, form: ForeignForm, checkout: Path, into: Path) -> str:
    """Set the checkout in kernelmark.toml, unless it is set, or in the project; returns what was done, if anything.

    Raises:
        UsageError: the file cannot be changed.
    """
    if form in settings.checkouts or together(into, checkout, settings.root):
        return ""
    setting = FORMS[form].setting
    file, here, variable = settings.root / FILE_NAME, real(checkout), PREFIX + setting.upper()
    key = written({setting: os.path.relpath(here, real(settings.root))})
    try:
        text = outside.text(file) if file.exists() else ""
        file.write_text(key + text, encoding="utf-8")  # at the beginning, a key belongs to no table
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(str(file), f"cannot be changed ({why})", f"set {variable}={here}") from None
    return f"wrote `{setting}` to {os.path.relpath(file)}; where the checkout is elsewhere, set {variable}"
