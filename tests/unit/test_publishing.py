"""Boards are published separately from recording: at the end of a command, and from time to time by a fleet."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from harness.errors import HarnessError
from harness.submission import Submission
from kernelmark.project.settings import Settings
from kernelmark.record import publishing
from kernelmark.record.publishing import Publisher
from kernelmark.record.recording import record
from leaderboard.standings.ranking import Table
from tests.verdicts import accepted


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The problems whose boards were published, in order; the next time is an hour away."""
    slugs: list[str] = []

    def publish(settings: Settings, slug: str) -> list[Table]:
        slugs.append(slug)
        return []

    monkeypatch.setattr(publishing, "publish", publish)
    monkeypatch.setattr(publishing, "_EVERY_S", 3600.0)
    return slugs


def test_recording_writes_no_board(competition: Path) -> None:
    submission = Submission.of("# ada\n", "py", author="ada", name="kernel.py")
    record(Settings.load(), submission, accepted(problem="double", submission=submission))
    assert (competition / "leaderboard/results/double.jsonl").exists()
    assert not (competition / "leaderboard/BOARD.md").exists()


def test_what_is_due_a_hundred_times_is_published_at_once_and_at_the_end(published: list[str]) -> None:
    with Publisher(Settings.load()) as publisher:
        for _ in range(100):
            publisher.due("double")
            publisher.due("softmax")
    assert 1 <= published.count("double") <= 2
    assert 1 <= published.count("softmax") <= 2


def test_what_becomes_due_meanwhile_is_published_later(published: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go = threading.Event(), threading.Event()

    def slow(settings: Settings, slug: str) -> list[Table]:
        begun.set()
        assert go.wait(60)
        published.append(slug)
        return []

    monkeypatch.setattr(publishing, "publish", slow)
    with Publisher(Settings.load()) as publisher:
        publisher.due("double")
        assert begun.wait(60)
        publisher.due("double")
        go.set()
    assert published == ["double", "double"]


def test_a_problem_without_new_records_is_not_published(published: list[str]) -> None:
    with Publisher(Settings.load()):
        pass
    assert published == []


def test_a_board_that_cannot_be_written_is_a_warning_since_the_verdicts_are_recorded(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(settings: Settings, slug: str) -> list[Table]:
        raise HarnessError("it is recorded, but the disk is full")

    monkeypatch.setattr(publishing, "publish", fails)
    with Publisher(Settings.load()) as publisher:
        publisher.due("double")
    assert "the disk is full" in caplog.text
