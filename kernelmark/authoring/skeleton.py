"""Writes the directory of a new problem, for organizers to fill in. Trusted; does not import torch.

`kernelmark problems new SLUG` calls it. Only the definition is missing: the lint says so until there is one, and passes
once it computes something from each element. docs/problems.md describes the next steps.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from harness.errors import ProblemError, UsageError
from harness.problem import load
from harness.problem.signature import prototypes
from harness.problem.spec import schema_document
from harness.shared.call import Style
from kernelmark.authoring.rendering import render
from kernelmark.project.settings import Settings
from kernelmark.text.terminal import visible

SCHEMA = "problem.schema.json"
STATEMENT = "problem/README.md.jinja"
_DEFINITION = ("problem.toml", "reference.py")
_OTHERS = ("README.md", "samples/expected.toml", "samples/nothing.py")


def write(settings: Settings, slug: str, style: Style = "writes") -> list[Path]:
    """Write the files of a problem that does not exist yet, all or none; returns their paths.

    The schema that the first line of `problem.toml` names is written to the folder of the problems, unless it is there.

    `style` says how the problem's submissions are called.

    Raises:
        UsageError: the slug is not valid or is taken, or its directory cannot be written.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,63}", slug):
        remedy = "use up to 64 lower-case letters, digits and '_', starting with a letter"
        raise UsageError(f"`{visible(slug)}`", "is not a valid slug", remedy)
    directory = settings.locate("problems") / slug
    new = [directory / name for name in (*_DEFINITION, *_OTHERS)]
    try:
        if directory.exists():
            raise UsageError(str(directory), "exists already", "choose another slug, or remove it")
        directory.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory.parent, prefix=".new-") as folder:
            made = Path(folder) / slug
            (made / "samples").mkdir(parents=True)
            for name in _DEFINITION:
                _write(made, name, slug=slug, style=style)
            problem = load(made)  # a slug can still be a C++ keyword, or have a meaning in expressions
            functions = {suffix: prototypes(problem, suffix).values() for suffix in ("cu", "cpp")}
            for name in _OTHERS:
                _write(made, name, slug=slug, style=style, functions=functions)
            schema = directory.parent / SCHEMA
            if not schema.exists():
                Path(folder, SCHEMA).write_text(schema_document(), "utf-8")
                Path(folder, SCHEMA).rename(schema)
                new.append(schema)
            made.rename(directory)
    except ProblemError as error:
        raise UsageError(slug, f"is not a valid slug ({error.what})") from None
    except OSError as error:
        raise UsageError(str(directory), f"cannot be written ({error.strerror})", "make it writable") from None
    return new


def _write(folder: Path, name: str, **context: object) -> None:
    (folder / name).write_text(render(f"problem/{name}.jinja", **context), "utf-8")
