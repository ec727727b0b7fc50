"""A problem's own page: the ranks of the board, every case, baselines, and only sources that may be shown."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest

from harness.submission import Submission
from harness.verdict import Roofline, Verdict
from kernelmark.project.settings import Settings
from kernelmark.record import recording
from kernelmark.record.publishing import publish
from leaderboard.publishing.markdown import page
from leaderboard.record import chain
from tests.ranked import rank
from tests.unit.conftest import Command
from tests.verdicts import EPOCH, REPLAYED, accepted, chained


def cells(text: str, start: str) -> list[list[str]]:
    """The rows of the table below a line that begins with `start`."""
    below = text[text.index(start) :].split("\n\n")[1]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in below.strip().splitlines()]


def test_the_page_has_every_case_and_the_baselines() -> None:
    entries = chained(
        accepted(author="ada", score_ns=1000, speedups={"eager": 1.5}, modes=("graphs", "calls")),
        accepted(author="ada", score_ns=9000, speedups={"eager": 0.2}, source="slow"),
        accepted(author="bob", score_ns=2000, modes=("graphs",), roofline=Roofline(share=0.914, limit="memory")),
    )
    text = page("softmax", rank(entries), entries, {})
    head, _, ada, bob, eager = cells(text, "Time per call, case by case:")
    assert head == ["rank", "author", "2048 square", "4096 square"]
    assert ada == ["1", "ada", "1.00 µs [0.99, 1.00]", "1.00 µs [0.99, 1.00]"]
    assert bob == ["2", "bob", "2.00 µs [1.99, 2.01]", ""]
    assert eager == ["", "*eager*", "1.50 µs", "1.50 µs"]
    assert cells(text, "× eager, case by case:")[2][:3] == ["1", "ada", "1.500 [1.492, 1.507]"]
    assert cells(text, "Share of what")[2] == ["2", "bob", "91 % memory"]
    assert "| source |" not in text


def test_a_baselines_time_is_of_a_row_that_was_timed_as_the_table_requires() -> None:
    plain = accepted(author="ada", score_ns=1000, speedups={"eager": 9.0}, ranked_timing="replayed")
    text = page("softmax", rank(alone := chained(plain)), alone, {})
    assert "*eager*" not in text
    both = chained(plain, accepted(author="bob", score_ns=2000, speedups={"eager": 1.5}, modes=REPLAYED))
    *_, bob, ada, eager = cells(page("softmax", rank(both), both, {}), "Time per call, case by case:")
    assert (bob[:2], ada[:2], eager[1:3]) == (["1", "bob"], ["", "ada"], ["*eager*", "3.00 µs"])


def test_only_the_first_rows_are_shown_by_case() -> None:
    entries = chained(*(accepted(author=f"a{n:03}", score_ns=1000 + 100 * n, modes=("graphs",)) for n in range(120)))
    text = page("softmax", rank(entries), entries, {})
    assert len(cells(text, "Time per call, case by case (the first 100 of 120 rows):")) == 2 + 100
    assert sum(f"| a{n:03} |" in text for n in range(120)) == 120, "all of them have their row"


def test_a_page_without_a_result_says_so() -> None:
    assert "No submission has been accepted yet." in page("softmax", [], [], {})


RULES = {
    "public": 'visibility = "public"\n',
    "embargoed": 'visibility = "after_deadline"\ndeadline = 2999-01-01T00:00:00Z\n',
    "opened": 'visibility = "after_deadline"\ndeadline = 2020-01-01T00:00:00Z\n',
    "never": 'visibility = "never"\n',
    "unreadable": "visibility = [\n",
}


def recorded(submission: Submission, verdict: Verdict) -> None:
    """Record it, and publish its board."""
    recording.record(Settings.load(), submission, verdict)
    publish(Settings.load(), verdict.problem.slug)


@pytest.mark.parametrize(("rules", "linked"), [(name, name in ("public", "opened")) for name in RULES])
def test_only_a_source_that_may_be_shown_is_linked(competition: Path, rules: str, linked: bool) -> None:
    toml = competition / "problems/double/problem.toml"
    toml.write_text(RULES[rules] + toml.read_text())
    submission = Submission.of("# mine\n", "py", author="ada", name="kernel.py")
    recorded(submission, accepted(problem="double", submission=submission))
    path = competition / "leaderboard/boards/double.md"
    found = re.findall(r"\[source\]\(([^)]*)\)", path.read_text())
    assert bool(found) is linked
    for link in found:
        assert (path.parent / link).read_text() == "# mine\n"


def test_a_board_reads_only_its_ledger(competition: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    for slug in ("double", "softmax"):
        submission = Submission.of("# mine\n", "py", author="ada", name="kernel.py")
        recorded(submission, accepted(problem=slug))
    board = competition / "leaderboard/BOARD.md"
    before, walked = board.read_text(), []
    opened = chain.opened
    monkeypatch.setattr(chain, "opened", lambda path: walked.append(path.name) or opened(path))
    late = accepted(problem="double", author="bob", created_at=EPOCH + timedelta(days=1))
    recorded(Submission.of("# his\n", "py", author="bob"), late)
    assert set(walked) == {"double.jsonl"}
    after = board.read_text()
    assert after != before
    assert command("board", "--write").code == 0
    assert board.read_text() == after, "written whole it is the same"
    assert sorted(path.name for path in (competition / "leaderboard/boards").iterdir()) == ["double.md", "softmax.md"]
