"""Ranking: which verdicts meet in one table, who stands where, and what never depends on the order of the ledger."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import LedgerError
from harness.verdict import Doubt, DoubtCode, Outcome, Verdict
from leaderboard.record.entry import NO_HASH, Entry, encode
from leaderboard.record.fields import how_timed
from leaderboard.record.moderation import Moderation
from leaderboard.record.pooling import too_wide
from leaderboard.record.teams import Teams
from leaderboard.standings.ranking import CARD, Row, Table, overlap, rankings
from tests.ranked import held, rank
from tests.verdicts import EPOCH, REPLAYED, accepted, chained, failed

BASE = accepted(effort="thorough", speedups={"eager": 1.5})


def only_table(verdicts: list[Verdict]) -> Table:
    (table,) = rank(chained(*verdicts))
    return table


def standings(table: Table) -> list[tuple[int, str]]:
    return [(row.rank, row.author) for row in table.rows]


@pytest.mark.parametrize(
    ("intervals", "ranks"),
    [
        pytest.param([(10, 9, 11), (20, 19, 21), (30, 29, 31)], [1, 2, 3], id="all apart"),
        pytest.param([(10, 9, 11), (11, 10, 12), (30, 29, 31)], [1, 1, 3], id="a shared rank uses up places"),
        pytest.param([(10, 9, 11), (12, 11, 13), (14, 13, 15)], [1, 1, 3], id="neighbours do not chain"),
        pytest.param([(10, 9, 11), (12, 11, 13), (14, 12, 16), (15, 14, 20)], [1, 1, 3, 3], id="a new leader"),
        pytest.param([(10, 9, 11), (20, 17, 24), (21, 16, 23)], [1, 2, 2], id="one of two that overlap leads"),
        pytest.param([(10, 10, 12), (14, 12, 18), (15, 13, 19)], [1, 1, 3], id="a wide one goes to the nearest leader"),
        pytest.param([(10, 10, 10), (10, 10, 10)], [1, 1], id="equal and exact"),
        pytest.param([(10, 9, 11), (12, 12, 12)], [1, 2], id="one nanosecond apart"),
    ],
)
def test_overlap_with_the_leader_shares_a_rank(intervals, ranks):
    verdicts = [
        accepted(author=f"a{n}", score_ns=median, low_ns=low, high_ns=high)
        for n, (median, low, high) in enumerate(intervals)
    ]
    assert standings(only_table(verdicts)) == [(place, f"a{n}") for n, place in enumerate(ranks)]


def test_each_author_has_one_row_their_best():
    later = EPOCH + timedelta(hours=1)
    verdicts = [
        accepted(author="ada", score_ns=500, run="1" * 16, source="slow"),
        accepted(author="ada", score_ns=400, run="3" * 16, source="later", created_at=later),
        accepted(author="ada", score_ns=400, run="2" * 16, source="earlier"),
        accepted(author="bob", score_ns=300, run="4" * 16),
        failed(author="eve"),
    ]
    table = only_table(verdicts)
    assert [(row.author, row.run) for row in table.rows] == [("bob", "4" * 16), ("ada", "2" * 16)]


def test_earlier_is_a_moment_and_not_a_text():
    """14:30 in Tokyo comes before 06:00 in Greenwich, though its text does not."""
    tokyo = BASE.to_json().replace('"2026-01-01T00:00:00Z"', '"2026-01-01T14:30:00+09:00"')
    greenwich = BASE.to_json().replace('"2026-01-01T00:00:00Z"', '"2026-01-01T06:00:00Z"')
    other = BASE.submission.model_copy(update={"sha256": "a" * 64})
    first = Verdict.from_json(tokyo).model_copy(update={"run": "f" * 16, "submission": other})
    second = Verdict.from_json(greenwich).model_copy(update={"run": "0" * 16})
    assert only_table([second, first]).rows[0].run == "f" * 16


def test_a_row_has_the_facts_of_its_verdict():
    verdict = accepted(
        author="ada", name="fast.py", score_ns=2000, low_ns=1990, high_ns=2020, modes=("graphs", "calls", "graphs")
    )
    (row,) = only_table([verdict]).rows
    submission = verdict.submission
    assert (row.submission, row.language, row.sha256) == (submission.name, submission.language, submission.sha256)
    assert (row.run, row.seq, row.created_at, row.sandbox) == (verdict.run, 1, EPOCH, "docker")
    assert (row.score, row.card) == (verdict.score, verdict.environment.device_uuid_sha256)
    assert (row.modes, row.cases) == (("calls", "graphs"), 3)


def test_a_document_from_before_efforts_and_speedups_ranks():
    fields = json.loads(BASE.to_json())
    old = {key: value for key, value in fields.items() if key not in {"effort", "speedups", "doubts"}}
    [table] = rank([encode(None, json.dumps(old, separators=(",", ":")).encode())[0]])
    assert [(row.run, row.effort, row.speedups) for row in table.rows] == [(BASE.run, "default", ())]


def test_a_table_knows_its_baselines():
    fast, other = accepted(author="ada", speedups={"eager": 1.5, "compiled": 1.1}), accepted(author="bob")
    table = only_table([fast, other])
    assert table.baseline_names == ("compiled", "eager")
    rows = {row.author: row for row in table.rows}
    assert rows["ada"].over("eager") == fast.speedups[0].ratio
    assert rows["bob"].over("eager") is None


@pytest.mark.parametrize(
    "difference",
    [
        pytest.param({"problem": "matmul"}, id="problem"),
        pytest.param({"problem_version": "2"}, id="problem hash"),
        pytest.param({"protocol": 2}, id="protocol"),
        pytest.param({"device_name": "NVIDIA B200"}, id="device"),
        pytest.param({"device_kind": "cpu"}, id="kind of device"),
        pytest.param({"sandbox": "process"}, id="isolation"),
        pytest.param({"interpreted": True}, id="interpreter"),
        pytest.param({"modes": REPLAYED}, id="timing"),
    ],
)
def test_different_questions_are_different_tables(difference):
    tables = rank(chained(accepted(author="ada"), accepted(author="bob", **difference)))
    assert sorted(standings(table) for table in tables) == [[(1, "ada")], [(1, "bob")]]
    assert tables[0].key != tables[1].key


@pytest.mark.parametrize(
    ("timing", "device_kind", "said"),
    [
        ("replayed", "cuda", "replayed"),
        ("calls", "cuda", "plain calls"),
        ("sealed", "cuda", "sealed rounds"),
        ("calls", "cpu", ""),
        ("sealed", "cpu", ""),
    ],
)
def test_a_table_says_how_it_was_timed_where_there_are_several_ways(timing, device_kind, said):
    assert how_timed(timing, device_kind) == said
    modes = REPLAYED if timing == "replayed" else ("calls",)
    key = only_table([accepted(modes=modes, timing=timing, device_kind=device_kind)]).key
    assert key.title == ("NVIDIA H200" + (f", {said}" if said else ""))


def test_efforts_and_sandboxes_that_isolate_share_a_table():
    ada, bob = accepted(author="ada", effort="quick"), accepted(author="bob", effort="thorough", sandbox="bwrap")
    assert [(row.effort, row.sandbox) for row in only_table([ada, bob]).rows] == [
        ("quick", "docker"), ("thorough", "bwrap"),
    ]  # fmt: skip


def test_the_order_of_tables():
    wanted = [
        accepted(author="1", problem="matmul"),
        accepted(author="2", problem_version="2"),
        accepted(author="3", protocol=2),
        accepted(author="4", modes=REPLAYED),
        accepted(author="5", device_name="NVIDIA B200"),
        accepted(author="6"),
        accepted(author="7", device_kind="cpu", device_name="A CPU"),
        accepted(author="8", interpreted=True),
        accepted(author="9", sandbox="process"),
    ]
    late_rerun_of_the_old_hash = accepted(author="10", score_ns=99_000)
    tables = rank(chained(*reversed(wanted[2:]), *wanted[:2], late_rerun_of_the_old_hash))
    assert [table.rows[0].author for table in tables] == ["1", "2", "3", "4", "5", "6", "7", "8", "9"]


def test_only_accepted_verdicts_rank():
    verdicts = [failed(outcome) for outcome in Outcome if outcome not in (Outcome.ACCEPTED, Outcome.INCOMPLETE)]
    assert rank(chained(*verdicts)) == []
    assert rank([]) == []


def test_kinds_that_are_not_known_are_skipped():
    foreign = Entry(seq=1, prev=NO_HASH, hash=NO_HASH, kind="withdrawal", document=b'{"outcome":"accepted"}')
    assert rank([foreign]) == []


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"schema_version": 3}, "schema_version"),
        ({"effort": "heroic"}, "effort"),
        ({"speedups": [{"baseline": "eager"}]}, r"speedups\.0\.sha256"),
    ],
)
def test_a_verdict_that_a_later_version_wrote_is_refused(changes, key):
    document = json.dumps({**json.loads(BASE.to_json()), **changes}, separators=(",", ":")).encode()
    with pytest.raises(LedgerError, match=rf"ledger entry 1: {key}: .*read it with the version that wrote it"):
        rank([encode(None, document)[0]])


def test_text_that_looks_like_keys_changes_nothing():
    """What a submission printed, or is called, is no part of its verdict."""
    trap = '","schema_version":1,"score":{"median_ns":1},"seeds":[],"benchmarks":[],"score":{"median_ns":1}'
    honest, trapped = accepted(run="1" * 16), accepted(run="1" * 16, log=trap, name=trap)
    rows = [replace(only_table([verdict]).rows[0], submission="") for verdict in (honest, trapped)]
    assert rows[0] == rows[1]


SCORES = st.tuples(st.integers(900, 1100), st.integers(0, 60), st.sampled_from([0, 10, 60, 900]))


@given(
    scores=st.lists(
        st.tuples(st.sampled_from("abcdefgh"), st.sampled_from("123"), SCORES, st.integers(0, 3)),
        min_size=1,
        max_size=20,
    ),
    random=st.randoms(use_true_random=False),
)
def test_ranks_follow_from_the_verdicts_alone(scores, random):
    verdicts = [
        BASE.model_copy(
            update={
                "submission": BASE.submission.model_copy(update={"author": author, "sha256": source * 64}),
                "score": BASE.score.model_copy(
                    update={"median_ns": median, "low_ns": median - below, "high_ns": median + above}
                ),
                "created_at": EPOCH + timedelta(minutes=minute),
                "run": f"{index:016x}",
            }
        )
        for index, (author, source, (median, below, above), minute) in enumerate(scores)
    ]
    table = only_table(verdicts)
    random.shuffle(verdicts)
    again, line = only_table(verdicts), {"rows": {"__all__": {"seq"}}}
    assert again.model_dump(exclude=line) == table.model_dump(exclude=line), "the order of the ledger does not matter"

    ranked = table.ranked
    assert table.rows[: len(ranked)] == ranked, "those without a rank stand last"
    for rows in (ranked, table.rows[len(ranked) :]):
        medians = [row.score.median_ns for row in rows]
        assert medians == sorted(medians)
        assert len({row.author for row in rows}) == len(rows), "an author has one row that ranks, and one that does not"
    assert all(too_wide(row.score) == (row.rank is None) == (row.state == "too_wide") for row in table.rows)
    assert sorted({row.author for row in table.rows}) == sorted({author for author, *_ in scores})
    ranks = [row.rank for row in ranked]
    assert ranks == sorted(ranks)
    assert ranks[:1] in ([], [1])
    for row in table.rows:
        gradings = [score for author, source, score, _ in scores if (author, source * 64) == (row.author, row.sha256)]
        assert row.gradings == len(gradings)
        assert min(m for m, _, _ in gradings) <= row.score.median_ns <= max(m for m, _, _ in gradings)
    for above, row in enumerate(ranked):
        leader = ranked[row.rank - 1]
        assert leader.rank == row.rank, "a rank is one more than the number of rows above its leader"
        assert overlap(leader.score, row.score)
        if row is leader and above:
            assert not overlap(ranked[ranked[above - 1].rank - 1].score, row.score)


def graded(*scores, author="ada", source="one", **changes):
    """Gradings of one source, an hour apart."""
    found = []
    for number, (median, low, high) in enumerate(scores):
        score = {"score_ns": median, "low_ns": low, "high_ns": high, "created_at": EPOCH + timedelta(hours=number)}
        found.append(accepted(author=author, source=source, **score, **changes))
    return found


def test_gradings_of_a_source_are_pooled_and_the_newest_is_shown():
    gradings = graded((1000, 980, 1020), (900, 880, 920), (1000, 980, 1020))
    elsewhere = graded((10, 10, 10), device_name="NVIDIA L4") + graded((1100, 1090, 1110), author="bob")
    row = only_table(gradings).rows[0]
    assert (row.gradings, row.run, row.created_at) == (3, gradings[2].run, gradings[2].created_at)
    assert 900 < row.score.low_ns < row.score.median_ns == 966 < row.score.high_ns
    for table in rank(chained(*gradings, *elsewhere)):
        for other in table.rows:
            if (other.author, table.key.device_name) == ("ada", "NVIDIA H200"):
                assert other.score == row.score, "other devices, and the same bytes by others, are not pooled with it"


def test_one_lucky_grading_does_not_improve_the_pooled_time():
    lucky = graded(*[(1000, 990, 1010)] * 7, (800, 792, 808))
    rival = accepted(author="bob", score_ns=850, low_ns=840, high_ns=860)
    assert standings(only_table([*lucky, rival])) == [(1, "bob"), (2, "ada")]


def test_a_grading_that_is_set_aside_is_not_pooled():
    one, other = graded((1000, 980, 1020), (500, 490, 510))
    event = Moderation(run=other.run, action="disqualify", actor="g", reason="why", created_at=EPOCH)
    (table,) = rank(chained(one, other, event))
    assert [(row.score.median_ns, row.gradings) for row in table.rows] == [(1000, 1)]
    assert [run.run for run in table.set_aside] == [event.run]


def test_after_a_software_change_only_the_newest_gradings_count():
    old, new = graded((1000, 990, 1010), (1000, 990, 1010)), graded((700, 690, 710), (700, 690, 710))
    environment = BASE.environment.model_copy(update={"driver": "600.1"})
    new = [
        each.model_copy(update={"environment": environment, "created_at": EPOCH + timedelta(days=1)}) for each in new
    ]
    assert [(row.score.median_ns, row.gradings) for row in only_table(old + new).rows] == [(700, 2)]
    assert [(row.score.median_ns, row.gradings) for row in only_table(new[:1] + old).rows] == [(700, 1)]


def test_gradings_on_another_card_than_the_newest_one_are_not_pooled():
    other = graded((1033, 1030, 1036), (1033, 1030, 1036), card="one")
    here = graded((1000, 998, 1002), (1000, 998, 1002), card="another")
    here = [verdict.model_copy(update={"created_at": EPOCH + timedelta(days=1)}) for verdict in here]
    (row,) = only_table(other + here).rows
    assert (row.score.median_ns, row.gradings, row.card) == (1000, 2, here[0].environment.device_uuid_sha256)


def on_card(card: str, author: str, median: int, half: int = 2) -> Verdict:
    return accepted(author=author, score_ns=median, low_ns=median - half, high_ns=median + half, card=card)


@pytest.mark.parametrize(
    ("rows", "ranks"),
    [
        pytest.param([("a", 1353), ("b", 1398)], [1, 1], id="one kernel on two H100s"),
        pytest.param([("a", 1353), ("a", 1398)], [1, 2], id="two kernels on one of them"),
        pytest.param([("a", 1000), ("b", 1033), ("a", 1040), ("b", 1074)], [1, 1, 3, 3], id="two kernels on both"),
        pytest.param([("a", 1000), ("b", 1005), ("b", 1035)], [1, 1, 3], id="apart on the card that does not lead"),
        pytest.param([("a", 1000), ("b", 1033), ("c", 1039)], [1, 1, 1], id="three cards"),
        pytest.param([("a", 1000), ("b", 1090)], [1, 2], id="further apart than cards are"),
        pytest.param([("a", 1000), ("b", 1030), ("c", 1080), ("b", 1085)], [1, 1, 3, 3], id="a new group"),
    ],
)
def test_times_of_two_cards_share_a_rank_unless_they_are_further_apart_than_cards_are(rows, ranks):
    verdicts = [on_card(card, f"a{n}", median) for n, (card, median) in enumerate(rows)]
    table = only_table(verdicts)
    assert standings(table) == [(place, f"a{n}") for n, place in enumerate(ranks)]
    assert table.cards == len({card for card, _ in rows})


NARROW = st.tuples(st.integers(900_000, 1_100_000), st.integers(0, 20_000), st.integers(0, 20_000))


def scored(card: str, author: str, interval: tuple[int, int, int], factor: float = 1.0) -> Verdict:
    """A time with its interval, on a card that takes so many times as long for everything."""
    median, below, above = interval
    low, middle, high = (round(ns * factor) for ns in (median - below, median, median + above))
    return accepted(author=author, score_ns=middle, low_ns=low, high_ns=high, card=card)


@given(intervals=st.lists(NARROW, min_size=1, max_size=12), card=st.sampled_from(["a", "b"]))
def test_on_one_card_ranks_do_not_depend_on_which_it_is(intervals, card):
    """There they are what overlap with the leader alone makes of them."""
    rows = only_table([scored(card, f"a{n:02}", interval) for n, interval in enumerate(intervals)]).rows
    leader = rows[0]
    for above, row in enumerate(rows):
        if not overlap(leader.score, row.score):
            leader = row
            assert row.rank == above + 1
        assert row.rank == leader.rank


@given(intervals=st.lists(st.tuples(NARROW, st.sampled_from("abc")), min_size=1, max_size=12))
def test_rows_of_one_rank_and_card_overlap(intervals):
    """Than the first of the same rank on that card, as without other cards."""
    verdicts = [scored(card, f"a{n:02}", interval) for n, (interval, card) in enumerate(intervals)]
    first: dict[tuple[int | None, str | None], Row] = {}
    for row in only_table(verdicts).rows:
        assert overlap(first.setdefault((row.rank, row.card), row).score, row.score)


@given(one=NARROW, other=NARROW, factor=st.floats(1, CARD - 0.001))
def test_whether_two_kernels_tie_does_not_depend_on_the_cards_that_they_met(one, other, factor):
    """If they tie on one card they tie on any two, and if they are twice as far apart as cards are, on none."""
    ranks = [
        [row.rank for row in only_table([scored("a", "ada", one, mine), scored("b", "bob", other, theirs)]).rows]
        for mine, theirs in ((1.0, factor), (factor, 1.0))
    ]
    first, second = only_table([scored("a", "ada", one), scored("a", "bob", other)]).rows
    if first.rank == second.rank:
        assert ranks == [[1, 1], [1, 1]]
    if second.score.low_ns > CARD * CARD * first.score.high_ns:
        assert ranks == [[1, 2], [1, 2]]


def test_a_result_with_a_wide_interval_has_no_rank():
    """As on a busy CPU: 380 µs [31, 407] shared rank 1 with 70.7 [44, 91], and neither is known."""
    wide = accepted(author="ada", score_ns=380_000, low_ns=31_000, high_ns=407_000)
    wider = accepted(author="bob", score_ns=70_700, low_ns=44_000, high_ns=91_000)
    known = accepted(author="eve", score_ns=300_000, low_ns=240_000, high_ns=360_000)
    table = only_table([wide, wider, known])
    assert [(row.rank, row.author, row.state) for row in table.rows] == [
        (1, "eve", "ranks"),
        (None, "bob", "too_wide"),
        (None, "ada", "too_wide"),
    ]


def test_an_author_keeps_a_ranked_source_next_to_a_faster_unranked_one():
    known = accepted(author="ada", score_ns=1000, source="known")
    fast = accepted(author="ada", score_ns=500, low_ns=300, high_ns=800, source="fast")
    slow = accepted(author="ada", score_ns=2000, low_ns=900, high_ns=4000, source="slow")
    table = only_table([fast, slow, known])
    assert [(row.rank, row.run) for row in table.rows] == [(1, known.run), (None, fast.run)]


def test_results_that_were_not_replayed_have_no_rank_and_come_last():
    replayed = accepted(author="ada", score_ns=2000, modes=REPLAYED)
    wide = accepted(author="eve", score_ns=5000, low_ns=2000, high_ns=9000, modes=REPLAYED)
    plain = accepted(author="bob", score_ns=1000, ranked_timing="replayed")
    slower = accepted(author="cyd", score_ns=4000, low_ns=1000, high_ns=9000, ranked_timing="replayed")
    table = only_table([slower, plain, wide, replayed])
    assert (table.key.timing, table.key.title) == ("replayed", "NVIDIA H200, replayed")
    assert [(row.rank, row.author, row.state, bool(row.no_rank)) for row in table.rows] == [
        (1, "ada", "ranks", False),
        (None, "eve", "too_wide", True),
        (None, "bob", "not_replayed", True),
        (None, "cyd", "not_replayed", True),
    ]
    assert [row.author for row in table.ranked] == ["ada"]
    assert [row.author for row in table.comparable] == ["ada", "eve"]


@pytest.mark.parametrize(("low_ns", "state"), [(1990, "ranks"), (900, "too_wide")])
@pytest.mark.parametrize("source", ["same", "another"])
def test_an_author_with_a_replayed_result_has_no_row_for_others(low_ns, state, source):
    replayed = accepted(score_ns=2000, low_ns=low_ns, source="same", modes=REPLAYED)
    plain = accepted(score_ns=1000, source=source, ranked_timing="replayed")
    mate = accepted(author="bob", score_ns=1000, ranked_timing="replayed")
    for verdicts in ([replayed, plain], [plain, replayed]):
        assert [(row.run, row.state) for row in only_table(verdicts).rows] == [(replayed.run, state)]
    (table,) = rank(chained(replayed, mate), teams=Teams({"both": ("ada", "bob")}))
    assert [(row.run, row.state) for row in table.rows] == [(replayed.run, state)]


def test_replayed_and_other_gradings_are_not_pooled():
    replayed = graded((1000, 980, 1020), (1000, 980, 1020), modes=REPLAYED)
    plain = graded((500, 490, 510), (500, 490, 510), (500, 490, 510), ranked_timing="replayed")
    with held(chained(*replayed, *plain)) as lines:
        (ranking,) = rankings(lines)
    pooled = [(source.state, source.score.median_ns, len(source.gradings)) for source in ranking.sources]
    assert pooled == [("ranks", 1000, 2), ("not_replayed", 500, 3)]
    assert [(row.rank, row.gradings, row.run) for row in ranking.table.rows] == [(1, 2, replayed[1].run)]


def test_more_gradings_of_a_wide_one_rank():
    wide = [(1000, 800, 1250)] * 4
    assert [row.rank for row in only_table(graded(*wide[:1])).rows] == [None]
    assert [row.rank for row in only_table(graded(*wide)).rows] == [1]


def test_a_time_without_a_time_zone_is_an_error():
    document = accepted().to_json().replace('"created_at":"2026-01-01T00:00:00Z"', '"created_at":"2026-01-01T00:00:00"')
    entries = [encode(None, each.encode())[0] for each in (document, accepted(author="eve").to_json())]
    with pytest.raises(LedgerError, match="created_at"):
        rank(entries)


@pytest.mark.parametrize("modes", [REPLAYED, ("calls",) * 4])
def test_answers_that_can_be_looked_up_have_no_rank(modes):
    doubt = Doubt(code=DoubtCode.KNOWN_INPUTS, text="drawn from 65,536 seeds")
    other = Doubt(code=DoubtCode.DRIFT, text="it became slower")
    honest = accepted(author="ada", score_ns=2000, modes=modes).model_copy(update={"doubts": (other,)})
    looked_up = accepted(author="bob", score_ns=1000, modes=modes).model_copy(update={"doubts": (doubt, other)})
    assert (honest.no_rank, looked_up.no_rank) == (None, "known_inputs")
    table = only_table([looked_up, honest])
    assert [(row.rank, row.author, row.state) for row in table.rows] == [
        (1, "ada", "ranks"),
        (None, "bob", "known_inputs"),
    ]
    assert [row.author for row in table.comparable] == ["ada"]
