"""The page of a run's profile, with whole flame graphs and long texts in files next to it. Trusted; pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness.errors import HarnessError
from leaderboard.publishing.site import paths, profiles
from leaderboard.publishing.site.book import Book
from leaderboard.publishing.site.document import ProfileDocument
from leaderboard.publishing.site.folder import Files, Page
from leaderboard.publishing.site.inputs import Kind, ShownProfile, Site
from leaderboard.publishing.site.pages.run import launched
from leaderboard.record.profile import StoredProfile

# Together below 300 KB.
_FLAMES, _FLAME_BYTES = 3, 32_000
_ROWS_BYTES, _TABLE_BYTES, _FILE_BYTES = 30_000, 60_000, 60_000
_MISSING, _KERNELS = 15, 60


def pages(site: Site) -> Iterator[Page]:
    for book in site.books:
        for run in book.runs:
            profiled = site.profiles.get(run)
            if profiled is not None and profiled.digest:
                yield _page(site, book, run, profiled)


def _page(site: Site, book: Book, run: str, profiled: ShownProfile) -> Page:
    path, line, problem = paths.profile(run), book.runs[run], book.problem

    def read() -> StoredProfile:
        found = site.profile(book, run)
        if found is None:
            raise HarnessError(f"the profile of run {run} was removed while the site was built", "build it again")
        return found

    def make() -> tuple[ProfileDocument, dict[str, Any]]:
        profile, verdict = read(), book.verdict(line)
        document = ProfileDocument(problem=problem, author=line.author, submission=line.name, profile=profile)
        return document, {
            "device": verdict.environment.device_name,
            "kernels": [kernel for kernel in launched(verdict) if kernel.case == profile.case][:_KERNELS],
            "flames": [
                (name, profiles.flame(profile, name, max_bytes=_FLAME_BYTES, style=False) if at < _FLAMES else "")
                for at, name in enumerate(profile.stacks)
            ],
            "memories": profiles.memories(profile),
            "tables": profiles.tables(profile, _ROWS_BYTES),
            "texts": [
                ("tables", "Tables", *profiles.texts(profile, "tables", _TABLE_BYTES)),
                ("files", "Files", *profiles.texts(profile, "files", _FILE_BYTES)),
            ],
            "missing": profile.missing[:_MISSING],
        }

    page = site.page(path, "profile.html", (line.hash, profiled.digest, site.titles.get(problem, "")), make)
    beside = {paths.profile_part(run, kind, name): (kind, name) for kind, name in profiled.parts}

    def files() -> Files:
        profile = read()
        return {**page.make(), **{part: profiles.file(profile, *which) for part, which in beside.items()}}

    return Page((*page.paths, *beside), page.key, files)


KIND = Kind(pages, (ProfileDocument,))
