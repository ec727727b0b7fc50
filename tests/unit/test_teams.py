"""Teams: several authors who have one row, on every board, and are not compared with each other."""

from __future__ import annotations

import pytest

from harness.submission import Submission
from harness.verdict import Verdict
from kernelmark.text import standings
from leaderboard.publishing.markdown import board
from leaderboard.record.entry import Entry
from leaderboard.record.moderation import Moderation
from leaderboard.record.similar import GradedFile, similar
from leaderboard.record.teams import NO_TEAMS, Teams
from leaderboard.standings.ranking import Table
from tests.ranked import rank
from tests.verdicts import EPOCH, accepted, chained

TEAMS = Teams({"quickfix": ("bob", "ada"), "cyd": ("cyd", "dan")})
Run = tuple[str, int]
WIDE = 1_000  # added to a time: its interval is then too wide to rank


def graded(author: str, score_ns: int) -> Verdict:
    if score_ns > WIDE:
        score_ns -= WIDE
        return accepted(author=author, score_ns=score_ns, low_ns=score_ns // 2, high_ns=score_ns * 2)
    return accepted(author=author, score_ns=score_ns, low_ns=score_ns - 1, high_ns=score_ns + 1)


def only_table(entries: list[Entry], teams: Teams = TEAMS) -> Table:
    [table] = rank(entries, teams=teams)
    return table


@pytest.mark.parametrize(
    ("runs", "teams", "rows"),
    [
        pytest.param(
            [("ada", 100), ("bob", 90), ("eve", 95)], TEAMS, [(1, "quickfix (bob)"), (2, "eve")], id="the best of both"
        ),
        pytest.param(
            [("ada", 100), ("bob", 90), ("eve", 95)], NO_TEAMS, [(1, "bob"), (2, "eve"), (3, "ada")], id="no teams"
        ),
        pytest.param([("ada", 100)], TEAMS, [(1, "quickfix (ada)")], id="one of a team alone"),
        pytest.param([("quickfix", 90), ("ada", 100)], TEAMS, [(1, "quickfix")], id="a run in the team's own name"),
        pytest.param([("cyd", 90), ("dan", 80)], TEAMS, [(1, "cyd (dan)")], id="a team with the name of a member"),
        pytest.param(
            [("ada", 100), ("bob", WIDE + 90)],
            TEAMS,
            [(1, "quickfix (ada)"), (None, "quickfix (bob)")],
            id="a faster one that is too wide comes below",
        ),
        pytest.param([("ada", 80), ("bob", WIDE + 90)], TEAMS, [(1, "quickfix (ada)")], id="but not a slower one"),
    ],
)  # fmt: skip
def test_a_team_has_the_row_of_its_best_run(runs: list[Run], teams: Teams, rows: list[tuple[int | None, str]]) -> None:
    entries = chained(*(graded(*run) for run in runs))
    assert [(row.rank, row.who) for row in only_table(entries, teams).rows] == rows
    assert [(row.rank, row.who) for row in only_table(entries[::-1], teams).rows] == rows, "in any order"


def test_the_same_source_of_two_members_is_not_pooled() -> None:
    bob, ada = accepted(author="bob", source="x", score_ns=90), accepted(author="ada", source="x", score_ns=100)
    table = only_table(chained(bob, ada))
    assert [(row.who, row.gradings) for row in table.rows] == [("quickfix (bob)", 1)]
    assert standings.standing(ada, table).startswith("bob's better run")


def test_moderation_by_author_hits_that_author_and_not_the_team() -> None:
    bob, ada = graded("bob", 90), graded("ada", 100)
    banned = Moderation(
        run=bob.run, action="disqualify", scope="author", author="bob", actor="eve", reason="copied", created_at=EPOCH
    )
    table = only_table(chained(bob, ada, banned))
    assert [row.who for row in table.rows] == ["quickfix (ada)"]
    assert [run.who for run in table.set_aside] == ["quickfix (bob)"]


def test_every_board_names_the_team_and_who_wrote_the_run() -> None:
    bob, ada = graded("bob", 90), graded("ada", 100)
    table = only_table(chained(bob, ada))
    assert "quickfix (bob)" in "\n".join(standings.board([table]))
    assert "quickfix \\(bob\\)" in board([table])
    assert standings.standing(bob, table) == "rank 1 of 1 on NVIDIA H200, plain calls"
    assert standings.standing(ada, table).startswith(f"bob's better run {bob.run} (")
    assert standings.standing(ada, table).endswith(") for quickfix keeps rank 1 of 1 on NVIDIA H200, plain calls")


@pytest.mark.parametrize(("teams", "found"), [(NO_TEAMS, [("ada", "bob"), ("ada", "eve"), ("bob", "eve")]),
                                              (TEAMS, [("ada", "eve"), ("bob", "eve")])])  # fmt: skip
def test_members_of_one_team_are_not_reported_as_similar(teams: Teams, found: list[tuple[str, str]]) -> None:
    files = {
        GradedFile(author=author, run=author, name="k.py"): Submission.of("x = 1\n", "py", author=author)
        for author in ("ada", "bob", "eve")
    }
    assert [(pair.one.author, pair.other.author) for pair in similar(files, 0.8, teams)] == found
