"""Finds the sources of graded kernels by their hash: in the archive, else among the organizers' in `reference/`.

`inputs` calls it after checking that the problem's sources may be shown. The code is trusted; the sources are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import cache, lru_cache, partial
from pathlib import Path

from harness.errors import KernelmarkError
from harness.languages import LANGUAGES
from harness.submission import Submission
from harness.verdict import SubmissionId
from leaderboard.record.archive import listed, listing, stored
from leaderboard.record.fields import VerdictFields

_READ = 8  # sources in memory, for neighbouring pages


class Sources:
    """The archive, and the folder of the organizers' kernels, if there is one."""

    def __init__(self, archive: Path, reference: Path | None) -> None:
        self._archive = archive
        self._reference = reference
        self.of = lru_cache(_READ)(self._of)
        self._kernels = cache(self._read)  # every run of a problem looks among the same few files
        self._known = cache(self._listed)
        self._names = cache(partial(listing, archive))

    def _of(self, problem: str, submission: SubmissionId) -> dict[str, str] | None:
        """A submission's files by name, its own first; None if no file has its hash or one is not UTF-8."""
        with suppress(KernelmarkError, UnicodeDecodeError):
            return {name: content.decode() for name, content in stored(self._archive, problem, submission).files}
        found = self.kernel(problem, submission.sha256)
        return {submission.name: found.source.decode()} if found is not None else None

    def kernel(self, problem: str, sha256: str) -> Submission | None:
        """The organizers' kernel with this hash."""
        return self._kernels(problem).get(sha256)

    def archived(self, problem: str, author: str) -> frozenset[str]:
        """The names in the archive's folder of an author's runs on a problem, which is read once for all runs."""
        return self._names(problem, author)

    def mark(self, problem: str, line: VerdictFields) -> str:
        """Changes when a source appears or disappears, or an organizers' kernel does; no source is read for it."""
        there = listed(self.archived(problem, line.author), line.sha256, line.name)
        return f"{there} {self._known(problem)}"

    def _listed(self, problem: str) -> str:
        return str(sorted((kernel.name, sha256) for sha256, kernel in self._kernels(problem).items()))

    def _read(self, problem: str) -> Mapping[str, Submission]:
        if self._reference is None:
            return {}
        kernels = {}
        for file in sorted((self._reference / problem).glob("*")):
            with suppress(KernelmarkError):  # a kernel may have been graded although it cannot be read now
                if file.suffix[1:] in LANGUAGES:
                    kernel = Submission.read(file, "baseline")
                    kernels[kernel.sha256] = kernel
        return kernels
