"""Writes the site's folder incrementally: only changed pages are rendered and written, and obsolete files are removed.

`build` calls it. Trusted. A page has a *key*, the hash of everything that it is made from; a page whose key has not
changed is not rendered again. The list of written files is kept next to the folder, so it is never published. Files
appear complete, but are not synced to disk, since a site can be rebuilt: a file that does not have the written size, as
after a power cut, is rendered again.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

from pydantic_core import to_json

from harness.errors import HarnessError, UsageError
from leaderboard.record.durable import write_whole

_LIST, _BEGUN = "written.json", "begun.txt"

Files = Mapping[str, bytes]
KeptFiles = dict[str, tuple[str, int, str]]  # path: key, size, hash
_UNFINISHED = ("", -1, "")  # of files listed before they are written, so that a killed build leaves no unlisted file


class Page(NamedTuple):
    """Files that are rendered together: their paths, the hash of everything they are made from, and a function."""

    paths: tuple[str, ...]
    key: str
    make: Callable[[], Files]


class Written(NamedTuple):
    """The number of files that a build wrote, left unchanged and removed."""

    written: int
    unchanged: int
    removed: int


def key(*parts: str) -> str:
    """The hash of everything that a page is made from."""
    joined = "".join([f"{len(part)}:{part}" for part in parts])
    return hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def as_text(value: object) -> str:
    """A value as text, for a page's key: numbers, texts, records, and lists and dicts of them.

    `str` would take ten times as long, and a site has thousands of pages.
    """
    return to_json(value).decode()


def write(folder: Path, memory: Path, pages: Iterable[Page]) -> Written:
    """Make the folder hold these pages, and remove other files that an earlier build wrote.

    Raises:
        UsageError: the folder has an index.html that no build wrote.
        HarnessError: something cannot be written.
    """
    old = _kept(memory / _LIST) | dict.fromkeys(_begun(memory / _BEGUN), _UNFINISHED)
    if not old and (folder / "index.html").exists():  # a build, even a killed one, lists its files before writing them
        raise UsageError(str(folder), "has an index.html that no build wrote", "remove it, or name another --out")
    root, new, due = f"{folder}/", KeptFiles(), KeptFiles()
    temporary = folder / f".{secrets.token_hex(8)}.partial"  # one name: a folder is slow to take in new ones
    make_folder = cache(lambda path: (folder / path).mkdir(parents=True, exist_ok=True))
    try:
        with ExitStack() as opened:
            begun = cache(lambda: opened.enter_context((memory / _BEGUN).open("a", encoding="ascii", buffering=1)))
            for page in pages:
                if _is_current(root, page, old):
                    for path in page.paths:
                        new[path] = old[path]
                    continue
                begun().write("".join([f"{path}\n" for path in page.paths]))
                for path in page.paths:
                    make_folder(path.rpartition("/")[0])
                due.update(_made(root, page, old, temporary))
        new |= due
        gone = old.keys() - new.keys()
        for path in gone:
            (folder / path).unlink(missing_ok=True)
        if new != old:
            write_whole(memory / _LIST, to_json(new), replace=True)
        (memory / _BEGUN).unlink(missing_ok=True)
    except OSError as error:
        raise HarnessError(f"{error.filename or folder}: the site cannot be written ({error.strerror})") from error
    written = sum(now[1:] != old.get(path, _UNFINISHED)[1:] for path, now in due.items())
    return Written(written, len(new) - written, len(gone))


def _kept(file: Path) -> KeptFiles:
    with suppress(OSError, ValueError, TypeError):
        listed = json.loads(file.read_bytes())
        return {str(path): (str(k), int(size), str(digest)) for path, (k, size, digest) in listed.items()}
    return {}


def _begun(file: Path) -> list[str]:
    """The files that a killed build was about to write."""
    with suppress(OSError, ValueError):
        return file.read_text("ascii").split("\n")[:-1]  # without a path that is incomplete
    return []


def _is_current(root: str, page: Page, old: KeptFiles) -> bool:
    for path in page.paths:
        known, size, _ = old.get(path, _UNFINISHED)
        if known != page.key or _size(root + path) != size:
            return False
    return True


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116 - called for every file of the site
    except OSError:
        return -1


def _made(root: str, page: Page, old: KeptFiles, temporary: Path) -> KeptFiles:
    """Render a page, and write those of its files that changed."""
    new: KeptFiles = {}
    for path, content in page.make().items():
        digest = hashlib.sha256(content).hexdigest()[:32]
        known = old.get(path, _UNFINISHED)
        if known[1:] != (len(content), digest) or _size(root + path) != known[1]:
            _put(root + path, content, temporary)
        new[path] = (page.key, len(content), digest)
    return new


def _put(path: str, content: bytes, temporary: Path) -> None:
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)  # noqa: PTH105 - called for every file of the site
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
