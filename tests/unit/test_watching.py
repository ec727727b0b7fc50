"""`kernelmark check --watch`: runs again whenever the file is saved, however an editor does that."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import UsageError
from kernelmark.commands import submit


def replaced(file: Path) -> None:
    """As editors do that write another file and move it; here with the same size and time."""
    before = file.stat()
    other = file.with_suffix(".tmp")
    other.write_text(file.read_text())
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(file)


def saved(file: Path) -> None:
    file.write_text(file.read_text() + "#")


def touched(file: Path) -> None:
    os.utime(file, ns=(0, 1))


def moved_away(file: Path) -> None:
    file.rename(file.with_suffix(".bak"))


def moved_back(file: Path) -> None:
    file.with_suffix(".bak").rename(file)
    saved(file)


def nothing(_file: Path) -> None:
    """Half a second in which nobody saves."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "kernel.py"
    path.write_text("one")
    return path


def watch(
    file: Path, monkeypatch: pytest.MonkeyPatch, happens: list[Callable[[Path], None]], statuses: list[object]
) -> tuple[int, int]:
    """Let these happen one after the other, half a second apart, then Ctrl-C; returns the status and how many ran."""
    left, ran = list(happens), 0

    def sleep(seconds: float) -> None:
        assert seconds == 0.5
        if not left:
            raise KeyboardInterrupt
        left.pop(0)(file)

    def once() -> int:
        nonlocal ran
        status = statuses[min(ran, len(statuses) - 1)]
        ran += 1
        if isinstance(status, Exception):
            raise status
        return status

    monkeypatch.setattr(submit.time, "sleep", sleep)
    return submit._repeated([file], once, "table"), ran


@pytest.mark.parametrize(
    ("happens", "ran"),
    [
        ([], 1),
        ([nothing, nothing], 1),
        ([saved], 2),
        ([saved, nothing, saved], 3),
        ([touched], 2),
        ([replaced], 2),
        ([moved_away, nothing], 1),
        ([moved_away, nothing, moved_back], 2),
    ],
)
def test_it_runs_once_and_again_after_each_save(
    file: Path, monkeypatch: pytest.MonkeyPatch, happens: list[Callable[[Path], None]], ran: int
) -> None:
    assert watch(file, monkeypatch, happens, [0]) == (0, ran)


def test_a_save_during_a_run_starts_another_run(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = 0

    def once() -> int:
        nonlocal ran
        ran += 1
        if ran == 1:
            saved(file)
        return ran

    def interrupted(_seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(submit.time, "sleep", interrupted)
    assert submit._repeated([file], once, "table") == 2


def test_the_last_status_counts_and_a_later_error_is_one_line(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = UsageError("kernel.py", "is not UTF-8", "save it as UTF-8")
    assert watch(file, monkeypatch, [saved], [0, error]) == (2, 2)
    printed = capsys.readouterr().err.splitlines()
    assert [line for line in printed if "error" in line] == [f"kernelmark: error: {error}"]
    assert sum(line.startswith("──── ") for line in printed) == 1
    assert watch(file, monkeypatch, [saved, saved], [1, error, 0]) == (0, 3)


def test_an_error_at_the_first_time_ends_it(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError):
        watch(file, monkeypatch, [saved], [UsageError("kernel.py", "cannot be read", "")])


def test_included_files_are_watched_too(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    header, ran = file.with_name("tile.h"), 0
    header.write_text("")

    def once() -> int:
        nonlocal ran
        ran += 1
        return ran

    def sleep(_seconds: float) -> None:
        if ran == 2:
            raise KeyboardInterrupt
        saved(header)

    monkeypatch.setattr(submit.time, "sleep", sleep)
    assert submit._repeated([file, header], once, "table") == 2
