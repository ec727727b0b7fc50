"""`kernelmark show --diff`: which run is shown next to which, with which times, and whose sources are shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.submission import Submission
from harness.verdict import SubmissionId, Verdict
from leaderboard.record.archive import archive
from leaderboard.record.ledger import JsonlLedger
from tests.documents import valid
from tests.unit.conftest import PROBLEM, Command
from tests.verdicts import REPLAYED, accepted, failed

Record = Callable[[Verdict, str], str]


@pytest.fixture
def record(project: Path) -> Record:
    """Appends a verdict with this source to the project's ledger and archive; returns its run."""

    def record(verdict: Verdict, source: str) -> str:
        message = verdict.submission
        submission = Submission.of(source, "py", author=message.author, name=message.name)
        problem = verdict.problem.model_copy(update={"slug": "double"})
        verdict = verdict.model_copy(update={"submission": SubmissionId.of(submission), "problem": problem})
        archive(project / "leaderboard/archive", "double", submission)
        JsonlLedger(project / "leaderboard/results/double.jsonl").append(verdict)
        return verdict.run

    return record


def test_a_run_is_shown_next_to_its_authors_previous_best(run: Command, record: Record) -> None:
    record(accepted(score_ns=20_000), "import torch\nx = 1\n")
    best = record(accepted(score_ns=10_000), "import torch\nx = 2\n")
    record(accepted(score_ns=1_000, device_name="NVIDIA H100"), "another device\n")
    record(accepted(author="bob", score_ns=1_000), "another author\n")
    replayed = record(accepted(score_ns=1_000, modes=REPLAYED), "timed otherwise\n")
    last = record(failed(), "it is wrong\n")
    after = record(accepted(score_ns=5_000), "import torch\nx = \x1b[2J3\n")
    record(accepted(score_ns=1_000), "a later one\n")
    first, *changes = run("show", after, "--diff").out.splitlines()
    assert first == "5.00 µs [4.97, 5.03], before 10.0 µs [9.9, 10.1]: 2.000 times as fast"
    assert changes == [
        f"--- {best}  kernel.py", f"+++ {after}  kernel.py", "@@ -1,2 +1,2 @@",
        " import torch", "-x = 2", "+x = \\x1b[2J3",
    ]  # fmt: skip
    assert run("show", after, replayed, "--diff").out.splitlines()[0].endswith(": the two were not timed alike")
    interpreted = record(accepted(score_ns=9_000, interpreted=True), "without a GPU\n")
    slow = run("show", after, interpreted, "--diff").out.splitlines()[0]
    assert slow.endswith(": a time in Triton's interpreter says nothing about speed")
    instant = record(accepted(score_ns=0), "faster than the clock\n")
    assert run("show", instant, best, "--diff").out.splitlines()[0].endswith(": 10000.000 times as fast")
    beside_last = run("show", after, last, "--diff").out
    assert beside_last.startswith("5.00 µs [4.97, 5.03], before wrong answer\n")
    assert "-it is wrong\n" in beside_last
    assert run("show", after, after, "--diff").out.endswith("\nthe sources are the same\n")
    assert "-x = 2" in valid(run("show", after, "--diff", "--format", "json").out)["diff"]


def test_without_an_accepted_run_it_is_the_last_one_of_another_source(run: Command, record: Record) -> None:
    record(failed(), "one\n")
    record(failed(), "two\n")
    after = record(failed(), "three\n")
    again = record(accepted(), "three\n")
    for each in (after, again):
        assert "\n-two\n+three\n" in run("show", each, "--diff").out


@pytest.mark.parametrize(
    ("visibility", "author", "shown"),
    [("public", "bob", True), ("never", "bob", False), ("after_deadline", "bob", False), ("never", "ada", True)],
)
def test_a_source_is_shown_to_its_author_and_where_the_problem_publishes_it(
    project: Path, run: Command, record: Record, visibility: str, author: str, shown: bool
) -> None:
    toml = f'visibility = "{visibility}"\ndeadline = 2999-01-01T00:00:00Z\n{PROBLEM}'
    (project / "problems/double/problem.toml").write_text(toml)
    record(accepted(author=author), "secret = 1\n")
    after = record(accepted(author=author), "secret = 2\n")
    result = run("show", after, "--diff")
    assert (result.code, "secret" in result.out) == (0 if shown else 2, shown)
    if not shown:
        assert "the source of bob is not shown: " in result.err
    (project / "problems/double/problem.toml").unlink()
    assert ("secret" in run("show", after, "--diff").out) == (author == "ada"), "nobody knows when it may be shown"


def test_what_cannot_be_compared_is_told_in_one_line(run: Command, record: Record) -> None:
    first = record(accepted(), "one\n")
    for args, message in (
        ((first, "--diff"), "is ada's first source on double: there is none to compare; name another run as well"),
        ((first, first), "OTHER is for --diff; add --diff, or leave it out"),
        ((first, "fff", "--diff"), "run fff was never recorded here"),
    ):
        result = run("show", *args)
        assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
        assert message in result.err
