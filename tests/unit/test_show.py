"""What a terminal shows of a result: every number that decides, every reason, and no control characters."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import pytest

from harness.compare import describe
from harness.problem import load
from harness.problem.schedule import Late
from harness.profiling.compilation import Compilation
from harness.submission import Submission
from harness.verdict import (
    BadElement,
    Budget,
    CaseResult,
    Check,
    Doubt,
    Effort,
    Mismatch,
    Outcome,
    OutputCheck,
    Roofline,
    Telemetry,
    TimedRound,
    Verdict,
)
from kernelmark.text import difference, findings, problem, problems, show, standings
from kernelmark.text.problems import BoardPlace, ListedProblem, ProblemList
from kernelmark.text.terminal import visible
from leaderboard.record.ledger import JsonlLedger
from leaderboard.record.pooling import NO_RANK
from leaderboard.standings.gradings import pooled
from leaderboard.standings.ranking import Table
from tests.grading import written
from tests.old_project import DATA
from tests.ranked import held, rank
from tests.verdicts import EPOCH, REPLAYED, accepted, as_check, chained, failed, interval, kernel, replayed_benchmark

HOSTILE = "\x1b[31m[red]evil[/red]\r\n\x9b2J\u202ekernel.py\udc80"
PROBLEMS = Path(__file__).parents[2] / "problems"
LATE, OFF = Late(days=2, penalty_per_day=0.1), "10 % off for each day begun"


def text(lines: Iterable[str]) -> str:
    return "\n".join(lines)


def tables(*verdicts: Verdict) -> list[Table]:
    return rank(chained(*verdicts))


def wrong(**changes: object) -> Verdict:
    budget = Budget(error=0.5, allowed=4.8e-7, reference_error=1.2e-7, factor=4.0, floor=1e-8)
    mismatch = Mismatch(
        output="y", shape=(3, 5), dtype="float32", wrong=12, total=15, nan_got=3, worst_index=(2, 4),
        first=(BadElement(index=(0, 1), got="nan", expected="0.25", error="nan"),
               BadElement(index=(2, 4), got="1.5", expected="1", error="0.5")),
        hints=("only the last tile is wrong",),
    )  # fmt: skip
    output = OutputCheck(
        output="y", dtype="float32", correct=False, max_error=budget, rms_error=budget, mismatch=mismatch
    )
    params: dict[str, int | str] = {"rows": 3, "cols": 5}
    case = CaseResult(
        name="small", params=params, outcome=Outcome.WRONG_ANSWER, message="y is wrong", outputs=(output,)
    )
    later = case.model_copy(update={"name": "large"})
    hidden = CaseResult(name="secret", hidden=True, outcome=Outcome.WRONG_ANSWER, message="wrong answer")
    base = failed(message="2 of 4 cases are wrong")
    return base.model_copy(update={"tests": (base.tests[0], case, later, hidden), **changes})


@pytest.mark.parametrize(
    ("character", "escape"),
    [("\x1b", "\\x1b"), ("\r", "\\x0d"), ("\x9b", "\\x9b"), ("\u202e", "\\u202e"), ("\u2028", "\\u2028"),
     ("\U000e0001", "\\U000e0001"), ("\udc80", "\\udc80"), ("é", "é"), ("×", "×")],
)  # fmt: skip
def test_control_characters_are_escaped(character: str, escape: str) -> None:
    assert visible(f"a{character}b") == f"a{escape}b"


def test_an_accepted_verdict_shows_times_score_run_and_standing() -> None:
    ada, bob = accepted(author="ada", score_ns=57_300), accepted(author="bob", score_ns=91_000)
    shown = text(show.verdict(bob, tables(ada, bob)[0]))
    assert shown.startswith("accepted: ")
    assert "tests       4 of 4 right" in shown
    assert "2048 square" in shown
    assert "91.0 µs  [90.5, 91.5]" in shown
    assert "standing    rank 2 of 2 on NVIDIA H200, plain calls\n" in shown
    assert f"run         {bob.run}" in shown
    assert "not isolated" not in shown
    assert "interpreter" not in shown


def test_hidden_tests_are_counted_where_all_are_right() -> None:
    secret = CaseResult(name="secret", hidden=True, outcome=Outcome.ACCEPTED, message="")
    shown = accepted()
    assert "5 of 5 right, 1 of them with hidden inputs" in text(
        show.check(shown.model_copy(update={"tests": (*shown.tests, secret)}))
    )
    assert "hidden" not in text(show.check(shown))


def test_tests_for_gpus_are_reported_as_left_out() -> None:
    here = accepted(device_kind="cpu")
    for shown in (show.verdict(here, for_gpus=7), show.check(here, for_gpus=7)):
        assert "note        on a GPU there are 7 more tests\n" in text(shown) + "\n"
    assert "more test" not in text(show.verdict(here))


def test_a_shared_rank_and_a_better_run_are_shown() -> None:
    first, peer = accepted(score_ns=50_000), accepted(author="bob", score_ns=50_100)
    slower = accepted(score_ns=90_000, source="another")
    [table] = tables(first, slower, peer)
    assert standings.standing(peer, table) == "rank 1 of 2 on NVIDIA H200, plain calls, shared"
    assert standings.standing(slower, table).startswith(f"ada's better run {first.run} (50.0 µs [")


def test_why_a_result_does_not_rank_is_said_with_the_remedy() -> None:
    wide = accepted(score_ns=380_000, low_ns=31_000, high_ns=407_000, source="wide")
    remedy = "grade it again on a quiet machine or with --thorough: gradings of one source are pooled"
    why = "none: interval too wide to rank (380 µs [31, 407], more than 1.5 × from low to high); "
    [table] = tables(wide)
    assert standings.standing(wide, table) == why + remedy
    assert f"standing    {why}" in "\n".join(show.verdict(wide, table))
    interpreted = accepted(score_ns=380_000, low_ns=31_000, high_ns=407_000, device_kind="cpu", interpreted=True)
    assert standings.standing(interpreted, tables(interpreted)[0]).endswith("Triton's interpreter; grade it on a GPU")
    thorough = wide.model_copy(update={"effort": "thorough"})
    assert "; grade it again on a quiet machine: gradings" in standings.standing(thorough, table)
    known = accepted(score_ns=500_000, source="known")
    [table] = tables(wide, known)
    assert (
        standings.standing(wide, table)
        == f"{why}{remedy}; run {known.run} keeps rank 1 of 1 on NVIDIA H200, plain calls"
    )
    assert standings.standing(known, table) == "rank 1 of 1 on NVIDIA H200, plain calls"


def test_a_short_time_may_have_no_lower_bound() -> None:
    short = [accepted(score_ns=100, low_ns=0, high_ns=400, source="short") for _ in range(2)]
    [table] = tables(*short)
    why = "none: interval too wide to rank (100 ns [12, 832] of 2 gradings, more than 1.5 × from low to high); grade"
    assert standings.standing(short[0], table).startswith(why)


def test_the_standing_of_a_source_is_that_of_all_its_gradings() -> None:
    first, again = accepted(score_ns=50_000), accepted(score_ns=52_000, created_at=EPOCH + timedelta(hours=1))
    rival = accepted(author="bob", score_ns=40_000)
    [table] = tables(first, rival, again)
    assert (
        standings.standing(again, table)
        == "rank 2 of 2 on NVIDIA H200, plain calls, by 2 gradings: 51.0 µs [49.1, 53.0]"
    )
    assert f"{again.run}  2 gradings\n" in "\n".join(standings.board([table])) + "\n"


def test_disagreeing_gradings_are_named_as_the_reason_for_a_wide_interval() -> None:
    runs = [accepted(score_ns=each, created_at=EPOCH + timedelta(hours=i)) for i, each in enumerate((30_000, 90_000))]
    [table] = tables(*runs)
    assert "; its gradings disagree, so something else used the machine; grade" in standings.standing(runs[1], table)


@pytest.mark.parametrize(
    ("sandbox", "interpreted", "notes"),
    [("process", False, [show.NOT_ISOLATED]), ("bwrap", True, [show.INTERPRETED]), ("bwrap", False, []),
     ("process", True, [show.NOT_ISOLATED, show.INTERPRETED])],
)  # fmt: skip
def test_limitations_of_a_result_are_shown_with_a_remedy(sandbox: str, interpreted: bool, notes: list[str]) -> None:
    verdict = accepted(sandbox=sandbox, interpreted=interpreted)  # type: ignore[arg-type]
    for lines in (show.verdict(verdict), show.run(verdict), show.check(verdict)):
        shown = text(lines)
        assert [note for note in (show.NOT_ISOLATED, show.INTERPRETED) if note in shown] == notes
    assert "install Docker or bubblewrap; `kernelmark doctor` says how" in show.NOT_ISOLATED
    assert "not how fast it is; a speedup needs a GPU" in show.INTERPRETED


def test_a_kernel_that_the_interpreter_ran_has_no_speedup() -> None:
    slow = accepted(speedups={"eager": 0.01}, interpreted=True)
    for lines in (show.verdict(slow), show.run(slow), standings.board(tables(slow))):
        assert "× eager" not in text(lines)
    assert "× eager" in text(show.verdict(accepted(speedups={"eager": 0.01})))


def test_a_compiler_that_did_not_get_through_all_tests_says_how_many() -> None:
    partly = Compilation("sm_90", tried=9, cases=10, unknown="gave no answer within 5 s")
    assert show.compilation(partly) == "  compiles    for a GPU (sm_90), as far as was tried: 9 of 10 cases"


largest = (
    "y, largest relative error where both are finite: your error 0.5, "
    "allowed 4.8e-07 (4 × the reference's own in float32)"
)


def test_a_wrong_answer_shows_every_failed_case_and_one_table() -> None:
    shown = text(show.verdict(wrong()))
    assert shown.startswith("wrong answer: 2 of 4 cases are wrong\n")
    assert "tests       1 of 4 right" in shown
    for case in ("2 tests (small, large): wrong answer: y is", "secret (hidden): wrong answer\n"):
        assert f"failed      {case}" in shown
    assert shown.count("elements wrong") == 1
    assert "y [3, 5] float32 in small: 12 of 15 elements wrong (80 %), worst at [2, 4]" in shown
    assert "NaN: 3 in yours, 0 expected" in shown
    assert "    index   got  expected  absolute error\n" in shown
    assert "    [0, 1]  nan      0.25             nan\n    [2, 4]  1.5         1             0.5\n" in shown
    assert shown.count(largest) == 1
    assert "hint: only the last tile is wrong" in shown
    in_full = text(show.run(wrong()))
    assert (in_full.count("elements wrong"), in_full.count(largest)) == (2, 2), "of every case"


def test_only_the_first_kinds_of_failure_are_shown_in_full() -> None:
    base = wrong()
    failing = [
        CaseResult(name=f"test {n}", outcome=Outcome.WRONG_ANSWER, message=f"{n} elements wrong") for n in range(8)
    ]
    late = CaseResult(name="late", outcome=Outcome.TIMEOUT, message="too slow")
    hidden = [
        CaseResult(name=f"h{n}", hidden=True, outcome=Outcome.WRONG_ANSWER, message="wrong answer") for n in range(2)
    ]
    shown = lines_of(show.verdict(base.model_copy(update={"tests": (*failing, late, *hidden)})), "failed")
    assert shown == [
        "failed      test 0: wrong answer: 0 elements wrong",
        "failed      test 1: wrong answer: 1 elements wrong",
        "failed      test 2: wrong answer: 2 elements wrong",
        "failed      5 tests (test 3, test 4, test 5, test 6, test 7): wrong answer",
        "failed      1 test (late): timeout",
        "failed      2 hidden tests (h0, h1): wrong answer",
    ]


@pytest.mark.parametrize(
    ("budget", "dtype", "expected"),
    [
        (Budget(error=3.1e-7, allowed=4.8e-7, reference_error=1.2e-7, factor=4, floor=1e-9), " in float32",
         "your error 3.1e-07, allowed 4.8e-07 (4 × the reference's own in float32)"),
        (Budget(error=0, allowed=4.8e-7, reference_error=0, factor=4, floor=4.8e-7), "",
         "your error 0, allowed 4.8e-07 (the floor; 4 × the reference's own is less)"),
    ],
)  # fmt: skip
def test_a_budget_is_explained(budget: Budget, dtype: str, expected: str) -> None:
    assert findings.budget_text(budget, dtype) == expected


def test_show_run_holds_everything_of_the_document() -> None:
    doubt = Doubt(code="throttled", text="the clock fell by 3 %")
    verdict = accepted(log="building\n", modes=("calls", "calls")).model_copy(update={"doubts": (doubt,)})
    shown = text(show.run(verdict))
    benchmark = verdict.benchmarks[0]
    assert "plain calls: the submission's own code ran" in shown
    assert shown.count("round  calls") == 2
    assert f"{len(benchmark.rounds)}    400  23.6 ms  57.5 µs" in shown
    for expected in (
        verdict.run, verdict.problem.sha256, verdict.submission.sha256, "torch 2.11.0", "driver 580.65", "700 W",
        str(verdict.environment.image_digest), "throttled: the clock fell by 3 %", "    building",
        "your error 2.1e-07, allowed 4.8e-07", "600 µs ± 7.20 µs of a round",
        "134,217,728 bytes at least, 2342 GB/s",
    ):  # fmt: skip
        assert expected in shown, expected
    assert verdict.seeds
    assert not any(str(seed) in shown for seed in verdict.seeds), "numbers that tell a reader nothing"


def test_of_a_long_log_both_ends_are_shown_and_where_the_rest_is() -> None:
    verdict = accepted(log="".join(f"line {i}\n" for i in range(250)))
    for lines, where in (
        (show.verdict(verdict), f"kernelmark show {verdict.run}"),
        (show.check(verdict), "--format json"),
    ):
        log = text(lines).partition("  log\n")[2].splitlines()[:22]
        assert log[0] == "    line 0"
        assert log[9:12] == ["    line 9", f"    [... 230 lines; `{where}` shows them ...]", "    line 240"]
        assert log[20] == "    line 249"
    assert "    line 125\n" in text(show.run(verdict))


def test_a_replayed_run_shows_clocks_and_kernels() -> None:
    result = accepted(modes=REPLAYED, speedups={"eager": 1.5}, roofline=Roofline(share=0.913, limit="memory"))
    lines = list(show.verdict(result))
    [head] = [line for line in lines if "of roofline" in line]
    for name in ("2048 square", "geometric mean"):
        [line] = [line for line in lines if name in line]
        assert line.index("[57.0, 57.6]") == head.index("95 % interval"), "no column is missing or too many"
        assert line.index("1.500 [") == head.index("× eager")
    kernels = (
        kernel("first", grid=(132, 2, 1), cluster=(2, 1, 1), registers=168, launches=12, local_bytes=1_024),
        kernel("second", time_ns=None),
    )
    case = replayed_benchmark(0, interval(57_300), kernels=kernels, speedups={"eager": 1.5})
    case = case.model_copy(update={"host_ns": 81_000})
    shown = [line.strip() for line in show.run(result.model_copy(update={"benchmarks": (case,)}))]
    sha256 = case.baselines[0].sha256[:12]
    for expected in (
        "mode        replayed: a launcher made the recorded calls",
        "CUPTI       56.9 µs, 57.3 µs, 57.7 µs (p10, median, p90), from the first kernel to the last, 40 calls",
        "events      59.8 µs in the median; for a kernel of our own, 2.40 µs more than CUPTI",
        "host clock  71.3 µs in the median; for a kernel of our own, 11.3 µs more than the events",
        "stopped     the intervals were narrow enough",
        f"× eager     1.500 [1.492, 1.507] at 96.9 %, which took 86.0 µs in 40 calls, sha256 {sha256}",
        "device      SM 1875–1980 MHz, temperature 41 °C",
        "traffic     134,217,728 bytes at least, 2342 GB/s",
        "host time   the host takes 81.0 µs to launch what the GPU does in 57.3 µs: "
        "without replay, launches would bound it",
    ):  # fmt: skip
        assert expected in shown, expected
    at = shown.index(next(line for line in shown if line.startswith("kernel ")))
    assert [re.split("  +", line) for line in shown[at : at + 3]] == [
        ["kernel", "grid", "block", "registers", "shared (B)", "local (B)", "launches", "time"],
        ["first", "132×2×1", "256×1×1, clusters of 2×1×1", "168", "49,152", "1,024", "12", "55.1 µs"],
        ["second", "2048×1×1", "256×1×1", "38", "49,152", "0", "1"],
    ]
    assert "round" not in text(shown)


def test_a_kernels_name_is_cut_and_obeyed_by_no_terminal() -> None:
    mangled = "_ZN7cutlass13device_kernelIN4" + "x" * 3000 + "EEEvNT_6ParamsE"
    case = replayed_benchmark(0, interval(57_300), kernels=(kernel("a\x1b[2J\r\n\u202eb"), kernel(mangled)))
    result = accepted(modes=REPLAYED).model_copy(update={"benchmarks": (case,)})
    shown = text(show.run(result))
    assert "  a\\x1b[2J\\x0d\\x0a\\u202eb  " in shown
    assert "  _ZN7cutlass13device_ker…xEEEvNT_6ParamsE  2048×1×1" in shown, "how it begins and how it ends"
    assert not set(shown) & set("\x1b\r\u202e")


def test_a_run_of_version_1_explains_its_times() -> None:
    first = next(JsonlLedger(DATA / "project-0.1.0/leaderboard/results/square.jsonl").read()).verdict
    shown = text(show.run(first))
    for expected in ("sealed rounds, as before protocol 5", "captured calls", "which took 9.68 µs in 6 rounds"):
        assert expected in shown, expected
    for gone in ("claimed", "toleran", " ± "):
        assert gone not in shown, gone


def test_nothing_of_a_participant_reaches_the_terminal_raw() -> None:
    base = wrong(message=HOSTILE, log=HOSTILE, traceback=f"line 1\n{HOSTILE}")
    evil = base.model_copy(
        update={
            "submission": base.submission.model_copy(update={"name": HOSTILE}),
            "environment": base.environment.model_copy(update={"device_name": HOSTILE}),
            "tests": tuple(case.model_copy(update={"message": HOSTILE}) for case in base.tests),
        }
    )
    [table] = tables(accepted(name=HOSTILE.replace("\udc80", "")))
    for lines in (show.check(evil), show.verdict(evil), show.run(evil), standings.board([table])):
        for line in lines:
            assert not any(c in line for c in "\x1b\r\n\x9b\u202e\udc80"), line
    assert "\\x1b[31m[red]evil[/red]" in text(show.verdict(evil))


def test_a_check_of_some_tests_is_not_taken_for_a_whole_one() -> None:
    whole = as_check(accepted()).model_dump()
    part = {**whole, "outcome": "incomplete", "message": "the 4 tests that ran are right (2 not run)"}
    with pytest.raises(ValueError, match="accepted needs"):
        Check.model_validate({**whole, "tests_not_run": 2})
    with pytest.raises(ValueError, match="incomplete needs"):
        Check.model_validate(part)
    shown = text(show.check(Check.model_validate({**part, "tests_not_run": 2})))
    assert shown.startswith("incomplete: the 4 tests that ran are right (2 not run)\n")
    assert "tests       4 of 6 right, 2 not run" in shown
    verdict = failed(Outcome.TIMEOUT).model_dump()
    with pytest.raises(ValueError, match="a whole grading runs all tests"):
        Verdict.model_validate({**verdict, "outcome": "incomplete", "tests_not_run": 2})


def test_the_file_has_its_authors_name_in_every_text() -> None:
    ours = 'File "submission.py", line 2'
    verdict = wrong(message=ours, traceback=f"{ours}\nmy_submission.py submission.pyc", log=ours)
    own = verdict.submission.model_copy(update={"name": "my \\1\nkernel.py"})
    shown = text(show.verdict(verdict.model_copy(update={"submission": own})))
    assert shown.count('File "my \\1\\x0akernel.py", line 2') == 3
    assert "my_submission.py submission.pyc" in shown, "other files keep theirs"


def test_a_board_is_aligned_and_describes_its_tables() -> None:
    verdicts = [accepted(author="ada", score_ns=4_130), accepted(author="a-very-long-name", score_ns=57_300)]
    lines = list(standings.board(tables(*verdicts, accepted(sandbox="process"), accepted(interpreted=True))))
    header = next(line for line in lines if "author" in line)
    row = next(line for line in lines if "a-very-long-name" in line)
    assert header.index("run") == row.index(verdicts[1].run)
    assert header.index("interval") == row.index("[")
    headings = [line.partition(" on ")[2].partition(", protocol")[0] for line in lines if line.startswith("softmax on")]
    assert headings == [
        "NVIDIA H200 (cuda), plain calls",
        *(f"NVIDIA H200 (cuda), plain calls, {how}" for how in ("Triton interpreter", "not isolated")),
    ]
    assert lines.count("  Triton's interpreter ran these: their times and ranks say nothing about speed") == 1
    assert lines.count("") == 2
    assert list(standings.board([])) == ["the board shows no submission yet"]


def test_a_problem_shows_its_signature_and_hides_its_hidden_cases() -> None:
    found = load(PROBLEMS / "softmax")
    shown = text(problem.lines(found))
    assert "Python      softmax(x, y): a function that writes into y" in shown
    assert "input       x [rows, cols] float32" in shown
    for case in found.tests:
        assert (f"test        {case.name}: " in shown) != case.hidden
    assert shown.index("test        and 5 hidden ones") < shown.index("benchmark   "), "the tests stand together"
    assert "sources     public" in shown
    assert "timing" not in shown
    plain = text(problem.lines(found.model_copy(update={"timing": "calls"})))
    assert "timing      plain calls on GPUs too, with their work on the host" in plain
    drawn = next(case for case in found.tests if case.draw).model_copy(update={"hidden": False})
    visible = found.model_copy(update={"tests": (drawn,)})
    assert "test        drawn sizes: rows=1..32 cols=2..2000 (cpu, cuda)" in text(problem.lines(visible))


def test_a_problem_shows_its_statement_fills_and_baselines_in_80_columns() -> None:
    found = load(PROBLEMS / "softmax")
    times = [problem.BaselineTime("eager", "NVIDIA H200", 43_600, "81def73e01bf34b1")]
    points = {"cu": ["void softmax(const float* x, float* y, int64_t rows, int64_t cols, cudaStream_t stream)"]}
    lines = list(problem.lines(found, "# softmax\n\nOf **each** row\x1b[2J by\nitself.\n", points, times))
    assert lines[:4] == ["softmax: Row-wise softmax", "", "  Of each row\\x1b[2J by itself.", ""]
    assert max(map(len, lines)) <= 80
    shown = " ".join(text(lines).split())
    for expected in (
        ".cu void softmax(const float* x, float* y, int64_t rows, int64_t cols, cudaStream_t stream)",
        "input x [rows, cols] float32: normal, mean 0, standard deviation 1 output",
        "(cpu, cuda); x: uniform from 500.0 to 600.0 test",
        "x: normal, mean 0, standard deviation 1; 30 % are -inf",
        "baseline eager: 43.6 µs on NVIDIA H200, the geometric mean of run 81def73e01bf34b1",
    ):
        assert expected in shown, expected


@pytest.mark.parametrize(
    ("left", "rules", "expected"),
    [
        (timedelta(days=3, hours=5), {}, "until 2026-03-04 05:00 UTC, 3 days left"),
        (timedelta(hours=1, minutes=59), {"grace": "1d"}, "until 2026-03-01 01:59 UTC, 1 hour left"),
        (timedelta(minutes=5), {"late": LATE}, "until 2026-03-01 00:05 UTC, less than an hour left"),
        (timedelta(minutes=-5), {}, "closed since 2026-02-28 23:55 UTC"),
        (
            timedelta(minutes=-5),
            {"grace": "30m"},
            "until 2026-02-28 23:55 UTC, in grace until 2026-03-01 00:25 UTC, less than an hour left",
        ),
        (timedelta(hours=-5), {"late": LATE}, f"late until 2026-03-02 19:00 UTC, {OFF}, 1 day left"),
        (timedelta(days=-2, minutes=-1), {"late": LATE}, "closed since 2026-02-28 23:59 UTC"),
    ],
)
def test_problems_are_listed_with_deadline_and_places(left: timedelta, rules: dict[str, object], expected: str) -> None:
    now = datetime(2026, 3, 1, tzinfo=UTC)
    softmax = load(PROBLEMS / "softmax")
    closing = softmax.model_copy(update={"slug": "closing", "deadline": now + left, "tags": (), **rules})
    listed = [
        ListedProblem(
            slug=one.slug, title=one.title, tags=one.tags, directory="", open=open_at, places=places
        )
        for one, open_at, places in (
            (softmax, "", (BoardPlace(2, 7, "\x1b[2JH200", "0" * 16),)), (closing, problem.open_now(closing, now), ()),
        )
    ]  # fmt: skip
    assert list(problems.lines(ProblemList(items=tuple(listed)))) == [
        "softmax  Row-wise softmax",
        "         reduction",
        "         you are 2 of 7 on \\x1b[2JH200",
        "closing  Row-wise softmax",
        f"         {expected}",
    ]
    assert f" now {expected} " in " ".join(" ".join(problem.lines(closing, now=now)).split())


TOML = """
title = "Twice"
entry = "twice"
parameters = ["n"]
tensors = [
    { name = "x", role = "input", shape = ["n"], dtype = "float32" },
    { name = "y", role = "output", shape = ["n"], dtype = "float32" },
]
cost = { bytes = "8 * n", flops = 0 }
tests = [{ name = "test", params = { n = 3 } }]
benchmarks = [{ name = "first", params = { n = 300 } }, { name = "second", params = { n = 400 } }]
"""
ALLCLOSE = "tolerance = { rtol = 1e-5, atol = 1e-8 }\n"
FOREIGN = (
    '[foreign]\nform = "{}"\nfiles = [{{ name = "a.py", path = "a.py", sha256 = "' + sha256(b"").hexdigest() + '" }}]\n'
)
BUDGET = "4 ulps of the output's dtype (64 of float32) for the largest error, a quarter for the RMS"


@pytest.mark.parametrize(
    ("toml", "reference", "decider", "expected"),
    [
        ("", "", "budget", f"4 × the reference's own error, at least {BUDGET}"),
        (ALLCLOSE, "", "allclose", "1e-08 + 1e-05 × |expected| for each element"),
        (ALLCLOSE, "def compare(got, inputs, truth): ...", "compare", "`compare` in reference.py decides"),
        (
            "tolerance = { y = { off_by = 1, share = 0.5 } }",
            "def compare(got, inputs, truth, usual): ...",
            "compare",
            "`compare` in reference.py decides; `y` may be off by 1 in at most 50 % of the elements",
        ),
        (
            "tolerance = { rtol = 1e-5, atol = 1e-8, y = { off_by = 0 } }",
            "",
            "allclose",
            "1e-08 + 1e-05 × |expected| for each element; `y` must be equal",
        ),
        ("tolerance = { off_by = 2 }", "", "budget", "each output may be off by 2"),
        ("", "def reference(x):\n    compare = x\n", "budget", f"4 × the reference's own error, at least {BUDGET}"),
        ("", "def compare(", "budget", f"4 × the reference's own error, at least {BUDGET}"),
        (FOREIGN.format("gpu-mode"), "", "reference", "the imported reference checks answers itself"),
        (FOREIGN.format("kernelbench"), "", "budget", BUDGET),
        (ALLCLOSE + FOREIGN.format("kernelbench"), "", "allclose", "1e-08 + 1e-05 × |expected| for each element"),
    ],
)
def test_a_problem_says_what_decides(toml: str, reference: str, decider: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / "a.py").touch()
    found = written(tmp_path, TOML + toml, reference)
    whole = text(problem.lines(found)).replace("\n" + " " * 14, " ").split("\n")
    assert lines_of(whole, "tolerance") == [f"tolerance   {expected}"]
    assert problem.document(found)["decided_by"] == decider


@pytest.mark.parametrize(
    ("dtypes", "expected"),
    [
        (("int32", "bool"), "`y`, `z` must be equal"),
        (("float16", "int64"), f"4 × the reference's own error, at least {BUDGET}; `z` must be equal"),
    ],
)
def test_outputs_that_must_be_equal_are_named(dtypes: tuple[str, str], expected: str, tmp_path: Path) -> None:
    outputs = [
        f'{{ name = "{n}", role = "output", shape = ["n"], dtype = "{d}" }},' for n, d in zip("yz", dtypes, strict=True)
    ]
    [y] = [line for line in TOML.splitlines() if '"output"' in line]
    found = written(tmp_path, TOML.replace(y, "\n".join(outputs)), "")
    whole = text(problem.lines(found)).replace("\n" + " " * 14, " ").split("\n")
    assert lines_of(whole, "tolerance") == [f"tolerance   {expected}"]


@pytest.mark.parametrize(
    ("weight", "shown"),
    [("", ["", ""]), ("weight = 1, ", ["", ""]), ("weight = 2.5, ", [", weight 2.5", ", weight 1"])],
)
def test_weights_are_shown_where_they_differ(weight: str, shown: list[str], tmp_path: Path) -> None:
    found = written(tmp_path, TOML.replace('{ name = "first"', f'{{ {weight}name = "first"'), "")
    first, second = lines_of(problem.lines(found), "benchmark")
    assert [first, second] == [
        f"benchmark   first: n=300 (cpu, cuda){shown[0]}",
        f"benchmark   second: n=400 (cpu, cuda){shown[1]}",
    ]
    assert lines_of(problem.lines(found), "test ") == ["test        test: n=3 (cpu, cuda)"]


def test_a_check_has_neither_times_nor_a_run() -> None:
    shown = text(show.check(as_check(wrong())))
    assert "tests       1 of 4 right" in shown
    assert " run " not in shown


def lines_of(lines: Iterable[str], word: str) -> list[str]:
    return [line.strip() for line in lines if line.strip().startswith(word)]


def test_speedup_and_roofline_stand_in_the_table_of_times() -> None:
    result = accepted(speedups={"eager": 1.593}, roofline=Roofline(share=0.913, limit="memory"))
    lines = list(show.verdict(result))
    table = [line for line in lines[1:] if "µs" in line or "interval" in line]
    assert max(map(len, lines)) <= 100
    head, *cases, mean = table
    for line in cases:
        assert line.index("1.593 [1.585, 1.601]") == head.index("× eager")
        assert line.index("91 % memory") == head.index("of roofline")
    assert mean.split("  ")[1] == "geometric mean"
    assert mean.index("1.593 [1.585, 1.601]") == head.index("× eager")
    plain = text(show.verdict(accepted()))
    assert "×" not in plain
    assert "roofline" not in plain


def test_cases_without_a_baseline_have_empty_cells() -> None:
    result = accepted(speedups={"eager": 1.593, "compiled": 1.1}, roofline=Roofline(share=0.913, limit="arithmetic"))
    first, *rest = result.benchmarks
    bare = first.model_copy(update={"baselines": first.baselines[:1], "roofline": None})
    lines = list(show.verdict(result.model_copy(update={"benchmarks": (bare, *rest), "speedups": ()})))
    head = next(line for line in lines if "interval" in line)
    [line] = [line for line in lines if "2048 square" in line]
    compiled, eager = head.index("× compiled"), head.index("× eager")
    assert compiled < eager
    assert line[compiled:eager].strip() == ""
    assert line[eager:].split("  ")[0] == "1.593 [1.585, 1.601]"
    assert "%" not in line
    assert "1.100 [1.095, 1.105]" in next(line for line in lines if "4096 square" in line)
    assert "[" not in next(line for line in lines if "geometric mean" in line)[compiled:]


def test_a_case_in_full_has_its_sensors_baselines_and_confidence() -> None:
    result = accepted(speedups={"eager": 1.593}, roofline=Roofline(share=0.913, limit="memory"), effort="thorough")
    lines = list(show.run(result))
    whole = text(lines)
    device = "device    SM 1875–1980 MHz, memory 3201 MHz, power 412 W, temperature 41 °C"
    assert lines_of(lines, "device  ")[1:] == [device] * 4, "the first is the device's name"
    sha256 = result.benchmarks[0].baselines[0].sha256[:12]
    eager = f"× eager   1.593 [1.585, 1.601] at 96.9 %, which took 91.3 µs in 8 rounds, sha256 {sha256}"
    assert lines_of(lines, "× eager") == [eager] * 4
    assert whole.count("57.3 µs [57.0, 57.6] at 95 %") == 4
    assert whole.count("91.3 % of what memory allows on this device") == 4
    assert "effort thorough" in whole


def test_lowered_clocks_are_counted_and_absent_sensors_are_left_out() -> None:
    result = accepted(modes=("calls",))
    [case] = result.benchmarks
    said = [
        {"sm_mhz": 1980, "power_mw": 412_000, "throttle": ()},
        {"sm_mhz": 1410, "power_mw": 698_900, "throttle": ("sw_power_cap", "hw_slowdown")},
        {"sm_mhz": 1700, "power_mw": 600_000, "throttle": ("sw_power_cap",)},
    ]
    rounds = [case.rounds[0].model_copy(update={"telemetry": Telemetry.model_validate(each)}) for each in said]
    silent = case.rounds[0].model_copy(update={"telemetry": None})

    def device(*played: TimedRound) -> list[str]:
        changed = case.model_copy(update={"rounds": played})
        return lines_of(show.run(result.model_copy(update={"benchmarks": (changed,)})), "device  ")[1:]

    assert device(*rounds, silent) == [
        "device    SM 1410–1980 MHz, power 412–698 W, throttled in 2 of 3: hw_slowdown, sw_power_cap"
    ]
    assert device(silent) == []


@pytest.mark.parametrize(
    ("reasons", "effort", "expected"),
    [
        (["converged"] * 4, "default", []),
        (["budget"] * 4, "default",
         ["every case: time ran out before the intervals were narrow; grade again with --thorough"]),
        (["budget", "unstable", "converged", "budget"], "quick",
         ["2048 square, 16384 square: time ran out before the intervals were narrow; grade again without --quick",
          "4096 square: the interval stayed wide; grade again on a quiet machine or without --quick"]),
        (["unstable", "converged"], "thorough",
         ["2048 square: the interval stayed wide; grade again on a quiet machine"]),
    ],
)  # fmt: skip
def test_unconverged_cases_are_shown_with_remedy(reasons: list[str], effort: Effort, expected: list[str]) -> None:
    result = accepted(modes=["calls"] * len(reasons), effort=effort)
    cases = tuple(b.model_copy(update={"stop_reason": r}) for b, r in zip(result.benchmarks, reasons, strict=True))
    result = result.model_copy(update={"benchmarks": cases})
    assert lines_of(show.verdict(result), "stopped") == [f"stopped     {line}" for line in expected]
    in_full = lines_of(show.run(result), "stopped")
    assert len(in_full) == len(reasons), "each case says for itself how it ended"
    for line, reason in zip(in_full, reasons, strict=True):
        assert ("narrow enough" in line) == (reason == "converged")


def test_a_doubt_is_shown_once_for_all_its_cases() -> None:
    result = accepted(modes=["calls"] * 3)
    warm, slow = Doubt(code="warm_cache", text="it fits"), Doubt(code="drift", text="by 3 %")
    gone = Doubt(code="no_baseline", text="baseline eager: it \x1b[2J crashed")
    cases = tuple(
        b.model_copy(update={"doubts": found})
        for b, found in zip(result.benchmarks, ((warm,), (warm, slow), (warm, slow)), strict=True)
    )
    result = result.model_copy(update={"benchmarks": cases, "doubts": (gone,)})
    steadier = "rely on the speedup, which is the steadier number"
    expected = [
        "doubt       no_baseline: baseline eager: it \\x1b[2J crashed",
        "doubt       every case: warm_cache: it fits",
        f"doubt       4096 square, 8192 square: drift: by 3 %; {steadier}",
    ]
    assert lines_of(show.verdict(result), "doubt") == expected
    assert len(lines_of(show.run(result), "doubt")) == 6, "in full, each stands where it belongs"
    other = cases[2].model_copy(update={"doubts": (warm, Doubt(code="drift", text="by 4 %"))})
    expected[2] = f"doubt       4096 square, and 1 more case like it: drift: by 3 %; {steadier}"
    result = result.model_copy(update={"benchmarks": (*cases[:2], other)})
    assert lines_of(show.verdict(result), "doubt") == expected


@pytest.mark.parametrize(
    ("reached", "effort", "expected"),
    [(0.75, "quick", "75 % confidence, not 95 %, as too few rounds were measured; grade again without --quick"),
     (0.75, "default", "; grade again with --thorough"), (0.9375, "quick", None), (0.969, "default", None)],
)  # fmt: skip
def test_a_confidence_far_from_95_percent_is_a_doubt(reached: float, effort: Effort, expected: str | None) -> None:
    result = accepted(effort=effort)
    result = result.model_copy(update={"score": result.score.model_copy(update={"confidence": reached})})
    assert "95 % interval" in text(show.verdict(result))
    doubts = lines_of(show.verdict(result), "doubt")
    assert len(doubts) == (expected is not None)
    assert all(line.startswith("doubt       few_rounds: ") and line.endswith(str(expected)) for line in doubts)


def test_a_board_has_a_column_for_every_baseline_of_its_rows() -> None:
    measured = accepted(author="ada", score_ns=50_000, speedups={"eager": 1.593, "torch\x1b[0m": 1.1})
    head, ada, bob = list(standings.board(tables(measured, accepted(author="bob"))))[1:]
    assert head.index("× eager") == ada.index("1.593 [1.585, 1.601]")
    assert head.index("× torch\\x1b[0m") == ada.index("1.100 [1.095, 1.105]")
    assert bob[head.index("× eager") : head.index("date")].strip() == ""


def test_how_rows_were_graded_has_columns_only_where_they_differ() -> None:
    ada = accepted(author="ada", modes=REPLAYED)
    title, head, *_ = standings.board(tables(ada, accepted(author="bob", modes=REPLAYED)))
    assert title.endswith("; replayed, docker")
    assert "mode" not in head
    bob = accepted(author="bob", ranked_timing="replayed")
    title, head, first, second = standings.board(tables(ada, bob))
    assert "docker" not in title
    assert first.index("replayed") == second.index("calls") == head.index("mode")
    assert second.split()[0] == "-"
    assert second.endswith(f"{bob.run}  {NO_RANK['not_replayed']}")


def test_a_result_that_was_not_replayed_shows_which_run_has_the_rank() -> None:
    plain, why = accepted(score_ns=1000, ranked_timing="replayed"), NO_RANK["not_replayed"]
    [alone] = tables(plain, accepted(author="bob", modes=REPLAYED))
    assert standings.standing(plain, alone) == f"none: {why}"
    ranks = accepted(score_ns=2000, modes=REPLAYED)
    [both] = tables(plain, ranks)
    kept = "rank 1 of 1 on NVIDIA H200, replayed"
    assert standings.standing(plain, both) == f"none: {why}; run {ranks.run} keeps {kept}"
    assert standings.standing(ranks, both) == kept
    with held(chained(plain, ranks)) as lines:
        source = pooled(lines.facts(), plain)
    assert lines_of(show.run(plain, (), source), "standing") == [f"standing    none: {why}"]


def test_replayed_and_sealed_results_before_protocol_5_have_two_tables() -> None:
    ada = accepted(modes=REPLAYED, protocol=4)
    bob = accepted(author="bob", score_ns=1000, protocol=4, modes=("graphs",), timing="sealed")
    replayed, sealed = tables(bob, ada)
    problem = ada.problem.sha256[:12]
    assert [line for line in standings.board([replayed, sealed]) if line.startswith("softmax")] == [
        f"softmax on NVIDIA H200 (cuda), replayed, protocol 4, problem {problem}; replayed, docker",
        f"softmax on NVIDIA H200 (cuda), sealed rounds, protocol 4, problem {problem}; graphs, docker",
    ]
    assert standings.standing(ada, replayed) == "rank 1 of 1 on NVIDIA H200, replayed"
    assert standings.standing(bob, sealed) == "rank 1 of 1 on NVIDIA H200, sealed rounds"
    for result, timed in ((ada, "4, replayed"), (bob, "4, sealed rounds"), (accepted(device_kind="cpu"), "1")):
        [line] = lines_of(show.run(result), "protocol")
        assert line == f"protocol     {timed}, effort default"
    assert lines_of(show.run(failed()), "protocol") == [
        "protocol     1, plain calls, effort default, ended in the stage test"
    ]


def test_two_devices_of_one_name_share_a_rank_within_4_percent() -> None:
    ada, bob = accepted(score_ns=1000, card="one"), accepted(author="bob", score_ns=1030, card="other")
    [table] = tables(ada, bob)
    assert standings.standing(bob, table) == "rank 1 of 2 on NVIDIA H200, plain calls, shared"
    note = "timed on 2 devices of this name: rows of different ones share a rank unless they are more than 4 % apart"
    assert [line.strip() for line in standings.board([table])].count(note) == 1
    assert not any("devices of this name" in line for line in standings.board(tables(ada)))
    source = Submission.of("def twice(x, y): ...", "py", author="ada", name="kernel.py")
    for score_ns, card, expected in (
        (1030, "other", "no difference was measured, since two devices of this name can differ by 4 %"),
        (1030, "one", "0.971 times as fast"),
        (1100, "other", "0.909 times as fast"),
        (1001, "other", "no difference was measured"),
    ):
        after = difference.Sourced(accepted(score_ns=score_ns, card=card), source)
        first, *_ = difference.lines(difference.Sourced(ada, source), after)
        assert first.endswith(f": {expected}")


def test_a_time_of_the_interpreter_is_not_compared() -> None:
    other = Submission.of("def twice(x, y): ...", "py", author="ada", name="other.py")
    said = list(show.comparison(accepted(speedups={"other": 1966.0}, device_kind="cpu", interpreted=True), other))
    assert "not compared: Triton's interpreter ran it" in said[0] + said[1]
    assert not any("times as fast" in line for line in said)
    assert any("times as fast" in line for line in show.comparison(accepted(speedups={"other": 2.0}), other))


def test_the_problems_own_check_counts_nothing_and_blames_no_output() -> None:
    mismatch = Mismatch(output="q", shape=(129,), dtype="float32", wrong=0, total=129, hints=("q @ r is not x",))
    check = OutputCheck(output="q", dtype="float32", correct=False, mismatch=mismatch)
    assert describe(check) == "q @ r is not x"
    shown = "\n".join(findings._mismatch(mismatch, " in small"))
    assert shown.strip() == "output      refused by the problem's own check in small"
