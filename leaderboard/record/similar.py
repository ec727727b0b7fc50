"""Finds sources that are nearly the same, for an organizer to review; it takes no action.

`kernelmark similar` calls it. Trusted code over untrusted text, which is neither parsed nor run: a regular expression
splits a source into tokens, comments are dropped, and all identifiers and all strings are made equal. The rest is
compared as a set of token sequences (shingles; Broder 1997, "On the resemblance and containment of documents"), so
renaming, reformatting and moving functions change little.

High similarity is not proof: short kernels for one problem look alike, and many start from one published example.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping
from itertools import combinations

from harness.languages import LANGUAGES
from harness.submission import Submission
from harness.verdict import Record
from leaderboard.record.teams import NO_TEAMS, Teams

_SHINGLE = 8  # tokens: all kernels in a language share shorter sequences
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


class GradedFile(Record):
    """A submitted file with those beside it, by its author and its first run."""

    author: str
    run: str
    name: str

    def __str__(self) -> str:
        return f"{self.author} {self.run} {self.name}"


class Pair(Record):
    """Two authors' files and their similarity, 0 to 1; 1 if they are the same except for names and comments."""

    similarity: float
    one: GradedFile
    other: GradedFile


def tokens(source: str, language: str) -> list[str]:
    """The tokens of a source, without comments and layout, and with identifiers and strings made equal."""
    python = LANGUAGES[language].words == "python"
    words = frozenset(keyword.kwlist) if python else _C_WORDS
    result = []
    for match in (_PYTHON if python else _C).finditer(source):
        text = match[0]
        if match.lastgroup == "name":
            result.append(text if text in words else "name")
        elif match.lastgroup == "text":
            result.append('""')
        elif match.lastgroup != "comment":
            result.append(text)
    return result


def shingles(source: str, language: str) -> frozenset[tuple[str, ...]]:
    """All sequences of eight tokens; a shorter source is one sequence."""
    all_tokens = tokens(source, language)
    count = max(1, len(all_tokens) - _SHINGLE + 1)
    return frozenset(tuple(all_tokens[start : start + _SHINGLE]) for start in range(count))


def similar(submissions: Mapping[GradedFile, Submission], threshold: float, teams: Teams = NO_TEAMS) -> list[Pair]:
    """Pairs of different authors' files in one language at or above the threshold, most similar first.

    An author's own versions are not compared, and neither are those of one team.
    """
    numbers: dict[tuple[str, ...], int] = {}  # one per shingle: sets of small integers are compared fastest
    sets = {}
    for graded, submission in submissions.items():
        texts = (content.decode("utf-8", "replace") for _, content in submission.files)
        own = frozenset[tuple[str, ...]]().union(*(shingles(text, submission.language) for text in texts))
        sets[graded] = {numbers.setdefault(shingle, len(numbers)) for shingle in own}
    pairs = []
    for one, other in combinations(sorted(sets, key=str), 2):
        first, second = submissions[one], submissions[other]
        few, many = sorted((len(sets[one]), len(sets[other])))
        together = teams.name_of(first.author) == teams.name_of(second.author)
        if together or first.language != second.language or few < threshold * many:
            continue
        common = len(sets[one] & sets[other])
        similarity = common / (few + many - common)
        if similarity >= threshold:
            pairs.append(Pair(similarity=similarity, one=one, other=other))
    return sorted(pairs, key=lambda pair: (-pair.similarity, str(pair.one), str(pair.other)))
