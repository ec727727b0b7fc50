"""Sources that are nearly the same, for an organizer to look at; nothing is ever done about them here.

`kernelmark similar` calls it. Trusted over untrusted text, of which nothing is parsed or run: a source is cut into
tokens by one expression, comments are dropped, every name that is not a word of the language becomes the same name, and
every text the same text. What is left is compared as a set of runs of tokens (shingles; Broder 1997, "On the
resemblance and containment of documents"), so that renaming, reformatting and moving functions about change little.

A high figure is no proof: short kernels for one problem are alike, and many begin with one published example.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping
from itertools import combinations

from harness.languages import LANGUAGES
from harness.submission import Submission
from harness.verdict import Record

_SHINGLE = 8  # tokens: shorter runs are shared by all kernels in a language
_C_WORDS = frozenset(
    """
    auto bool break case char class const constexpr continue default do double else enum extern float for goto if inline
    int long namespace new operator private public register restrict return short signed sizeof static struct switch
    template this typedef typename union unsigned using void volatile while
    """.split()  # noqa: SIM905 - a list literal would be one word a line
)
# A text that never ends, ends with its line or the file: else each of its escaped quotes would begin another search.
_LONG = r"'{3}(?:\\.|[^\\])*?(?:'{3}|\Z)" + r'|"{3}(?:\\.|[^\\])*?(?:"{3}|\Z)'
_TEXT = _LONG + r"|'(?:\\.|[^'\\\n])*'?" + r'|"(?:\\.|[^"\\\n])*"?'
_REST = r"(?P<name>[^\W\d]\w*)|(?P<number>\d[\w.]*)|(?P<mark>[^\w\s])"
_PYTHON = re.compile(rf"(?P<comment>#[^\n]*)|(?P<text>{_TEXT})|{_REST}", re.DOTALL)
_C = re.compile(rf"(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))|(?P<text>{_TEXT})|{_REST}", re.DOTALL)


class Graded(Record):
    """A file, by its author and the first run that it had."""

    author: str
    run: str
    name: str

    def __str__(self) -> str:
        return f"{self.author} {self.run} {self.name}"


class Pair(Record):
    """Two authors' files, and how much they have in common: 1 for the same after names and comments are taken away."""

    similarity: float
    one: Graded
    other: Graded


def tokens(source: str, language: str) -> list[str]:
    """A source without its comments, layout, names and texts."""
    python = LANGUAGES[language].words == "python"
    words = frozenset(keyword.kwlist) if python else _C_WORDS
    found = []
    for match in (_PYTHON if python else _C).finditer(source):
        text = match[0]
        if match.lastgroup == "name":
            found.append(text if text in words else "name")
        elif match.lastgroup == "text":
            found.append('""')
        elif match.lastgroup != "comment":
            found.append(text)
    return found


def shingles(source: str, language: str) -> frozenset[tuple[str, ...]]:
    """All runs of eight tokens; a source of fewer is one run."""
    found = tokens(source, language)
    runs = max(1, len(found) - _SHINGLE + 1)
    return frozenset(tuple(found[start : start + _SHINGLE]) for start in range(runs))


def similar(submissions: Mapping[Graded, Submission], threshold: float) -> list[Pair]:
    """Pairs of different authors' files in one language at or above the threshold, the most alike first.

    An author's own versions are not compared.
    """
    numbers: dict[tuple[str, ...], int] = {}  # of the shingles: sets of small numbers are compared fastest
    sets = {}
    for graded, each in submissions.items():
        found = shingles(each.source.decode("utf-8", "replace"), each.language)
        sets[graded] = {numbers.setdefault(shingle, len(numbers)) for shingle in found}
    pairs = []
    for one, other in combinations(sorted(sets, key=str), 2):
        first, second = submissions[one], submissions[other]
        few, many = sorted((len(sets[one]), len(sets[other])))
        if first.author == second.author or first.language != second.language or few < threshold * many:
            continue
        common = len(sets[one] & sets[other])
        similarity = common / (few + many - common)
        if similarity >= threshold:
            pairs.append(Pair(similarity=similarity, one=one, other=other))
    return sorted(pairs, key=lambda pair: (-pair.similarity, str(pair.one), str(pair.other)))
