"""What a terminal shows of a result: every number that decides, every reason, and nothing that a terminal obeys."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from harness.problem import load
from harness.verdict import (
    BadElement,
    Budget,
    CaseResult,
    Check,
    Doubt,
    Mismatch,
    Outcome,
    OutputCheck,
    Roofline,
    Verdict,
)
from kernelmark import show
from kernelmark.text import visible
from leaderboard.entry import encode
from leaderboard.ranking import Table, rank
from tests.verdicts import accepted, failed

HOSTILE = "\x1b[31m[red]evil[/red]\r\n\x9b2J\u202ekernel.py\udc80"
PROBLEMS = Path(__file__).parents[2] / "problems"


def text(lines: Iterable[str]) -> str:
    return "\n".join(lines)


def tables(*verdicts: Verdict) -> list[Table]:
    entries, last = [], None
    for verdict in verdicts:
        last, _ = encode(last, verdict.to_json().encode())
        entries.append(last)
    return rank(entries)


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
def test_what_a_terminal_would_obey_is_written_as_an_escape(character: str, escape: str) -> None:
    assert visible(f"a{character}b") == f"a{escape}b"


def test_an_accepted_verdict_shows_times_score_run_and_standing() -> None:
    ada, bob = accepted(author="ada", score_ns=57_300), accepted(author="bob", score_ns=91_000)
    shown = text(show.verdict(bob, tables(ada, bob)[0]))
    assert shown.startswith("accepted\n")
    assert "tests       4 of 4 right" in shown
    assert "2048 square" in shown
    assert "91.0 µs  [90.5, 91.5]" in shown
    assert "standing    rank 2 of 2 on NVIDIA H200\n" in shown
    assert f"run         {bob.run}" in shown
    assert "not isolated" not in shown
    assert "interpreter" not in shown


def test_a_shared_rank_and_a_better_earlier_run_are_said() -> None:
    first, slower, peer = accepted(score_ns=50_000), accepted(score_ns=90_000), accepted(author="bob", score_ns=50_100)
    [table] = tables(first, slower, peer)
    assert show.standing(peer, table) == "rank 1 of 2 on NVIDIA H200, shared"
    assert show.standing(slower, table).startswith(f"ada's better run {first.run} (50.0 µs [")


@pytest.mark.parametrize(
    ("sandbox", "interpreted", "notes"),
    [("process", False, [show.NOT_ISOLATED]), ("bwrap", True, [show.INTERPRETED]), ("bwrap", False, []),
     ("process", True, [show.NOT_ISOLATED, show.INTERPRETED])],
)  # fmt: skip
def test_what_limits_a_result_is_said_with_its_remedy(sandbox: str, interpreted: bool, notes: list[str]) -> None:
    verdict = accepted(sandbox=sandbox, interpreted=interpreted)  # type: ignore[arg-type]
    for lines in (show.verdict(verdict), show.run(verdict), show.check(verdict)):
        shown = text(lines)
        assert [note for note in (show.NOT_ISOLATED, show.INTERPRETED) if note in shown] == notes
    assert "install Docker or bubblewrap; `kernelmark doctor` says how" in show.NOT_ISOLATED
    assert "semantics only, not a measure of speed" in show.INTERPRETED


def test_a_wrong_answer_shows_every_failed_case_and_one_table() -> None:
    shown = text(show.verdict(wrong()))
    assert shown.startswith("wrong answer: 2 of 4 cases are wrong\n")
    assert "tests       1 of 4 right" in shown
    for case in ("small (rows=3 cols=5): wrong answer: y is", "large (rows=3", "secret (hidden): wrong answer\n"):
        assert f"failed      {case}" in shown
    assert shown.count("elements wrong") == 1
    assert "y [3, 5] float32 in small: 12 of 15 elements wrong (80 %), worst at [2, 4]" in shown
    assert "NaN: 3 in yours, 0 expected" in shown
    assert "    index   got  expected  error\n" in shown
    assert "    [0, 1]  nan      0.25    nan\n    [2, 4]  1.5         1    0.5\n" in shown
    assert shown.count("y, largest error: your error 0.5, allowed 4.8e-07 (4 × the reference's own in float32)") == 1
    assert "hint: only the last tile is wrong" in shown


@pytest.mark.parametrize(
    ("budget", "dtype", "expected"),
    [
        (Budget(error=3.1e-7, allowed=4.8e-7, reference_error=1.2e-7, factor=4, floor=1e-9), " in float32",
         "your error 3.1e-07, allowed 4.8e-07 (4 × the reference's own in float32)"),
        (Budget(error=0, allowed=4.8e-7, reference_error=0, factor=4, floor=4.8e-7), "",
         "your error 0, allowed 4.8e-07 (the floor; 4 × the reference's own is less)"),
    ],
)  # fmt: skip
def test_a_budget_says_what_was_allowed_and_why(budget: Budget, dtype: str, expected: str) -> None:
    assert show.budget_text(budget, dtype) == expected


def test_show_run_holds_everything_of_the_document() -> None:
    doubt = Doubt(code="throttled", text="the clock fell by 3 %")
    verdict = accepted(log="building\n", modes=("graphs", "calls")).model_copy(update={"doubts": (doubt,)})
    shown = text(show.run(verdict))
    benchmark = verdict.benchmarks[0]
    assert "plain calls: the submission's own code ran" in shown
    assert shown.count("round  calls  sets") == 2
    assert f"{len(benchmark.rounds)}    400   512" in shown
    for expected in (
        verdict.run, verdict.problem.sha256, verdict.submission.sha256, "torch 2.11.0", "driver 580.65", "700 W",
        str(verdict.environment.image_digest), "9000000007", "throttled: the clock fell by 3 %", "    building",
        "your error 2.1e-07, allowed 4.8e-07", "1.15 µs below the sealed time", "134,217,728 bytes at least, 2342 GB/s",
    ):  # fmt: skip
        assert expected in shown, expected


def test_every_budget_and_table_of_a_wrong_run_is_shown() -> None:
    shown = text(show.run(wrong()))
    assert shown.count("elements wrong") == 2
    assert shown.count("y, largest error: your error 0.5, allowed 4.8e-07 (4 × the reference's own in float32)") == 2


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
    for lines in (show.check(evil), show.verdict(evil), show.run(evil), show.board([table])):
        for line in lines:
            assert not any(c in line for c in "\x1b\r\n\x9b\u202e\udc80"), line
    assert "\\x1b[31m[red]evil[/red]" in text(show.verdict(evil))


def test_a_board_is_aligned_and_says_what_a_table_is_worth() -> None:
    verdicts = [accepted(author="ada", score_ns=4_130), accepted(author="a-very-long-name", score_ns=57_300)]
    lines = list(show.board(tables(*verdicts, accepted(sandbox="process"), accepted(interpreted=True))))
    header = next(line for line in lines if "author" in line)
    row = next(line for line in lines if "a-very-long-name" in line)
    assert header.index("run") == row.index(verdicts[1].run)
    assert header.index("interval") == row.index("[")
    assert lines.count("  not isolated") == 1
    assert lines.count("  Triton interpreter: semantics only, not a measure of speed") == 1
    assert lines.count("") == 2
    assert list(show.board([])) == ["no submission has been accepted yet"]


def test_a_problem_shows_its_signature_and_hides_its_hidden_cases() -> None:
    found = load(PROBLEMS / "softmax")
    shown = text(show.problem(found))
    assert "entry       softmax(x, y)" in shown
    assert "input       x [rows, cols] float32" in shown
    for case in found.tests:
        assert (f"test        {case.name}: " in shown) != case.hidden
    assert "test        and 3 hidden ones" in shown
    [line] = show.problems([found])
    assert line.split() == ["softmax", "Row-wise", "softmax", f"{len(found.tests)}", "tests,",
                            f"{len(found.benchmarks)}", "benchmarks"]  # fmt: skip


def test_a_check_has_neither_times_nor_a_run() -> None:
    names = Check.model_fields
    check = Check.model_validate({name: getattr(wrong(), name) for name in names})
    shown = text(show.check(check))
    assert "tests       1 of 4 right" in shown
    assert " run " not in shown


def test_speedup_roofline_and_sensors_are_shown() -> None:
    result = accepted(speedups={"eager": 1.593}, roofline=Roofline(share=0.913, limit="memory"))
    shown = text(show.verdict(result))
    assert "× eager" in shown
    assert shown.count("1.593 [1.585, 1.601]") == 5, "each of four cases, and all together"
    assert "91 % memory" in shown
    whole = text(show.run(result))
    assert "SM 1875–1980 MHz" in whole
    assert "held by: memory" in whole
    plain = text(show.verdict(accepted()))
    assert "×" not in plain
    assert "roofline" not in plain


def test_an_unstable_time_says_what_to_do() -> None:
    result = accepted()
    unstable = result.benchmarks[0].model_copy(update={"stop_reason": "unstable"})
    assert "--thorough" in text(show.run(result.model_copy(update={"benchmarks": (unstable,)})))
