"""What is out of date, and what the board says of it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from harness.verdict import ProblemId, Verdict
from leaderboard.publishing.markdown import board
from leaderboard.record.current import Current
from leaderboard.standings.staleness import stale
from tests.ranked import rank
from tests.verdicts import EPOCH, accepted, chained, environment, failed, sha256

NOW = Current(problems={"softmax": sha256("softmax 1")}, protocol=1)
ID = ProblemId(slug="softmax", sha256=sha256("softmax 1"))
H200 = environment()


@pytest.mark.parametrize(
    ("problem", "protocol", "current", "reason"),
    [
        (ID, 1, NOW, None),
        (ID.model_copy(update={"sha256": "a" * 64}), 1, NOW, "the problem changed, aaaaaaaaaaaa is now "),
        (ID.model_copy(update={"slug": "gone"}), 1, NOW, None),
        (ID, 0, NOW, "protocol 0, now 1"),
        (ID, 1, NOW.model_copy(update={"environments": (H200,)}), None),
        (ID, 1, NOW.model_copy(update={"environments": (H200.model_copy(update={"torch": "2.13.0"}),)}),
         "torch 2.11.0, now 2.13.0"),
        (ID, 1, NOW.model_copy(update={"environments": (H200.model_copy(update={"driver": None}),)}),
         "driver 580.65, now unknown"),
        (ID, 1, NOW.model_copy(update={"environments": (environment(device_name="NVIDIA L4"),)}), None),
        (ID, 1, NOW.model_copy(update={"environments": (environment(sandbox="bwrap"),)}), None),
    ],
)  # fmt: skip
def test_what_makes_a_result_stale(problem: ProblemId, protocol: int, current: Current, reason: str | None) -> None:
    found = stale(problem, protocol, H200, current)
    assert found == reason if reason is None else (found or "").startswith(reason)


def marks(*verdicts: Verdict, current: Current = NOW) -> dict[str, tuple[str, str | None]]:
    tables = rank(chained(*verdicts), current)
    return {row.run[0]: (row.stale.reason, row.stale.again) for t in tables for row in t.rows if row.stale}


def newer(verdict: Verdict, **changes: object) -> Verdict:
    ran = verdict.environment.model_copy(update=changes)
    return verdict.model_copy(update={"environment": ran, "created_at": EPOCH + timedelta(hours=1)})


OLD = accepted(run="a" * 16, problem_version="0", score_ns=1000)


def test_a_row_is_marked_until_its_file_is_graded_again() -> None:
    reason = f"the problem changed, {sha256('softmax 0')[:12]} is now {sha256('softmax 1')[:12]}"
    assert marks(OLD) == {"a": (reason, None)}
    other_file = accepted(run="b" * 16, source="another")
    other_author = accepted(run="c" * 16, author="bob", source="# ada")
    other_device = accepted(run="d" * 16, device_name="NVIDIA L4")
    assert marks(OLD, other_file, other_author, other_device) == {"a": (reason, None)}
    assert marks(OLD, accepted(run="e" * 16)) == {"a": (reason, "e" * 16)}
    assert marks(OLD, failed(run="f" * 16)) == {"a": (reason, "f" * 16)}, "what it says now does not matter"


def test_the_newest_grading_shows_the_software_of_a_device() -> None:
    slow = newer(accepted(run="b" * 16, score_ns=9000, author="bob"), driver="600.1")
    fast = accepted(run="a" * 16, score_ns=1000)
    assert marks(fast, slow) == {"a": ("driver 580.65, now 600.1", None)}
    again = newer(accepted(run="c" * 16, score_ns=2000), driver="600.1")
    assert marks(fast, slow, again) == {}, "the row rests on what is there now"
    (row,) = (row for row in rank(chained(fast, slow, again), NOW)[0].rows if row.author == "ada")
    assert (row.run, row.score, row.gradings) == ("c" * 16, again.score, 1)


def test_marks_change_no_rank_and_without_a_present_there_are_none() -> None:
    entries = chained(OLD, accepted(run="b" * 16, problem_version="0", author="bob", score_ns=500))
    marked, plain = rank(entries, NOW), rank(entries)
    assert [row.rank for row in marked[0].rows] == [row.rank for row in plain[0].rows] == [1, 2]
    assert all(row.stale is None for row in plain[0].rows)
    assert board(marked).count("stale: the problem changed") == 2
    assert "stale" not in board(plain)
