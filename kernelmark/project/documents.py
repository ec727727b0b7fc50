"""The JSON documents that commands print for programs; their schemas are in docs/schemas. Trusted.

`tools/schemas.py` lists all documents with their types, and writes the schemas. Later versions only add fields to a
document, so `version` stays the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from typing_extensions import TypedDict

from harness.errors import KernelmarkError
from kernelmark.text.terminal import fail, print_lines, print_text

VERSION = 1
ErrorCode = Literal[
    "usage", "problem", "submission", "settings", "harness", "sandbox", "device", "ledger", "job_timeout",
    "unexpected", "interrupted",
]  # fmt: skip
"""The kind of an error, by its class in `harness.errors`; any other exception is `unexpected`."""


class ErrorText(TypedDict):
    """Why a command failed; `remedy` is empty if none is known."""

    code: ErrorCode
    message: str
    remedy: str


class ErrorDocument(TypedDict):
    """The document of a command that fails before it has printed its own."""

    error: ErrorText


class Printed:
    """Whether the command has printed a document."""

    yet = False


def print_as(form: str, name: str, document: object, lines: Iterable[str]) -> None:
    """Print the result of a command: the document of this name if `form` is "json", else lines for people."""
    if form == "json":
        print_document(name, document)
    else:
        print_lines(lines)


def print_document(name: str, document: object) -> None:
    """Print a document as `written`."""
    Printed.yet = True
    print_text(portable_here(written(name, document)))


def written(name: str, document: object) -> str:
    """A document with the name of its schema and its version; a list is written as its `items`.

    A `str` must be the text of a JSON object, and is written on one line.
    """
    head = {"$schema": f"docs/schemas/{name}.json", "version": VERSION}
    if isinstance(document, str):
        return f"{json.dumps(head)[:-1]}, {document.lstrip()[1:]}"
    from pydantic_core import to_jsonable_python  # which few commands need

    plain = to_jsonable_python(document)
    fields = plain if isinstance(plain, dict) else {"items": plain}
    # The head comes first and wins: the status of a submission has a `version` of its own, for the server's clients.
    return json.dumps({**head, **fields, **head}, indent=2, ensure_ascii=False)


def failed(form: str, status: int, code: ErrorCode, message: str, remedy: str = "") -> int:
    """Say on stderr why a command failed, and return its exit status.

    With the form "json" it also prints the error as a document, unless the command has printed its own before.
    """
    if form == "json" and not Printed.yet:
        document: ErrorDocument = {"error": {"code": code, "message": message, "remedy": remedy}}
        print_document("error", document)
    return fail("; ".join(filter(None, (message, remedy))), status)


def failed_by(form: str, error: KernelmarkError) -> int:
    """As `failed`, for an error that kernelmark raised."""
    text = error_text(error)
    return failed(form, error.exit_code, text["code"], text["message"], text["remedy"])


def error_text(error: KernelmarkError) -> ErrorText:
    """The kind, the message and the remedy of an error."""
    kind = next(base for base in type(error).__mro__ if base.__module__ == KernelmarkError.__module__)
    code: Any = re.sub("(?<=[a-z])(?=[A-Z])", "_", kind.__name__.removesuffix("Error")).lower()
    remedy = " ".join(getattr(error, "remedy", "").split())
    return {"code": code, "message": str(error).removesuffix(f"; {remedy}"), "remedy": remedy}


def portable_here(text: str) -> str:
    """As `portable`, for the project of the working directory."""
    from kernelmark.project.settings import find_file

    try:
        file = find_file(Path.cwd())
        return portable(text, file.parent if file else Path.cwd())
    except OSError:  # the working directory is gone
        return portable(text, None)


def portable(text: str, root: Path | None) -> str:
    """JSON text in which paths in the project's `root` are relative, and paths in the user's home begin with `~`."""
    folders = [] if root is None else [(root, "", ".")]
    with suppress(RuntimeError):  # the user has no home
        folders.append((Path.home(), "~/", "~"))
    for folder, within, itself in folders:
        if folder != folder.parent:
            path = re.escape(json.dumps(str(folder), ensure_ascii=False)[1:-1])
            text = re.sub(rf"(?<![\w./~-]){path}/", within, text)
            text = re.sub(rf"(?<![\w./~-]){path}(?![\w.-])", itself, text)
    return text
