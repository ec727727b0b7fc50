"""Builds the whole site: ledgers become books, books become pages, and pages are written to the folder.

`kernelmark` calls `build`. Trusted. The time of day decides only which problems are closed, and so which sources are
shown and which final tests count: apart from that, the same ledgers give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import cache, partial
from importlib.metadata import version as distribution_version
from pathlib import Path

import harness
from harness.errors import HarnessError
from harness.files.identity import length_prefixed_sha256
from harness.verdict import FrozenModel
from leaderboard.publishing.site.book import Book
from leaderboard.publishing.site.folder import Files, Page, Written, key, write
from leaderboard.publishing.site.inputs import Site, SiteInputs
from leaderboard.publishing.site.markup import HERE
from leaderboard.publishing.site.pages import KINDS
from leaderboard.publishing.site.statement import Statement
from leaderboard.record.ledger import JsonlLedger
from leaderboard.standings.visibility import Rule

_STATIC = ("site.css", "site.js", "plots.js", "favicon.svg", "social.png")
_LIBRARIES = ("jinja2", "pygments", "markdown-it-py", "pydantic")


def build(material: SiteInputs, out: Path, memory: Path) -> Written:
    """Write the site to `out`; `memory` is a cache folder next to it, which makes later builds fast.

    Raises:
        LedgerError: a ledger is broken.
        UsageError: `out` has pages that this command did not write.
        HarnessError: something cannot be written.
    """
    try:
        with ExitStack() as opened:
            return write(out, memory, _pages(_site(material, memory, opened)))
    except sqlite3.Error as error:  # once a build has opened an index, it does not make another
        raise HarnessError(f"the index of the ledgers cannot be read ({error})", "build the site again") from error


def _site(material: SiteInputs, memory: Path, opened: ExitStack) -> Site:
    try:
        (compiled := memory / "templates").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HarnessError(f"{error.filename or memory}: the site cannot be built ({error.strerror})") from error
    hashes = {statement.slug: statement.sha256 for statement in material.statements}
    frozen = {statement.slug: statement.rule.frozen(material.now) for statement in material.statements}
    books = []
    for path in sorted(material.ledgers):
        lines = opened.enter_context(JsonlLedger(path, material.index, frozen.get(path.stem)).lines())
        books.append(Book(lines, hashes.get(path.stem), material.current, material.teams))
    return Site(
        material=material,
        books=tuple(books),
        version=_version(),
        runs=frozenset(run for book in books for run in book.runs),
        problems=_problems(material, books),
        menu=tuple(link for kind in KINDS for link in kind.menu),
        compiled=compiled,
    )


def _pages(site: Site) -> Iterator[Page]:
    for kind in KINDS:
        yield from kind.pages(site)
    for name in _STATIC:
        yield _file(f"static/{name}", (HERE / "static" / name).read_bytes())
    for document in (document for kind in KINDS for document in kind.documents):
        name = f"schema/{document.model_fields['kind'].default}.json"
        yield Page((name,), key(site.version, name), partial(_schema, name, document))


def _problems(material: SiteInputs, books: Sequence[Book]) -> tuple[Statement, ...]:
    """The problems of the project, and those that exist only in a ledger any more, in order of their slugs."""
    by_slug = {statement.slug: statement for statement in material.statements}
    for book in books:
        sha256 = book.boards[0].key.problem_sha256 if book.boards else "0" * 64
        gone = Statement(slug=book.problem, title=book.problem, sha256=sha256, rule=Rule(problem=book.problem))
        by_slug.setdefault(book.problem, gone)
    return tuple(statement for _, statement in sorted(by_slug.items()))


def _file(path: str, content: bytes) -> Page:
    def make() -> Files:
        return {path: content}

    return Page((path,), key(hashlib.sha256(content).hexdigest()), make)


def _schema(path: str, kind: type[FrozenModel]) -> Files:
    """The JSON Schema of a page's document; it allows the `$schema` key that every document has."""
    schema = kind.model_json_schema(mode="serialization")
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["properties"]["$schema"] = {"type": "string"}
    _absent_is_absent(schema)
    return {path: (json.dumps(schema, indent=1, sort_keys=True) + "\n").encode()}


def _absent_is_absent(schema: object) -> None:
    """Make nullable keys optional, since documents leave them out instead of writing null."""
    if isinstance(schema, dict):
        properties = schema.get("properties")
        if isinstance(properties, dict) and "required" in schema:
            schema["required"] = [
                name for name in schema["required"] if {"type": "null"} not in properties.get(name, {}).get("anyOf", ())
            ]
        for value in schema.values():
            _absent_is_absent(value)
    elif isinstance(schema, list):
        for value in schema:
            _absent_is_absent(value)


@cache
def _version() -> str:
    """The hash of the code, the templates and the library versions; when it changes, every page is rebuilt."""
    libraries = [distribution_version(name).encode() for name in _LIBRARIES]
    return length_prefixed_sha256(*(file.read_bytes() for file in _code()), *libraries)[:16]


def _code() -> list[Path]:
    """The modules of `leaderboard` and `harness`, any of which may change what a page shows, and the site's own files.

    In a clone `leaderboard/` holds results, too: only folders that are packages are code.
    """
    packages = [HERE.parents[1], Path(harness.__file__).parent]
    folders = [found.parent for package in packages for found in package.glob("*/__init__.py")]
    modules = [*packages[1].glob("*.py"), *(module for folder in folders for module in folder.rglob("*.py"))]
    assets = [file for name in ("templates", "static") for file in (HERE / name).iterdir()]
    return sorted(file for file in (*modules, *assets) if file.is_file())
