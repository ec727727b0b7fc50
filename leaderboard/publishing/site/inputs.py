"""Everything that a site is made from, and everything that its pages share.

`kernelmark` fills `SiteInputs`; `build` makes a `Site` from it, which the modules in `pages` read. Trusted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment

from harness.errors import HarnessError
from harness.submission import Submission
from harness.verdict import FrozenModel, SubmissionId
from harness.verdict.roofline import Calibration
from leaderboard.publishing.site import boards, markup, paths
from leaderboard.publishing.site.book import Book
from leaderboard.publishing.site.folder import Files, Page, key
from leaderboard.publishing.site.sources import Sources
from leaderboard.publishing.site.statement import Statement
from leaderboard.record.current import Current
from leaderboard.record.fields import VerdictFields
from leaderboard.record.index import Index
from leaderboard.record.profile import StoredProfile, profile_name, stored_profile
from leaderboard.record.teams import NO_TEAMS, Teams
from leaderboard.standings.notice import Notice
from leaderboard.standings.visibility import Rule


@dataclass(frozen=True)
class SiteInputs:
    """The inputs of a build. `now` decides which problems are closed and which sources are shown, and is on no page."""

    ledgers: tuple[Path, ...]
    archive: Path
    archive_name: str
    """The archive's path, relative to the project's root, for the commands on pages."""
    now: datetime
    current: Current
    """The current problems, protocol and software, by which rows are marked as stale."""
    statements: tuple[Statement, ...] = ()
    calibrations: tuple[Calibration, ...] = ()
    reference: Path | None = None
    """The organizers' kernels, in a folder for each problem."""
    reference_name: str = "reference"
    """Its path, relative to the project's root."""
    url: str = ""
    """Where the site will be published, ending in a slash; empty if that is not known."""
    teams: Teams = NO_TEAMS
    title: str = ""
    """The name of the course or competition; empty if it has none of its own."""
    how_to_submit: str = ""
    """A line about submitting, which a problem's page has in place of the command; empty for the command."""
    phase: str = ""
    """The phase that the competition is in; empty if it has none."""
    announcements: tuple[Notice, ...] = ()
    """Newest first."""
    index: Index = field(default_factory=Index)
    """The index of the ledgers."""

    @property
    def name(self) -> str:
        """The name of the site."""
        return self.title or "kernelmark"


class ShownProfile(NamedTuple):
    """The facts about a run's profile that pages need before they are made: its hash, and its parts by kind and name.

    There are no parts if it cannot be read.
    """

    digest: str
    parts: tuple[tuple[str, str], ...]


class Link(NamedTuple):
    """A page by its path in the site's folder and the words of a link to it."""

    path: str
    words: str


@dataclass(frozen=True)
class Site:
    """Everything that pages may read: the inputs, the ledgers, and the version of the code."""

    material: SiteInputs
    books: tuple[Book, ...]
    version: str
    runs: frozenset[str]
    """The runs that have a page."""
    problems: tuple[Statement, ...]
    """The problems that have a page, in order of their slugs, with those that exist only in a ledger any more."""
    menu: tuple[Link, ...]
    compiled: Path
    """The folder of compiled templates."""

    @cached_property
    def titles(self) -> Mapping[str, str]:
        return {statement.slug: statement.title for statement in self.problems}

    @cached_property
    def _hidden(self) -> Mapping[str, str]:
        return {statement.slug: statement.rule.hidden(self.material.now) for statement in self.problems}

    def hidden(self, problem: str) -> str:
        """Why a problem's sources may not be shown now; empty if they may."""
        known = self._hidden.get(problem)
        return Rule(problem=problem).hidden(self.material.now) if known is None else known

    @cached_property
    def _sources(self) -> Sources:
        return Sources(self.material.archive, self.material.reference)

    def sources(self, problem: str, submission: SubmissionId) -> dict[str, str] | None:
        """A submission's files by name, its own first; None if they may not be shown or were not found."""
        return None if self.hidden(problem) else self._sources.of(problem, submission)

    def kernel(self, problem: str, sha256: str) -> Submission | None:
        """The organizers' kernel with this hash; None if sources may not be shown or `reference/` does not have it."""
        return None if self.hidden(problem) else self._sources.kernel(problem, sha256)

    def closed(self, statement: Statement) -> str:
        """A text that says since when a problem accepts no submissions; empty if it still does."""
        rule, now = statement.rule, self.material.now
        return rule.schedule_at(now) if rule.closed(now) else ""

    @cached_property
    def stands(self) -> Mapping[str, tuple[boards.Stand, ...]]:
        """By problem: the runs that have a page but are not on a board, with the row that counts instead."""
        return {book.problem: tuple(boards.stands(book, self.material.teams)) for book in self.books}

    def source_mark(self, problem: str, line: VerdictFields) -> str:
        """Whether and where a run's source is found, as part of the page's key."""
        return "" if self.hidden(problem) else self._sources.mark(problem, line)

    def profile(self, book: Book, run: str) -> StoredProfile | None:
        """A run's profile; None if it has none, or if its source, which the profile quotes, is not shown.

        Raises:
            HarnessError: it is there, and cannot be read.
        """
        problem, line = book.problem, book.runs[run]
        if self.hidden(problem) or profile_name(run) not in self._sources.archived(problem, line.author):
            return None
        submission = book.verdict(line).submission
        found = stored_profile(self.material.archive, problem, submission, run)
        return found if found is not None and self.sources(problem, submission) is not None else None

    @cached_property
    def profiles(self) -> Mapping[str, ShownProfile]:
        """The profiles that may be shown, by run."""
        made = {}
        for book in self.books:
            for run in book.runs:
                try:
                    found = self.profile(book, run)
                except HarnessError:
                    made[run] = ShownProfile("", ())
                    continue
                if found is not None:
                    kinds = {"stacks": found.stacks, "tables": found.tables, "files": found.files}
                    parts = tuple((kind, name) for kind, section in kinds.items() for name in section)
                    made[run] = ShownProfile(key(found.model_dump_json()), parts)
        return made

    @cached_property
    def _shared_key(self) -> tuple[str, ...]:
        return self.version, self.material.url, self.material.title

    def page(
        self, path: str, template: str, key_parts: Iterable[str], make: Callable[[], tuple[FrozenModel, Any]]
    ) -> Page:
        """A page and its JSON; `make` returns the document, and the template's other values."""
        made_from = key(*self._shared_key, path, *key_parts)
        return Page((path, paths.document(path)), made_from, partial(self._files, path, template, make))

    def _files(self, path: str, template: str, make: Callable[[], tuple[FrozenModel, Any]]) -> Files:
        document, values = make()
        html = self.rendered(template, path, page=document, **values)
        return {path: html, paths.document(path): published(document, path)}

    def rendered(self, template: str, path: str, **values: Any) -> bytes:
        """A template as the page at `path`."""
        text = self._templates[paths.root(path)].get_template(template).render(path=path, **values)
        return text.encode("utf-8", "backslashreplace")

    @cached_property
    def _templates(self) -> Mapping[str, Environment]:
        """The templates of pages in the site's folder, and of those in folders there, by the path from page to site.

        A macro is made once for each environment. If macros had a page's context, each page would make its own.
        """
        shared = {"titles": self.titles, "runs": self.runs, "menu": self.menu}
        names = {"site_url": self.material.url, "site_name": self.material.name, "course": self.material.title}
        return {root: markup.templates(self.compiled, root=root, **shared, **names) for root in ("", "../")}


class Kind(NamedTuple):
    """One kind of page: a module of `pages`."""

    pages: Callable[[Site], Iterator[Page]]
    documents: tuple[type[FrozenModel], ...]
    """The data of its pages, whose JSON schemas are published."""
    menu: tuple[Link, ...] = ()
    """Its links at the top of every page."""


def published(document: FrozenModel, path: str) -> bytes:
    """A document as published JSON, beginning with the address of its schema."""
    schema = json.dumps(f"{paths.root(path)}schema/{type(document).model_fields['kind'].default}.json")
    return f'{{"$schema":{schema},{document.model_dump_json(exclude_none=True)[1:]}\n'.encode()
