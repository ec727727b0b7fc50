"""How a platform lays out what was handed in: whose each file is, where its name alone does not say it.

`submissions` asks. Trusted, over names that strangers chose. What Moodle and Canvas append is read from single names by
`owner`; here is what needs all of them: the list of Gradescope, attempts on Blackboard, clones of GitHub Classroom, and
groups of Moodle. `submissions` refuses what fits nothing.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import PurePosixPath

from harness.files import outside
from kernelmark.course.files import HandedInFile
from kernelmark.course.owner import Owner, attempt, authors_of
from kernelmark.course.roster import Person, Roster
from kernelmark.text.terminal import say, visible
from leaderboard.record.teams import Teams

_GRADESCOPE = "submission_metadata.yml"
_SUBMITTED = re.compile(r"(submission_\d+):")
_SUBMITTER = re.compile(r" *(?P<first>- )?:(?P<key>name|sid|email):(?P<value>.*)")
_CLASSROOM = "-submissions"  # what GitHub Classroom appends to an assignment, for the folder with the clones
_SHOWN = 3


def arranged(files: list[HandedInFile], folder: str, roster: Roster, teams: Teams) -> tuple[list[HandedInFile], Roster]:
    """The files without the folders around all of them, each with its owner, and the people of the roster with those
    whom a platform names besides. `folder` is the name of what holds the files.
    """
    while (unwrapped := _unwrapped(files)) is not None:
        folder, files = unwrapped
    clones = [file.path.parts[0] for file in files if file.path.name == ".git" and len(file.path.parts) == 2]
    files = [replace(file, path=file.path.parent) if file.path.name == ".git" else file for file in files]
    files = [file for file in files if file.path.parts]
    if sheet := next((file for file in files if str(file.path) == _GRADESCOPE), None):
        return _of_gradescope([file for file in files if file is not sheet], _submitters(sheet), roster, teams)
    return _without_groups(_newest(_of_classroom(files, clones, folder))), roster


def _unwrapped(files: list[HandedInFile]) -> tuple[str, list[HandedInFile]] | None:
    """The one folder that everything is in, and the files in it; None if there is no such folder."""
    tops = {file.path.parts[0] for file in files if len(file.path.parts) > 1 or file.language or file.is_archive}
    wrapper = next(iter(tops), "")
    is_clone = any(file.path == PurePosixPath(wrapper, ".git") for file in files)
    if len(tops) != 1 or is_clone or Owner.of(wrapper, is_folder=True).id:
        return None
    inside = [
        replace(file, path=file.path.relative_to(wrapper))
        for file in files
        if file.path.parents[-2:-1] == (PurePosixPath(wrapper),)
    ]
    several = sum(bool(file.language) or file.is_archive for file in inside) > 1 or wrapper.endswith(_CLASSROOM)
    deeper = (Owner.of(part, is_folder=True) for file in inside for part in file.path.parts[:-1])
    if not several and not any(file.owner.id for file in inside) and not any(owner.by_moodle for owner in deeper):
        return None  # an author's own folder
    return wrapper, inside + [file for file in files if file.path.parts[0] != wrapper]


def _submitters(sheet: HandedInFile) -> dict[str, list[Owner]]:
    """Who handed in each of Gradescope's folders; read by lines, since its YAML has no more than this shape."""
    found: dict[str, list[Owner]] = {}
    own: list[Owner] = []
    for line in sheet.read(outside.TEXT_BYTES).decode(errors="replace").splitlines():
        if start := _SUBMITTED.match(line):
            own = found.setdefault(start[1], [])
        elif said := _SUBMITTER.fullmatch(line):
            value = said["value"].strip().strip("'\"")
            if said["first"]:
                own.append(Owner(""))
            if own and said["key"] == "name":
                own[-1] = replace(own[-1], name=value)
            elif own and value and (said["key"] == "sid" or not own[-1].id):
                own[-1] = replace(own[-1], id=value)
    return found


def _of_gradescope(
    files: list[HandedInFile], submitters: dict[str, list[Owner]], roster: Roster, teams: Teams
) -> tuple[list[HandedInFile], Roster]:
    """The files with those who handed them in, and the roster with the groups in which they did, each as a team."""
    whose = {folder: owners[0] for folder, owners in submitters.items() if owners}
    authors = authors_of(owner for owners in submitters.values() for owner in owners)
    grouped: dict[str, Person] = {}
    for folder, owners in submitters.items():
        members = [roster.of(owner) or Person(authors[owner], owner) for owner in owners]
        alone = not any(one.team or teams.of(one.author) or one.author in grouped for one in members)
        if len(members) > 1 and alone:
            grouped |= {one.author: replace(one, team=folder) for one in members}
    known = [grouped.pop(person.author, person) for person in roster.people]
    owned = [replace(file, whose=whose.get(file.path.parts[0])) for file in files]
    return owned, Roster((*known, *grouped.values()))


def _of_classroom(files: list[HandedInFile], clones: list[str], folder: str) -> list[HandedInFile]:
    """Each clone is called like the assignment and the account."""
    names = [name for name in clones if not Owner.of(name, is_folder=True).id]
    prefix = folder.removesuffix(_CLASSROOM) + "-" if folder.endswith(_CLASSROOM) else ""
    if not prefix and len(names) > 1:
        common = os.path.commonprefix(names)  # noqa: RUF071 - of names, character by character
        prefix = common[: common.rfind("-") + 1]
    if not names or not prefix or not all(name.startswith(prefix) for name in names):
        return files
    say(f"kernelmark: note: clones of GitHub Classroom: {visible(prefix)} was left out of the authors' names")
    own = {name: Owner(name.removeprefix(prefix)) for name in names}
    return [replace(file, whose=own.get(file.path.parts[0])) for file in files]


def _newest(files: list[HandedInFile]) -> list[HandedInFile]:
    """Of several attempts on Blackboard the last that was handed in."""
    last: dict[str, str] = {}
    for file in files:
        when = attempt(file.path.name)
        last[file.owner.id] = max(when, last.get(file.owner.id, ""))
    kept = [file for file in files if attempt(file.path.name) in ("", last[file.owner.id])]
    if len(kept) < len(files):
        say("kernelmark: note: of several attempts on Blackboard the newest counts")
    return kept


def _without_groups(files: list[HandedInFile]) -> list[HandedInFile]:
    """Moodle's names without the group that it puts before them: `Group A-Ada Lovelace_31415_…`."""
    owners = {file.owner for file in files if file.owner.by_moodle}
    groups = Counter(owner.name.partition("-")[0] for owner in owners if "-" in owner.name)
    if not owners or sum(groups.values()) < len(owners) or min(groups.values()) < 2:
        return files
    say(f"kernelmark: note: groups of Moodle were left out of the authors' names: {visible(_some(groups))}")
    return [
        replace(file, whose=replace(file.owner, name=file.owner.name.partition("-")[2]))
        if file.owner.by_moodle
        else file
        for file in files
    ]


def _some(names: Iterable[str]) -> str:
    every = sorted(names)
    return ", ".join(every[:_SHOWN]) + (" …" if len(every) > _SHOWN else "")
