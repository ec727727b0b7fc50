"""Whose hand-in a folder or file is, by its name on a learning platform or elsewhere.

`handins` and `moments` ask. Trusted, over names that strangers chose. Moodle and Canvas append the owner's id, and
Canvas whether it came late: `Ada Lovelace_31415_assignsubmission_file`, `lovelaceada_LATE_31415_92653_softmax.py`.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from kernelmark.services.settings import name_from

_FORMS = tuple(
    re.compile(form, re.DOTALL | re.ASCII)
    for form in (
        r"(?P<late>)_(?P<id>\d+)_assignsubmission_.*",  # Moodle
        r"(?P<late>_LATE)?_(?P<id>\d+)_\d+_.*",  # Canvas: the owner's id, the file's id and the file's name
    )
)
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

    @classmethod
    def of(cls, text: str) -> Owner:
        """The owner of a folder with this name, or of a file with this name less its suffix."""
        for form in _FORMS:
            if found := form.search(text):
                return cls(text[: found.start()], found["id"], bool(found["late"]), form is _FORMS[0])
        return cls(text)

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


def authors_of(owners: Iterable[Owner]) -> dict[Owner, str]:
    """Each owner's name as an author; owners with different ids are different authors."""
    ids: dict[str, set[str]] = {}
    every = set(owners)
    for each in every:
        ids.setdefault(each.author, set()).add(each.id)
    return {each: each.author if len(ids[each.author]) == 1 else each.author_with_id for each in every}
