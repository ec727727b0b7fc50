"""Finds sources that are nearly the same, for an organizer to review; it takes no action.

`kernelmark similar` calls it, and `course.copies` shows its pairs. Trusted code over untrusted text, which is neither
parsed nor run: a regular expression splits a source into tokens, comments are dropped, and all identifiers and all
strings are made equal. The rest is compared as a set of token sequences (shingles; Broder 1997, "On the resemblance and
containment of documents"), so renaming, reformatting and moving functions change little.

High similarity is not proof: short kernels for one problem look alike. Starting code that all participants received
can be excluded.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from harness.languages import LANGUAGES
from harness.submission import Submission
from harness.verdict import FrozenModel
from leaderboard.record.teams import NO_TEAMS, Teams

SHINGLE = 8  # tokens: all kernels in a language share shorter sequences
_C_WORDS = frozenset(
    """
    auto bool break case char class const constexpr continue default do double else enum extern float for goto if inline
    int long namespace new operator private public register restrict return short signed sizeof static struct switch
    template this typedef typename union unsigned using void volatile while
    """.split()  # noqa: SIM905 - a list literal would be one word a line
)
# An unterminated string ends at the end of its line or file; otherwise each escaped quote would start another search.
_LONG = r"'{3}(?:\\.|[^\\])*?(?:'{3}|\Z)" + r'|"{3}(?:\\.|[^\\])*?(?:"{3}|\Z)'
_TEXT = _LONG + r"|'(?:\\.|[^'\\\n])*'?" + r'|"(?:\\.|[^"\\\n])*"?'
_REST = r"(?P<name>[^\W\d]\w*)|(?P<number>\d[\w.]*)|(?P<mark>[^\w\s])"
_PYTHON = re.compile(rf"(?P<comment>#[^\n]*)|(?P<text>{_TEXT})|{_REST}", re.DOTALL)
_C = re.compile(rf"(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))|(?P<text>{_TEXT})|{_REST}", re.DOTALL)


Shingle = tuple[str, ...]
_Person = tuple[str, str]  # the author, and the earlier course, empty for authors of today


class GradedFile(FrozenModel):
    """A submitted file with its other files, by its author and its first run."""

    author: str
    run: str
    """Empty if it is not on record."""
    name: str
    earlier: str = ""
    """The earlier course that it is from, for a file that new ones are compared with; empty for the new files."""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.earlier, self.author, self.run, self.name)))


class Pair(FrozenModel):
    """Two authors' files and their similarity, 0 to 1; 1 if they are the same except for names and comments."""

    similarity: float
    one: GradedFile
    other: GradedFile
    length: int = 0
    """How many sequences of eight tokens the shorter one has, less those of the starting code."""
    group: int = 1
    """People who are similar to each other, directly or through others, are in one group, counted from 1."""


def tokens(source: str, language: str) -> list[str]:
    """The tokens of a source, without comments and layout, and with identifiers and strings made equal."""
    return [text for text, _ in placed(source, language)]


def placed(source: str, language: str) -> list[tuple[str, tuple[int, int]]]:
    """The same tokens, each with the offsets of its beginning and end in the source."""
    python = LANGUAGES[language].words == "python"
    words = frozenset(keyword.kwlist) if python else _C_WORDS
    result = []
    for match in (_PYTHON if python else _C).finditer(source):
        text = match[0]
        if match.lastgroup == "name":
            text = text if text in words else "name"
        elif match.lastgroup == "text":
            text = '""'
        if match.lastgroup != "comment":
            result.append((text, match.span()))
    return result


def sequences(found: Sequence[str]) -> list[Shingle]:
    """All sequences of eight successive tokens, in order. Fewer tokens make one shorter sequence."""
    count = max(1, len(found) - SHINGLE + 1)
    return [tuple(found[start : start + SHINGLE]) for start in range(count)]


def shingles(submission: Submission) -> set[Shingle]:
    """The sequences of eight tokens of all its files."""
    texts = (content.decode("utf-8", "replace") for _, content in submission.files)
    return {sequence for text in texts for sequence in sequences(tokens(text, submission.language))}


def similar(
    submissions: Mapping[GradedFile, Submission],
    threshold: float,
    teams: Teams = NO_TEAMS,
    base: Iterable[Submission] = (),
) -> list[Pair]:
    """For every two people, the most similar pair of their files in one language, if it reaches the threshold.

    The most similar pairs come first. Sequences of the starting code `base` do not count. Not compared are files of one
    author or of one team, and earlier files with each other.
    """
    numbers: dict[Shingle, int] = {}  # one per shingle: sets of small integers are compared fastest
    starting = {(start.language, shingle) for start in base for shingle in shingles(start)}
    sets = {}
    for graded, submission in submissions.items():
        own = (shingle for shingle in shingles(submission) if (submission.language, shingle) not in starting)
        sets[graded] = {numbers.setdefault(shingle, len(numbers)) for shingle in own}
    best: dict[frozenset[_Person], Pair] = {}
    for one, other in combinations(sorted(sets, key=str), 2):
        first, second = submissions[one], submissions[other]
        few, many = sorted((len(sets[one]), len(sets[other])))
        people = frozenset((file.author, file.earlier) for file in (one, other))
        together = not (one.earlier or other.earlier) and teams.name_of(one.author) == teams.name_of(other.author)
        apart = not together and not (one.earlier and other.earlier) and first.language == second.language
        if not apart or not few or few < threshold * many:
            continue
        common = len(sets[one] & sets[other])
        similarity = common / (few + many - common)
        if similarity >= max(threshold, best[people].similarity if people in best else 0):
            best[people] = Pair(similarity=similarity, one=one, other=other, length=few)
    ordered = sorted(best.items(), key=lambda item: (-item[1].similarity, str(item[1].one), str(item[1].other)))
    groups = _groups([people for people, _ in ordered])
    return [pair.model_copy(update={"group": groups[people]}) for people, pair in ordered]


def _groups(pairs: Sequence[frozenset[_Person]]) -> dict[frozenset[_Person], int]:
    """The group of each pair, counted from 1: pairs with a person in common are in one group."""
    together: list[set[_Person]] = []
    for people in pairs:
        joined = [group for group in together if group & people]
        first = joined[0] if joined else set[_Person]()
        first |= people.union(*joined)
        together = [group for group in together if group not in joined[1:]] + ([] if joined else [first])
    return {people: next(n for n, group in enumerate(together, 1) if people <= group) for people in pairs}
