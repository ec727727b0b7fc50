"""What a student reads about a hand-in: everything about the kernel, and no advice that only the teacher can follow."""

from __future__ import annotations

import csv
import io
import re
from datetime import UTC, datetime

import pytest

from harness.errors import HarnessError, SubmissionError, UsageError
from harness.problem.schedule import Delay
from harness.verdict import Doubt, DoubtCode
from kernelmark.course.mark import Mark
from kernelmark.course.marks import feedback, table
from kernelmark.course.report import GradingResult
from leaderboard.record.entry import encode
from leaderboard.record.pooling import NO_RANK
from tests.ranked import rank
from tests.verdicts import accepted, interval

FOR_THE_TEACHER = re.compile(r"--|quiet|again|install|doctor|kernelmark|grade it\b|/srv")
TOO_LATE = Delay(datetime(2027, 2, 4, tzinfo=UTC), 4, None)


def marked(graded: GradingResult, delay: Delay | None = None) -> Mark:
    return Mark("ada", "", "", "", delay, graded, "ada.txt")


def test_an_accepted_kernel_has_every_reason_and_no_advice_for_the_teacher() -> None:
    base = accepted(
        score_ns=380_000, low_ns=31_000, high_ns=407_000, device_kind="cpu", sandbox="process", modes=["calls"] * 2,
        log="".join(f"line {number}\n" for number in range(250)),
    )  # fmt: skip
    busy, drift, plain = (Doubt(code=code, text=code) for code in ("busy_machine", "drift", "not_replayed"))
    cases = tuple(
        benchmark.model_copy(update={"stop_reason": "unstable", "doubts": (busy, drift)})
        for benchmark in base.benchmarks
    )
    score = interval(380_000, 31_000, 407_000).model_copy(update={"confidence": 0.75})
    verdict = base.model_copy(update={"benchmarks": cases, "doubts": (plain,), "score": score})
    entry, _ = encode(None, verdict.to_json().encode())
    [ranked] = rank([entry])
    graded = GradingResult("kernel.py", 0, "", verdict, ranked, recorded=True)
    assert {found[0] for found in FOR_THE_TEACHER.finditer("\n".join(graded.lines()))} >= {
        "--", "quiet", "again", "install", "doctor", "kernelmark", "grade it",
    }, "the teacher's terminal has it"  # fmt: skip
    shown = feedback(marked(graded))
    assert FOR_THE_TEACHER.search(shown) is None, shown
    for line in (
        "doubt       few_rounds: the intervals hold with 75 % confidence, not 95 %, as too few rounds were measured\n",
        f"doubt       not_replayed: not_replayed; {DoubtCode.NOT_REPLAYED.for_author}\n",
        "doubt       every case: busy_machine: busy_machine\n",
        f"doubt       every case: drift: drift; {DoubtCode.DRIFT.for_author}\n",
        "stopped     every case: the interval stayed wide\n",
        "standing    none: interval too wide to rank (380 µs [31, 407], more than 1.5 × from low to high)\n",
        "sandbox process (not isolated)\n",
        "    line 125\n",
    ):
        assert line in shown, line


@pytest.mark.parametrize(("ranks", "high_ns", "why"), [
    (True, 1005, ""), (False, 1005, NO_RANK["not_replayed"]), (True, 2005, NO_RANK["too_wide"]),
])  # fmt: skip
def test_a_table_of_marks_has_every_time_and_says_why_there_is_no_rank(ranks: bool, high_ns: int, why: str) -> None:
    ranked = "calls" if ranks else "replayed"
    verdict = accepted(score_ns=1000, high_ns=high_ns, speedups={"eager": 1.5}, ranked_timing=ranked)
    [row] = csv.DictReader(io.StringIO(table([marked(GradingResult("kernel.py", 0, "", verdict))])))
    names = ("time_ns", "low_ns", "high_ns", "baseline", "speedup", "outcome", "tests_right", "message")
    assert [row[name] for name in names] == ["1000", "995", str(high_ns), "eager", "1.5", "accepted", "4", why]


@pytest.mark.parametrize(
    ("error", "delay", "why"),
    [
        (SubmissionError("ada", "handed in 2 kernels (a.py, b.py)", "leave one"), TOO_LATE,
         "ada handed in 2 kernels (a.py, b.py); leave one"),
        (UsageError("problem p", "takes no more submissions", "record it as late (--late NAME)"), TOO_LATE,
         "it was handed in too late"),
        (UsageError("/srv/in.csv", "has no moment for ada", "grade without --handed-in"), None,
         "not because of what you handed in; ask the person who grades it"),
        (HarnessError("bwrap did not start", "run `kernelmark doctor`"), None,
         "not because of what you handed in; ask the person who grades it"),
    ],
)  # fmt: skip
def test_an_ungraded_hand_in_gets_a_remedy(error: UsageError | HarnessError, delay: Delay | None, why: str) -> None:
    by_author = isinstance(error, SubmissionError)
    shown = feedback(marked(GradingResult("k.py", error.exit_code, str(error), by_author=by_author), delay))
    assert shown.splitlines()[:2] == ["k.py", f"not graded: {why}"]
    assert FOR_THE_TEACHER.search(shown) is None
