"""The findings of the lint, grouped so that each cause is reported once. Trusted; imports no torch."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

Level = Literal["error", "warning", "note"]
# Matches shapes and costs, but not the 16 of float16 or a line number.
_NUMBERS = re.compile(r"\[[\d, ]*\]|(?<!:)\b\d[\d,]*\b")
_EXAMPLE = re.compile(r" \(in `[^`]*`\)$")  # names the case whose numbers a grouped finding has


@dataclass(frozen=True)
class LintFinding:
    """One flaw of a problem, or a note about something that was not checked; `kernel`: the null kernel that passes."""

    level: Level
    cases: tuple[str, ...]
    kernel: str
    what: str
    remedy: str = ""


def cause(text: str) -> str:
    """A text without its numbers. Findings with the same cause differ only in the sizes of their cases."""
    return _NUMBERS.sub("#", _EXAMPLE.sub("", text))


def folded(findings: Iterable[LintFinding]) -> list[LintFinding]:
    """One finding for each cause, with all its cases, and the numbers of the first case."""
    alike: dict[tuple[str, ...], list[LintFinding]] = {}
    for finding in findings:
        key = finding.level, finding.kernel, cause(finding.what), cause(finding.remedy)
        alike.setdefault(key, []).append(finding)
    return [_merged(same) for same in alike.values()]


def _merged(alike: list[LintFinding]) -> LintFinding:
    first, cases = alike[0], tuple(dict.fromkeys(case for finding in alike for case in finding.cases))
    differ = len(cases) > 1 and any((other.what, other.remedy) != (first.what, first.remedy) for other in alike)
    return replace(first, cases=cases, what=first.what + (f" (in `{first.cases[0]}`)" if differ else ""))
