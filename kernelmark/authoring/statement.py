"""Compares a problem's README.md, which the site publishes, with its problem.toml; trusted, no torch.

The lint calls it. What a person wrote cannot be checked, except for two things: what the template left to be filled in,
and the C functions that the README declares.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from harness.files import outside
from harness.problem import Problem
from harness.problem.prototype import prototypes
from harness.problem_lint.finding import LintFinding
from kernelmark.authoring.rendering import TEMPLATES
from kernelmark.authoring.skeleton import STATEMENT

_DECLARED = re.compile(r'extern\s+"C"\s+void\s+(?P<symbol>\w+)\s*\((?P<arguments>[^)]*)\)')
_IGNORED = re.compile(r"(?<=cudaStream_t)\s+\w+|\s+|\b__restrict(__)?\b")
_PLACEHOLDERS = [line for line in (TEMPLATES / STATEMENT).read_text("utf-8").splitlines() if "…" in line]


def contradictions(problem: Problem) -> Iterator[LintFinding]:
    """What the README still has of its template, and where it declares a function otherwise than it is called."""
    try:
        text = outside.text(problem.directory / "README.md")
    except FileNotFoundError:
        return
    except (OSError, UnicodeDecodeError) as error:
        yield LintFinding("warning", (), "", f"README.md cannot be read ({error})", "save it as UTF-8 text")
        return
    lines = {line.strip() for line in text.splitlines()}
    if left := [line for line in _PLACEHOLDERS if line in lines]:
        what = f"README.md still says {', '.join(repr(line) for line in left)}, as the template does"
        yield LintFinding("warning", (), "", what, "write what participants must know, or remove the line")
    known = {suffix: prototypes(problem, suffix) for suffix in ("cu", "cpp")}
    for declared in _DECLARED.finditer(text):
        expected = known["cu" if "cudaStream_t" in declared["arguments"] else "cpp"].get(declared["symbol"])
        if expected is None:
            names = ", ".join(f"`{name}`" for name in sorted({*known["cu"], *known["cpp"]}))
            what = f"README.md declares `{declared['symbol']}`, which no case calls"
            yield LintFinding("warning", (), "", what, f"the functions are {names}")
        elif _bare(declared[0]) != _bare(expected):
            what = f"README.md declares `{' '.join(declared[0].split())}`, which differs from problem.toml"
            yield LintFinding("warning", (), "", what, f"write `{expected}`")


def _bare(declaration: str) -> str:
    """Without what has no meaning to a caller: spaces, and the name of the stream."""
    return _IGNORED.sub("", declaration)
