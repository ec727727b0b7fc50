"""A project as an object: its settings, files, problems and recorded verdicts. Trusted.

A program that grades for several projects has a `Project` for each, and the working directory does not matter. The
command line uses the project of the working directory.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from harness.errors import UsageError
from harness.files.outside import real
from harness.problem import Problem
from harness.verdict import Verdict
from kernelmark.project.problems import find_problem, problem_directories, refuse_without_project
from kernelmark.project.settings import FILE_NAME, PathSetting, Settings
from leaderboard.record.entry import VERDICT
from leaderboard.record.ledger import JsonlLedger


class Project:
    """A project. Its settings are read once, when it is made."""

    settings: Settings

    def __init__(self, root: str | Path) -> None:
        """
        Args:
            root: the project's folder: that of `kernelmark.toml`, or, without such a file, of `problems/`.

        Raises:
            UsageError: there is no project, or the folder is not its root.
            SettingsError: a setting is unknown or not valid.
        """
        self.settings = Settings.load(Path(root))
        if self.root != real(Path(root)):
            what = f"is not the root of a project: its {FILE_NAME} is in {self.root}"
            raise UsageError(str(root), what, "give that folder")
        refuse_without_project(self.settings)

    @classmethod
    def around(cls, folder: Path | None = None) -> Self:
        """The project that contains a folder, by default the working directory. If there is none, the folder is the
        root of a project with default settings.

        Raises:
            SettingsError: a setting is unknown or not valid.
        """
        return cls.of(Settings.load(folder))

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """The project with these settings, which need not be those of its file."""
        made = cls.__new__(cls)
        made.settings = settings
        return made

    def __repr__(self) -> str:
        return f"Project({str(self.root)!r})"

    @property
    def root(self) -> Path:
        """The absolute path of its folder."""
        return self.settings.root

    def locate(self, place: PathSetting) -> Path:
        """The absolute path of one of its folders or files, such as "problems", "results" or "board"."""
        return self.settings.locate(place)

    def problems(self) -> list[str]:
        """The slugs of its problems, in order."""
        return [directory.name for directory in problem_directories(self.settings)]

    def problem(self, slug: str) -> Problem:
        """One of its problems, loaded.

        Raises:
            UsageError: there is none; the message names the nearest slug.
            ProblemError: it is not valid.
        """
        return find_problem(self.settings, slug)

    def verdicts(self, slug: str) -> Iterator[Verdict]:
        """Every recorded verdict on a problem, oldest first, including runs that do not rank and those that a frozen
        board does not show yet.

        Raises:
            LedgerError: the ledger is broken.
        """
        ledger = JsonlLedger(self.locate("results") / f"{slug}.jsonl")
        return (entry.verdict for entry in ledger.read() if entry.kind == VERDICT)


def settings_for(project: Project | None, **flags: Any) -> Settings:
    """The settings of a project, by default that of the working directory, with all flags but None and "auto".

    Raises:
        UsageError: `project` is not a `Project`.
        SettingsError: a value is not valid.
    """
    chosen = {name: value for name, value in flags.items() if value != "auto"}
    if project is not None and not isinstance(project, Project):
        raise UsageError("project", f"{project!r} is not a Project", "give kernelmark.Project(FOLDER)")
    return Settings.load(**chosen) if project is None else project.settings.overridden(**chosen)
