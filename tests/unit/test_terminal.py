"""What a terminal shows of a line: its style, where it wraps, and nothing that a submission can set."""

from __future__ import annotations

import io
import re
from collections.abc import Callable

import pytest

from harness.submission import Submission
from harness.verdict import Doubt, DoubtCode, Outcome
from kernelmark.course.report import GradingResult
from kernelmark.diagnostics.doctor import lines as doctor_lines
from kernelmark.diagnostics.doctor.diagnostic import Diagnostic
from kernelmark.text import show, terminal
from kernelmark.text.terminal import Line, columns, has_colours, labelled, rendered
from tests.verdicts import accepted, failed

HOSTILE = "\x1b[32maccepted\x1b[0m\r\n  doubt       none\r\n\x9b2J"
ESCAPE = re.compile(r"\x1b\[[\d;]*m")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def style(lines: list[str], label: str) -> str:
    """The style of the line with this label."""
    [line] = [line for line in lines if line.startswith(f"  {label}")]
    return line.style if isinstance(line, Line) else ""


@pytest.mark.parametrize(
    ("outcome", "colour"), [(Outcome.WRONG_ANSWER, "red"), (Outcome.TIMEOUT, "red"), (Outcome.UNSUPPORTED, "yellow")]
)
def test_the_first_line_is_the_result_in_its_colour(outcome: Outcome, colour: str) -> None:
    for verdict, expected in ((failed(outcome), colour), (accepted(), "green")):
        first = next(show.verdict(verdict))
        assert first.style == f"bold {expected}"


def test_labels_have_styles_and_escapes_change_no_text() -> None:
    doubts = (Doubt(code=DoubtCode.NOT_REPLAYED, text="it synchronizes"),)
    verdict = accepted(sandbox="process", log="one\n\ntwo").model_copy(update={"doubts": doubts})
    lines = list(show.verdict(verdict))
    assert ESCAPE.sub("", rendered(lines, 1000, colours=True)).split("\n") == [line.rstrip() for line in lines]
    assert style(lines, "doubt     ") == "yellow"
    assert {style(lines, label) for label in ("softmax   ", "device    ", "note      ", "  one", "  two")} == {"dim"}
    assert {style(lines, label) for label in ("tests     ", "run       ")} == {""}
    assert style(list(show.verdict(failed())), "failed    ") == "red"


def test_a_submission_sets_no_style() -> None:
    benign, hostile = (
        rendered(list(show.verdict(failed(message=text).model_copy(update={"log": text}))), 1000, colours=True)
        for text in ("x", HOSTILE)
    )
    assert "\\x1b[32maccepted" in hostile
    assert not re.search("[\x9b\r]|\x1b\\[3[23]m", hostile)
    assert hostile.count("\x1b[31m") == benign.count("\x1b[31m")


def test_a_style_may_be_that_of_the_beginning_alone() -> None:
    findings = [Diagnostic("ok", "python", "3.11"), Diagnostic("fail", "torch", "none", "install it")]
    first, *others = rendered(list(doctor_lines(findings)), 20, colours=True).splitlines()
    assert first.startswith("\x1b[1mthis machine can")
    assert "\x1b[32mok\x1b[0m    python  3.11" in others
    assert others[-1] == " " * 14 + "it"
    for ratio, colour in ((1.5, "green"), (0.5, "red"), (1.0, "yellow")):
        compared = accepted(speedups={"b": ratio})
        first = next(show.comparison(compared, Submission.of("# b", "py", author="bob", name="b.py")))
        assert first.style == f"bold {colour}"  # type: ignore[attr-defined]
    name, why = GradingResult("ada/k.py", 2, "it is empty").lines()
    assert (name.style, why.style) == ("bold", "bold red")  # type: ignore[attr-defined]


def test_columns_are_aligned_in_a_terminal_also_below_wide_characters() -> None:
    table = list(columns([("李明", "🚀", "1"), ("Ada", "e\u0301t", "22"), ("Łukasz", "", "3")], right={2}))
    assert [str(line) for line in table] == ["  李明    🚀   1", "  Ada     e\u0301t  22", "  Łukasz       3"]
    assert [table[0][begin : begin + 1] for begin in table[0].cells] == ["李", "🚀", " ", ""]


def test_no_word_breaks_in_a_narrow_terminal_and_a_label_keeps_its_column() -> None:
    line = labelled("doubt", "noisy: the device was also used by another process; grade it again on a quiet machine")
    first, *others = shown = rendered([line], 60, colours=False).splitlines()
    assert first.startswith("  doubt       noisy: the device")
    assert others
    assert all(row.startswith(" " * 14) and row[14] != " " for row in others)
    assert " ".join(" ".join(shown).split()) == " ".join(line.split())
    assert rendered(["x" * 70, "", "    ind" + " word" * 20], 60, colours=False).splitlines()[:2] == ["x" * 70, ""]


def test_the_cells_of_a_row_that_do_not_fit_are_below_the_others() -> None:
    rows = [("1", "ada", "3.50 µs", "[3.44, 3.58]", "2026-01-01"), ("2", "bob", "", "", "2026-01-02")]
    table = list(columns(rows, head=("rank", "author", "time", "interval", "date"), right={0, 2}))
    assert rendered(table, 80, colours=False).splitlines() == table == [
        "  rank  author     time  interval      date",
        "     1  ada     3.50 µs  [3.44, 3.58]  2026-01-01",
        "     2  bob                            2026-01-02",
    ]  # fmt: skip
    assert rendered(table, 30, colours=False).splitlines() == [
        "  rank  author     time",
        "    interval      date",
        "     1  ada     3.50 µs",
        "    [3.44, 3.58]  2026-01-01",
        "     2  bob",
        "                  2026-01-02",
    ]
    facts = columns([("versions", "python 3.11, torch 2.9")], prose=True)
    assert rendered(list(facts), 26, colours=False).splitlines() == [
        "  versions  python 3.11,",
        "            torch 2.9",
    ]


@pytest.mark.parametrize(
    ("stream", "variables", "expected"),
    [
        (Terminal, {"TERM": "xterm"}, True),
        (Terminal, {"TERM": "xterm", "NO_COLOR": ""}, True),
        (Terminal, {"TERM": "xterm", "NO_COLOR": "1"}, False),
        (Terminal, {"TERM": "dumb"}, False),
        (io.StringIO, {"TERM": "xterm"}, False),
    ],
)
def test_only_a_terminal_gets_colours_unless_its_user_wants_none(
    stream: Callable[[], io.StringIO], variables: dict[str, str], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    printed = stream()
    assert has_colours(printed) == expected
    monkeypatch.setattr("sys.stdout", printed)
    terminal.print_lines([Line("accepted", "bold green")])
    assert ("\x1b[" in printed.getvalue()) == expected
