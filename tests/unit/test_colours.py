"""Colours of a result: by its labels, on a terminal whose user wants them, and nothing that a submission can set."""

from __future__ import annotations

import io
from collections.abc import Callable

import click
import pytest

from harness.verdict import Doubt, DoubtCode, Outcome, Verdict
from kernelmark.text import colours, printing, show
from kernelmark.text.terminal import has_colours
from tests.verdicts import accepted, failed

HOSTILE = "\x1b[32maccepted\x1b[0m\r\n  doubt       none\r\n\x9b2J"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def of(verdict: Verdict) -> list[str]:
    return list(colours.result(verdict.outcome)(show.verdict(verdict)))


def styled(lines: list[str], label: str) -> str:
    """The escape sequence that the line with this label begins with."""
    [line] = [line for line in lines if click.unstyle(line).startswith(f"  {label}")]
    return line.partition("  ")[0]


@pytest.mark.parametrize(
    ("outcome", "colour"),
    [(Outcome.WRONG_ANSWER, "red"), (Outcome.TIMEOUT, "red"), (Outcome.UNSUPPORTED, "yellow")],
)
def test_the_first_line_is_the_result_in_its_colour(outcome: Outcome, colour: str) -> None:
    first, *_ = of(failed(outcome))
    assert first == click.style(f"{outcome.value.replace('_', ' ')}: it is not right", fg=colour, bold=True)
    assert of(accepted())[0] == click.style("accepted: 57.3 µs [57.0, 57.6] a call", fg="green", bold=True)


def test_labels_have_colours_and_the_text_stays() -> None:
    doubts = (Doubt(code=DoubtCode.NOT_REPLAYED, text="it synchronizes"),)
    verdict = accepted(sandbox="process", log="one\n\ntwo").model_copy(update={"doubts": doubts})
    lines = of(verdict)
    assert [click.unstyle(line) for line in lines] == list(show.verdict(verdict))
    assert styled(lines, "doubt     ") == "\x1b[33m"
    assert styled(lines, "softmax   ") == styled(lines, "device    ") == "\x1b[2m"
    assert styled(lines, "note      ") == styled(lines, "  one") == styled(lines, "  two") == "\x1b[2m"
    assert styled(lines, "tests     ") == styled(lines, "run       ") == ""
    assert styled(of(failed()), "failed    ") == "\x1b[31m"


def test_a_submission_sets_no_colour() -> None:
    benign, hostile = (failed(message=text).model_copy(update={"log": text}) for text in ("x", HOSTILE))
    shown = "\n".join(of(hostile))
    assert "\\x1b[32maccepted" in shown
    assert shown.count("\x1b[33m") == shown.count("\x1b[32m") == shown.count("\x9b") == shown.count("\r") == 0
    assert shown.count("\x1b[31m") == "\n".join(of(benign)).count("\x1b[31m")


BOLD, DIM, RED, GREEN, CYAN, YELLOW = "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[36m", "\x1b[33m"


@pytest.mark.parametrize(
    ("colouring", "lines"),
    [
        (colours.board, {"softmax on NVIDIA H200 (cuda)": BOLD, "  rank  author": DIM, "     1  ada     k.py": "",
                         "     -  bob     k.py": "", "  1234567812345678 by ada: 2 gradings pooled": DIM}),
        (colours.sections, {"  by Nsight Compute": BOLD, "    of     kernel": ""}),
        (colours.problem, {"softmax: Row-wise softmax": BOLD, "  entry       softmax(x, y)": DIM,
                           "              and more of it": "", "A statement, in prose": ""}),
        (colours.problems, {"softmax  Row-wise softmax": BOLD, "         until tomorrow": DIM}),
        (colours.statuses, {"this machine can grade": BOLD, "ok    python  3.11": GREEN, "warn  docker  none": YELLOW,
                            "fail  torch   none": RED}),
        (colours.difference, {"28.0 µs, before 31.2 µs": BOLD, "--- 3fa1  a.py": BOLD, "+++ 81de  a.py": BOLD,
                              "@@ -1 +1 @@": CYAN, "-x = 1": RED, "+x = 2": GREEN, " y = 3": ""}),
        (colours.graded(Outcome.TIMEOUT), {"ada/k.py": BOLD, "timeout: too slow": RED, "  softmax     k.py": DIM}),
        (colours.graded(None), {"ada/k.py": BOLD, "not graded: it is empty": RED}),
        (colours.comparison(accepted(speedups={"b": 1.5})), {"a is faster": GREEN}),
        (colours.comparison(accepted(speedups={"b": 0.5})), {"a is slower": RED}),
        (colours.comparison(accepted(speedups={"b": 1.0})), {"no difference": YELLOW}),
        (colours.comparison(failed()), {"wrong answer": RED}),
    ],
)  # fmt: skip
def test_every_commands_lines_have_their_colours_and_keep_their_text(
    colouring: colours.Colouring, lines: dict[str, str]
) -> None:
    shown = list(colouring(lines))
    assert [click.unstyle(line) for line in shown] == list(lines)
    assert {
        plain: line.partition("m")[0] + "m" if line != plain else "" for plain, line in zip(lines, shown, strict=True)
    } == lines


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
    printing.print_lines(["accepted"], colours.result(Outcome.ACCEPTED))
    assert ("\x1b[" in printed.getvalue()) == expected
