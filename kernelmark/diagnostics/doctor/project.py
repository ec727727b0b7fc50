"""Checks that the project's problems load, and that its ledgers are intact."""

from __future__ import annotations

from collections.abc import Iterator

from harness.errors import KernelmarkError, nearest
from harness.problem.load import private_files
from kernelmark.diagnostics.doctor.diagnostic import Diagnostic
from kernelmark.project.problems import find_problem, is_project, private_folder, problem_directories
from kernelmark.project.settings import FILE_NAME, Settings
from kernelmark.text.terminal import counted
from leaderboard.record.ledger import JsonlLedger

NO_PROJECT = "no project was found here"


def problems(settings: Settings) -> Iterator[Diagnostic]:
    """Whether each problem of the project loads, with its private cases, and each announcement is about one."""
    directories = problem_directories(settings)
    if settings.private_cases is not None:
        yield private_cases(settings, {directory.name for directory in directories})
    if not is_project(settings):
        what = f"{NO_PROJECT}: there is no {FILE_NAME} in {settings.root} or above it"
        yield Diagnostic("warn", "problems", what, "change to a project, or make one with `kernelmark init`")
    elif not directories:
        where = str(settings.locate("problems"))
        remedy = "`kernelmark problems new` makes one; the setting `problems` says where they are"
        yield Diagnostic("warn", "problems", f"none under {where}", remedy)
    for directory in directories:
        check = f"problem {directory.name}"
        try:
            private = find_problem(settings, directory, final=True).private
        except KernelmarkError as error:
            yield Diagnostic("fail", check, str(error))
        else:
            final = f", {private.final} of them final" if private and private.final else ""
            text = f"loads, with {counted(private.cases, 'private case')}{final}" if private else "loads"
            yield Diagnostic("ok", check, text, part_of="problems")
    known = [directory.name for directory in directories]
    for slug in sorted({notice.problem for notice in settings.announcements if notice.problem} - {*known}):
        yield Diagnostic("warn", "announcements", f"one is about {slug}: no such problem", nearest(slug, known))


def private_cases(settings: Settings, slugs: set[str]) -> Diagnostic:
    """Whether the folder of private cases exists, only its owner can read it, and each file belongs to a problem."""
    try:
        folder = private_folder(settings)
        assert folder is not None
        open_to_others = [path for path in (folder, *folder.glob("*.toml")) if path.stat().st_mode & 0o077]
        known = {path.name for slug in slugs for path in private_files(folder, slug)}
        unknown = sorted(path.name for path in folder.iterdir() if path.suffix == ".toml" and path.name not in known)
    except KernelmarkError as error:
        return Diagnostic("fail", "private cases", str(error))
    except OSError as error:
        return Diagnostic("fail", "private cases", f"{error.filename} cannot be read ({error.strerror})")
    if unknown:
        return Diagnostic(
            "warn", "private cases", f"{folder}: {', '.join(unknown)}: no such problem", "rename or remove it"
        )
    if open_to_others:
        path = open_to_others[0]
        return Diagnostic("warn", "private cases", f"others have rights on {path}", f"chmod -R go= {folder}")
    return Diagnostic("ok", "private cases", str(folder))


def ledgers(settings: Settings) -> Iterator[Diagnostic]:
    """Whether each ledger's chain is intact."""
    for path in sorted(settings.locate("results").glob("*.jsonl")):
        check = f"ledger {path.stem}"
        try:
            JsonlLedger(path).verify()
        except KernelmarkError as error:
            yield Diagnostic("fail", check, str(error))
        else:
            yield Diagnostic("ok", check, "its chain is intact", part_of="ledgers")
