"""Whose submission a folder or file is, by its name on a learning platform or elsewhere, and whom a sheet's row means.

`submissions` and `moments` ask. Trusted, over names that strangers chose. Moodle and Canvas append the owner's id, and
Canvas whether it came late: `Ada Lovelace_31415_assignsubmission_file`, `lovelaceada_LATE_31415_92653_softmax.py`. On
Blackboard the account follows the assignment: `Homework 1_ada_attempt_2026-11-30-23-50-11_softmax.py`.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from kernelmark.project.settings import name_from

_MOODLE = re.compile(r"(?P<late>)_(?P<id>\d+)_assignsubmission_", re.ASCII)
_CANVAS = re.compile(r"(?P<late>_LATE)?_(?P<id>\d+)_\d+_", re.ASCII)  # the owner's id, the file's id, the file's name
# The account after the assignment, when it was handed in, and the file's name, which the text of an attempt lacks.
_BLACKBOARD = re.compile(r"_(?P<id>[^_]+)_attempt_(?P<when>\d{4}(?:-\d\d){5})(?:_|\.txt$|$)", re.ASCII)
_NAMES = ("name", "full name", "student", "student name", "user name")  # columns of sheets
_IDS = ("id", "identifier", "sid", "user id", "user_id")
_PARTICIPANT = "Participant "  # what Moodle's worksheet puts before an id
_LONGEST_FILE = 255  # bytes in the name of a file


@dataclass(frozen=True)
class Owner:
    """Who handed something in: the name and the id that the platform has; the id is empty if the name holds none."""

    name: str
    id: str = ""
    marked_late: bool = False
    """Whether the platform says in the name that it came late, as Canvas does."""
    by_moodle: bool = False
    """Whether the name is one that Moodle made, which takes feedback back by such names."""
    ids: tuple[str, ...] = ()
    """The ids of several people, which the name holds: it cannot be known whose it is."""

    @classmethod
    def of(cls, text: str, *, is_folder: bool = False) -> Owner:
        """The owner of a folder with this name, or of a file with this name less its suffix.

        What the platform appends comes last in a folder's name, after the name that a student has there. In a file's
        it stands between that name and the one that the student gave the file: either may look like it.
        """
        moodle = list(_MOODLE.finditer(text))
        canvas = _CANVAS.search(text)
        if is_folder and moodle:
            found = moodle[-1]
        else:
            matches = [*moodle, *(one for one in (canvas, _BLACKBOARD.search(text)) if one)]
            if not matches:
                return cls(text)
            found = min(matches, key=lambda match: match.start())
            ids = dict.fromkeys([found["id"], *(match["id"] for match in moodle)])
            if len(ids) > 1:
                return cls(text, ids=tuple(ids))
        if found.re is _BLACKBOARD:
            return cls(found["id"], found["id"])
        return cls(text[: found.start()], found["id"], bool(found["late"]), found.re is _MOODLE)

    @property
    def feedback_file(self) -> str:
        """The name by which Moodle knows whose feedback a file is; empty if it made no name, or none that a file may
        have."""
        name = f"{self.name}_{self.id}_assignfeedback_file_feedback.txt"
        usable = self.by_moodle and name.isprintable() and len(name.encode()) <= _LONGEST_FILE
        return name if usable else ""

    @property
    def author(self) -> str:
        """The name reduced to one that an author may have; the id, or else a part of a hash, if nothing is left."""
        name = unicodedata.normalize("NFC", self.name.strip())
        digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()
        return name_from(name) or name_from(self.id) or (f"author-{digest[:8]}" if name else "anonymous")

    @property
    def author_with_id(self) -> str:
        """The author's name if others have the same."""
        return name_from(f"{self.author[:40]}-{self.id}") if self.id not in ("", self.author) else self.author


def whose(cells: Mapping[str, str]) -> tuple[str, Owner]:
    """Whom a row of a sheet is about: the name on the board, if it says so, and the name and the id as the platform
    has them.
    """
    name, own_id = (next((cells[key] for key in keys if cells.get(key)), "") for keys in (_NAMES, _IDS))
    name = name or f"{cells.get('first name', '')} {cells.get('last name', '')}".strip()
    return cells.get("author", ""), Owner(name, own_id.removeprefix(_PARTICIPANT))


def own_name(text: str) -> str:
    """The name that a student gave a file, without what a platform put before it."""
    matches = [found for pattern in (_MOODLE, _CANVAS, _BLACKBOARD) if (found := pattern.search(text))]
    first = min(matches, key=lambda match: match.start(), default=None)
    return text if first is None else text[first.end() :].removeprefix("file_") or text


def attempt(text: str) -> str:
    """When a file was handed in on Blackboard, by its name; "" if it is from elsewhere."""
    found = _BLACKBOARD.search(text)
    return found["when"] if found else ""


def authors_of(owners: Iterable[Owner], teams: Collection[str] = ()) -> dict[Owner, str]:
    """Each owner's name as an author; owners with different ids are different authors, and no one with an id has the
    name of one of these teams.

    A name with an id belongs to the person who has this id on the platform: someone else of that name gets a part of a
    hash in addition, and all others keep their names.
    """
    ids: dict[str, set[str]] = {name: {""} for name in teams}
    every = set(owners)
    for owner in every:
        ids.setdefault(owner.author, set()).add(owner.id)
    authors = {owner: owner.author if len(ids[owner.author]) == 1 else owner.author_with_id for owner in every}
    by_id = {author: owner.id for owner, author in authors.items() if author != owner.author or author == owner.id}
    return {
        owner: author if by_id.get(author, owner.id) == owner.id else told_apart(owner, author)
        for owner, author in authors.items()
    }


def told_apart(owner: Owner, author: str) -> str:
    """The name of an owner whose name as an author is that of somebody else."""
    digest = hashlib.sha256(f"{owner.name}_{owner.id}".encode(errors="surrogatepass")).hexdigest()
    return f"{author[:50]}-{digest[:8]}"
