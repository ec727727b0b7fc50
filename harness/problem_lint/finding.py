"""What the lint says about a problem: once for each cause, however many cases it shows in. Trusted, no torch."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

Level = Literal["error", "warning", "note"]
_NUMBERS = re.compile(
    r"\[[\d, ]*\]|(?<!:)\b\d[\d,]*\b"
)  # shapes and costs, but not the 16 of float16 or a line of a file

_EXAMPLE = re.compile(r" \(in `[^`]*`\)$")  # whose numbers a folded finding has


@dataclass(frozen=True)
class LintFinding:
    """One flaw of a problem, or something left out; `kernel` is the null kernel that passes."""

    level: Level
    cases: tuple[str, ...]
    kernel: str
    what: str
    remedy: str = ""


def cause(text: str) -> str:
    """A text without its numbers: two findings with the same cause differ only in the sizes of their cases."""
    return _NUMBERS.sub("#", _EXAMPLE.sub("", text))


def folded(findings: Iterable[LintFinding]) -> list[LintFinding]:
    """One finding for each cause, with all its cases; its numbers are those of the first."""
    alike: dict[tuple[str, ...], list[LintFinding]] = {}
    for each in findings:
        alike.setdefault((each.level, each.kernel, cause(each.what), cause(each.remedy)), []).append(each)
    return [_one(each) for each in alike.values()]


def _one(alike: list[LintFinding]) -> LintFinding:
    first, cases = alike[0], tuple(dict.fromkeys(case for each in alike for case in each.cases))
    differ = len(cases) > 1 and any((each.what, each.remedy) != (first.what, first.remedy) for each in alike)
    return replace(first, cases=cases, what=first.what + (f" (in `{first.cases[0]}`)" if differ else ""))
