"""The owner of a folder or file by its name, for example on a learning platform, and the person in a row of a sheet.

Trusted, over names that strangers chose. Moodle and Canvas append the owner's id, and Canvas also whether it was late:
`Ada Lovelace_31415_assignsubmission_file`, `lovelaceada_LATE_31415_92653_softmax.py`. On Blackboard the account follows
the assignment: `Homework 1_ada_attempt_2026-11-30-23-50-11_softmax.py`.
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
# The account after the assignment, the time, and the file's name, which is absent for the text of an attempt.
_BLACKBOARD = re.compile(r"_(?P<id>[^_]+)_attempt_(?P<when>\d{4}(?:-\d\d){5})(?:_|\.txt$|$)", re.ASCII)
_NAMES = ("name", "full name", "student", "student name", "user name")  # columns of sheets
_IDS = ("id", "identifier", "sid", "user id", "user_id")
_PARTICIPANT = "Participant "  # Moodle's worksheet has this before an id
_LONGEST_FILE = 255  # the most bytes in the name of a file


@dataclass(frozen=True)
class Owner:
    """A person's name and id on the platform; the id is empty if it is unknown."""

    name: str
    id: str = ""
    marked_late: bool = False
    """Whether the platform marked the submission as late in its name, as Canvas does."""
    by_moodle: bool = False
    """Whether Moodle made the name. It imports feedback from files with such names."""
    ids: tuple[str, ...] = ()
    """The ids of several people, if the name contains more than one: then the owner is unknown."""

    @classmethod
    def of(cls, text: str, *, is_folder: bool = False) -> Owner:
        """The owner of a folder with this name, or of a file with this name without its suffix.

        A platform appends its part to the name of a folder, after the student's name. In the name of a file it is
        between the student's name and the name of the student's file; either may look like such a part.
        """
        moodle = list(_MOODLE.finditer(text))
        canvas = _CANVAS.search(text)
        if is_folder and moodle:
            found = moodle[-1]
        else:
            matches = [*moodle, *filter(None, (canvas, _BLACKBOARD.search(text)))]
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
        """The file name by which Moodle recognizes feedback; empty if Moodle did not make the owner's name, or the file
        name is not valid.
        """
        name = f"{self.name}_{self.id}_assignfeedback_file_feedback.txt"
        usable = self.by_moodle and name.isprintable() and len(name.encode()) <= _LONGEST_FILE
        return name if usable else ""

    @property
    def full_name(self) -> str:
        """The name, in one form where Unicode has several."""
        return unicodedata.normalize("NFC", self.name.strip())

    @property
    def author(self) -> str:
        """The name reduced to a valid author's name; if nothing is left, the id or a part of a hash."""
        name = self.full_name
        digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()
        return name_from(name) or name_from(self.id) or (f"author-{digest[:8]}" if name else "anonymous")

    @property
    def author_with_id(self) -> str:
        """The author's name with the id, for use if others have the same name."""
        return name_from(f"{self.author[:40]}-{self.id}") if self.id not in ("", self.author) else self.author


def whose(cells: Mapping[str, str]) -> tuple[str, Owner]:
    """The person in a row of a sheet: the author's name, if there is one, and the name and id on the platform."""
    name, own_id = (next((cells[key] for key in keys if cells.get(key)), "") for keys in (_NAMES, _IDS))
    name = name or f"{cells.get('first name', '')} {cells.get('last name', '')}".strip()
    return cells.get("author", ""), Owner(name, own_id.removeprefix(_PARTICIPANT))


def own_name(text: str) -> str:
    """The name that a student gave a file, without the part that a platform put before it."""
    matches = [found for pattern in (_MOODLE, _CANVAS, _BLACKBOARD) if (found := pattern.search(text))]
    first = min(matches, key=lambda match: match.start(), default=None)
    return text if first is None else text[first.end() :].removeprefix("file_") or text


def attempt(text: str) -> str:
    """When a file was submitted on Blackboard, by its name; "" for other files."""
    found = _BLACKBOARD.search(text)
    return found["when"] if found else ""


def authors_of(owners: Iterable[Owner], teams: Collection[str] = ()) -> dict[Owner, str]:
    """The author's name of each owner. Owners with different ids are different authors, and nobody with an id gets the
    name of a team.

    A name that ends in an id belongs to the person with this id on the platform. Somebody else with this name gets a
    part of a hash in addition; all others keep their names.
    """
    ids: dict[str, set[str]] = {name: {""} for name in teams}
    every = set(owners)
    for owner in every:
        ids.setdefault(owner.author, set()).add(owner.id)
    authors = {owner: owner.author if len(ids[owner.author]) == 1 else owner.author_with_id for owner in every}
    by_id = {author: owner.id for owner, author in authors.items() if author != owner.author or author == owner.id}
    return {
        owner: author if by_id.get(author, owner.id) == owner.id else with_hash(owner, author)
        for owner, author in authors.items()
    }


def with_hash(owner: Owner, author: str) -> str:
    """A unique author's name, for an owner whose own one belongs to somebody else."""
    digest = hashlib.sha256(f"{owner.full_name}_{owner.id}".encode(errors="surrogatepass")).hexdigest()
    return f"{author[:50]}-{digest[:8]}"
