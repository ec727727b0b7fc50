"""Writes the site's folder incrementally: only changed pages are rendered and written, and obsolete files are removed.

`build` calls it. Trusted. A page has a *key*, the hash of everything that it is made from; a page whose key has not
changed is not rendered again. The list of written files is kept next to the folder, so it is never published. Files
appear whole, but are not synced to disk, since a site can be rebuilt: a file whose size is not what was written, as
after a power cut, is rendered again.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from pydantic_core import to_json

from harness.errors import HarnessError, UsageError
from leaderboard.record.durable import write_whole

_LIST, _BEGUN = "written.json", "begun.json"

Files = Mapping[str, bytes]
Kept = dict[str, tuple[str, int, str]]  # path: key, size, hash
_UNFINISHED = ("", -1, "")  # of files listed before they are written, so that a killed build leaves no unlisted file


class Page(NamedTuple):
    """Files that are rendered together: their paths, the hash of everything they are made from, and a function."""

    paths: tuple[str, ...]
    key: str
    make: Callable[[], Files]


class Written(NamedTuple):
    """What a build did to the folder, in numbers of files."""

    written: int
    unchanged: int
    removed: int


def key(*parts: str) -> str:
    """The hash of everything that a page is made from."""
    joined = "".join([f"{len(part)}:{part}" for part in parts])
    return hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def as_text(value: object) -> str:
    """What a page is made from, as a part of its key: numbers, texts, records, and lists and dicts of them.

    `str` would take ten times as long, and a site has thousands of pages.
    """
    return to_json(value).decode()


def write(folder: Path, memory: Path, pages: Iterable[Page]) -> Written:
    """Make the folder hold these pages, and remove other files that an earlier build wrote.

    Raises:
        UsageError: the folder has an index.html that no build wrote.
        HarnessError: something cannot be written.
    """
    old = _kept(memory / _LIST) | dict.fromkeys(_kept(memory / _BEGUN), _UNFINISHED)
    if not old and (folder / "index.html").exists():  # a build, even a killed one, lists its files before writing them
        raise UsageError(str(folder), "has an index.html that no build wrote", "remove it, or name another --out")
    new: Kept = {}
    due = []
    for page in pages:
        if all(_is_current(folder, path, page.key, old) for path in page.paths):
            new.update((path, old[path]) for path in page.paths)
        else:
            due.append(page)
    try:
        for name in {path.rpartition("/")[0] for page in due for path in page.paths}:
            (folder / name).mkdir(parents=True, exist_ok=True)
        if begun := {path: _UNFINISHED for page in due for path in page.paths}:
            _keep(memory / _BEGUN, begun)
        new.update(_made(folder, due, old))
        gone = old.keys() - new.keys()
        for path in gone:
            (folder / path).unlink(missing_ok=True)
        if new != old:
            _keep(memory / _LIST, new)
        (memory / _BEGUN).unlink(missing_ok=True)
    except OSError as error:
        raise HarnessError(f"{error.filename or folder}: the site cannot be written ({error.strerror})") from error
    written = sum(new[path][1:] != old.get(path, ("",))[1:] for page in due for path in page.paths)
    return Written(written, len(new) - written, len(gone))


def _keep(file: Path, files: Kept) -> None:
    write_whole(file, to_json(files), replace=True)


def _kept(file: Path) -> Kept:
    with suppress(OSError, ValueError, TypeError):
        listed = json.loads(file.read_bytes())
        return {str(path): (str(k), int(size), str(digest)) for path, (k, size, digest) in listed.items()}
    return {}


def _is_current(folder: Path, path: str, page_key: str, old: Kept) -> bool:
    known = old.get(path)
    return known is not None and known[0] == page_key and _size(f"{folder}/{path}") == known[1]


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116 - called for every file of the site
    except OSError:
        return -1


def _made(folder: Path, due: Sequence[Page], old: Kept) -> Kept:
    """Render the pages that are due, and write those of their files that changed."""
    new: Kept = {}
    temporary = folder / f".{secrets.token_hex(8)}.partial"  # one name: a folder is slow to take in new ones
    for page in due:
        for path, content in page.make().items():
            digest = hashlib.sha256(content).hexdigest()[:32]
            known = old.get(path)
            if known is None or known[1:] != (len(content), digest) or _size(f"{folder}/{path}") != known[1]:
                _put(f"{folder}/{path}", content, temporary)
            new[path] = (page.key, len(content), digest)
    return new


def _put(path: str, content: bytes, temporary: Path) -> None:
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)  # noqa: PTH105 - called for every file of the site
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
