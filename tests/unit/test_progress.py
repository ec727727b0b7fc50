"""Progress goes to the given stream: lines where it is a file, a live status where it is a terminal."""

from __future__ import annotations

import errno
import io
import re
from types import SimpleNamespace
from typing import Any

import pytest

from harness.verdict import Stage
from kernelmark.text.progress import BatchReporter, Reporter, describe


def step(stage: Stage, done: int = 0, total: int = 0, label: str = "") -> Any:
    return SimpleNamespace(stage=stage, done=done, total=total, label=label)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_step_counts_from_one_and_never_past_the_total() -> None:
    assert describe(step(Stage.BUILD)) == "build"
    assert describe(step(Stage.TEST, 0, 12, "one row")) == "test 1/12 one row"
    assert describe(step(Stage.TEST, 12, 12)) == "test 12/12"


def test_a_file_gets_one_line_a_stage_however_many_cases_it_has() -> None:
    stream = io.StringIO()
    with Reporter(stream) as reporter:
        first = step(Stage.TEST, 0, 2, "a")
        for each in (step(Stage.BUILD), first, first, step(Stage.TEST, 1, 2)):
            reporter.report(each)
    assert stream.getvalue() == "build\ntest: 2 cases\n"


class Broken(io.StringIO):
    def flush(self) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_ends_no_grading() -> None:
    with Reporter(stream := Broken()) as reporter:
        reporter.report(step(Stage.BUILD))
    assert stream.getvalue() == "build\n"


def test_a_terminal_that_is_closed_hides_no_other_exception() -> None:
    reporter = Reporter(stream := Terminal())
    reporter.__enter__()
    stream.flush = Broken().flush  # type: ignore[method-assign]
    reporter.__exit__(None, None, None)


def test_labels_are_neither_control_sequences_nor_markup() -> None:
    hostile = step(Stage.TIME, 0, 1, "[red]x[/nope]\x1b[2J\u202e")
    plain, terminal = io.StringIO(), Terminal()
    for stream in (plain, terminal):
        with Reporter(stream) as reporter:
            reporter.report(hostile)
    assert plain.getvalue() == "time 1/1 [red]x[/nope]\\x1b[2J\\u202e\n"
    assert "\x1b[2J" not in terminal.getvalue()


def test_a_terminal_shows_the_step_and_gets_its_cursor_back_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    with pytest.raises(RuntimeError), Reporter(stream) as reporter:  # noqa: PT012 - the failure comes between two steps
        reporter.report(step(Stage.TIME, 0, 3, "[bold]4096"))
        raise RuntimeError("the judge failed")
    assert "time 1/3 [bold]4096" in stream.getvalue()
    hidden, shown = stream.getvalue().count("\x1b[?25l"), stream.getvalue().count("\x1b[?25h")
    assert hidden == shown > 0


@pytest.mark.parametrize(("variable", "value", "bar"), [("TERM", "dumb", False), ("NO_COLOR", "1", True)])
def test_bars_by_kind_of_terminal(variable: str, value: str, bar: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv(variable, value)
    stream = Terminal()
    with Reporter(stream) as reporter:
        reporter.report(step(Stage.TEST, 1, 2, "a"))
    assert ("\x1b[?25l" in stream.getvalue()) == bar
    assert not re.search(r"\x1b\[[0-9;]*m", stream.getvalue()), "no colour"
    assert ("━" in stream.getvalue()) == bar
    assert bar or stream.getvalue() == "test: 2 cases\n"


@pytest.mark.parametrize(
    ("usual_s", "built_s", "now_s", "shown_text"),
    [
        (None, 100, 165, "1:05 test"),
        (90, 100, 130, "0:30, about 1:00 left test"),
        (90, 130, 130, "0:30, about 1:30 left test"),
        (20, 100, 119, "0:19, about 0:01 left test"),
        (20, 100, 120, "0:20, longer than usual test"),
    ],
)
def test_what_is_left_is_counted_from_the_build_as_it_usually_is(
    usual_s: float | None, built_s: float, now_s: float, shown_text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    now = 100.0
    monkeypatch.setattr("kernelmark.text.progress.time", SimpleNamespace(monotonic=lambda: now))
    stream = Terminal()
    with Reporter(stream, lambda: usual_s) as reporter:
        reporter.report(step(Stage.BUILD, 0, 0, "waiting: another grading is using this CPU"))
        now = built_s
        reporter.report(step(Stage.BUILD, 0, 1, "a.py"))
        now = now_s
        reporter.report(step(Stage.TEST, 0, 2))
    assert shown_text in stream.getvalue()


def test_the_usual_duration_is_not_looked_up_without_a_terminal() -> None:
    with Reporter(io.StringIO(), lambda: pytest.fail("asked")) as reporter:
        reporter.report(step(Stage.BUILD))


def test_of_several_submissions_a_file_gets_a_line_each() -> None:
    stream = io.StringIO()
    with BatchReporter(1, stream) as reporter:
        reporter.expect(1)
        reporter.say("softmax: null kernels")
        reporter.report(step(Stage.BUILD))
        reporter.finished("one.py", "accepted")
        reporter.report(step(Stage.BUILD))
        reporter.finished("two\x1b[2J.py", "wrong answer")
    lines = ["softmax: null kernels", "build", "1/2 one.py: accepted", "build", "2/2 two\\x1b[2J.py: wrong answer"]
    assert stream.getvalue().splitlines() == lines


def test_a_terminal_shows_how_many_are_done_and_how_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    now = 0.0
    monkeypatch.setattr("kernelmark.text.progress.time", SimpleNamespace(monotonic=lambda: now))
    stream = Terminal()
    with BatchReporter(3, stream) as reporter:
        now = 30.0
        reporter.finished("one.py", "accepted")
        reporter.report(step(Stage.TEST, 0, 2, "small"))
        with reporter.hidden():
            before = stream.getvalue()
            assert before.count("\x1b[?25l") == before.count("\x1b[?25h"), "the cursor is back, and no line is live"
    shown = stream.getvalue()
    assert "1/3 one.py: accepted\n" in shown
    assert "1 done, 2.0 a minute, 2 left: test 1/2 small" in shown
