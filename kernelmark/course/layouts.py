"""Finds the owner of files for which that needs more than their own names.

`submissions` calls it. Trusted, over names that strangers chose. `owner` reads what Moodle and Canvas append to single
names. This module handles the submission list of Gradescope, attempts on Blackboard, clones of GitHub Classroom, and
groups of Moodle. `submissions` refuses all other layouts.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import PurePosixPath

from harness.files import outside
from kernelmark.course.files import CourseFile
from kernelmark.course.owner import Owner, attempt, authors_of
from kernelmark.course.roster import Person, Roster
from kernelmark.text.terminal import say, visible
from leaderboard.record.teams import Teams

_GRADESCOPE = "submission_metadata.yml"
_SUBMITTED = re.compile(r"(submission_\d+):")
_SUBMITTER = re.compile(r" *(?P<first>- )?:(?P<key>name|sid|email):(?P<value>.*)")
_CLASSROOM = "-submissions"  # GitHub Classroom appends this to the assignment, to name the folder with the clones
_SHOWN = 3


def arranged(files: list[CourseFile], folder: str, roster: Roster, teams: Teams) -> tuple[list[CourseFile], Roster]:
    """Remove the folders that contain all files, and set the owner of each file.

    `folder` is the name of the folder or archive. Returns the files and the roster, with the people whom the platform
    names in addition.
    """
    while (unwrapped := _unwrapped(files)) is not None:
        folder, files = unwrapped
    clones = [file.path.parts[0] for file in files if file.path.name == ".git" and len(file.path.parts) == 2]
    files = [replace(file, path=file.path.parent) if file.path.name == ".git" else file for file in files]
    files = [file for file in files if file.path.parts]
    if sheet := next((file for file in files if str(file.path) == _GRADESCOPE), None):
        return _of_gradescope([file for file in files if file is not sheet], _submitters(sheet), roster, teams)
    return _without_groups(_newest(_of_classroom(files, clones, folder))), roster


def _unwrapped(files: list[CourseFile]) -> tuple[str, list[CourseFile]] | None:
    """The folder that contains everything, and the files in it; None if there is no such folder."""
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


def _submitters(sheet: CourseFile) -> dict[str, list[Owner]]:
    """The submitters of each of Gradescope's folders. Its YAML always has this shape, so it is read line by line."""
    found: dict[str, list[Owner]] = {}
    own: list[Owner] = []
    for line in sheet.read(outside.TEXT_BYTES).decode(errors="replace").splitlines():
        if start := _SUBMITTED.match(line):
            own = found.setdefault(start[1], [])
        elif field := _SUBMITTER.fullmatch(line):
            value = field["value"].strip().strip("'\"")
            if field["first"]:
                own.append(Owner(""))
            if own and field["key"] == "name":
                own[-1] = replace(own[-1], name=value)
            elif own and value and (field["key"] == "sid" or not own[-1].id):
                own[-1] = replace(own[-1], id=value)
    return found


def _of_gradescope(
    files: list[CourseFile], submitters: dict[str, list[Owner]], roster: Roster, teams: Teams
) -> tuple[list[CourseFile], Roster]:
    """The files with their submitters, and the roster with each group of submitters as a team."""
    whose = {folder: owners[0] for folder, owners in submitters.items() if owners}
    authors = authors_of(owner for owners in submitters.values() for owner in owners)
    grouped: dict[str, Person] = {}
    for folder, owners in submitters.items():
        members = [roster.of(owner) or Person(authors[owner], owner) for owner in owners]
        in_team = any(member.team or teams.of(member.author) or member.author in grouped for member in members)
        if len(members) > 1 and not in_team:
            grouped |= {member.author: replace(member, team=folder) for member in members}
    known = [grouped.pop(person.author, person) for person in roster.people]
    owned = [replace(file, whose=whose.get(file.path.parts[0])) for file in files]
    return owned, Roster((*known, *grouped.values()))


def _of_classroom(files: list[CourseFile], clones: list[str], folder: str) -> list[CourseFile]:
    """Set the owners of clones, whose names are the assignment's name and the account."""
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


def _newest(files: list[CourseFile]) -> list[CourseFile]:
    """Keep only the newest of several attempts on Blackboard."""
    last: dict[str, str] = {}
    for file in files:
        when = attempt(file.path.name)
        last[file.owner.id] = max(when, last.get(file.owner.id, ""))
    kept = [file for file in files if attempt(file.path.name) in ("", last[file.owner.id])]
    if len(kept) < len(files):
        say("kernelmark: note: of several attempts on Blackboard the newest counts")
    return kept


def _without_groups(files: list[CourseFile]) -> list[CourseFile]:
    """Remove the group that Moodle puts before names: `Group A-Ada Lovelace_31415_…`."""
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
