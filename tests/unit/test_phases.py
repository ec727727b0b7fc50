"""Phases of a competition: deadlines, limits and private cases of their own, and what a late change of them does."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from harness.errors import SettingsError, UsageError
from harness.submission import Submission
from harness.wire.protocol import PROTOCOL
from kernelmark.grading.recorder import admit
from kernelmark.grading.setup import PreparedJob
from kernelmark.project.competition import state
from kernelmark.project.problems import find_problem
from kernelmark.project.settings import Settings
from kernelmark.record.recording import record
from kernelmark.record.records import tables
from leaderboard.record.ledger import JsonlLedger
from tests.unit.conftest import Command
from tests.verdicts import accepted

NOW = datetime.now(UTC)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
HEAD = 'author = "organizer"\ndevice = "cpu"\nsandbox = "process"\n'
CASES = 'salt = "{salt}"\n[[tests]]\nname = "{name}"\nparams = {{ n = 5 }}\n'
KERNEL = Submission.of("def double(x, y): y.copy_(2 * x)\n", "py", author="ada", name="kernel.py")


def phases(project: Path, first: datetime, second: datetime, more: str = "") -> Settings:
    """Set the ends of two phases; the second allows one grading a day, the project two."""
    file = project / "kernelmark.toml"
    parts = [f'[[phases]]\nname = "qualification"\ndeadline = {first.isoformat()}\n']
    parts += [
        f'[[phases]]\nname = "finals"\ndeadline = {second.isoformat()}\nlimits = {{ gradings_a_day = 1 }}\n{more}'
    ]
    file.write_text(HEAD + "[limits]\ngradings_a_day = 2\n" + "".join(parts))
    return Settings.load(project)


def graded(settings: Settings, run: str, at: datetime) -> None:
    problem = find_problem(settings, "double")
    fields = {"problem": "double", "problem_sha256": problem.sha256, "protocol": PROTOCOL, "submission": KERNEL}
    record(settings, KERNEL, accepted(run=run, created_at=at, **fields))


def standings(settings: Settings) -> list[tuple[str, list[tuple[int | None, str]]]]:
    found = [(table.key.problem_sha256, [(row.rank, row.run) for row in table.rows]) for table in tables(settings)]
    return sorted(found)


def test_phases_have_own_deadline_and_cases(competition: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    private = tmp_path / "private"
    (private / "finals").mkdir(parents=True)
    (private / "finals/double.toml").write_text(CASES.format(salt="f" * 32, name="of the finals"))
    monkeypatch.setenv("KERNELMARK_PRIVATE_CASES", str(private))
    settings = phases(competition, NOW + DAY, NOW + 2 * DAY)
    before = find_problem(settings, "double")
    assert (state(settings, "double", NOW).phase, before.deadline, before.private) == (
        "qualification",
        NOW + DAY,
        None,
    )
    graded(settings, "1" * 16, NOW - 3 * HOUR)
    admit(PreparedJob(settings, before, KERNEL))

    settings = phases(competition, NOW - HOUR, NOW + 2 * DAY)
    after = find_problem(settings, "double")
    assert (state(settings, "double", NOW).phase, after.deadline) == ("finals", NOW + 2 * DAY)
    assert [case.name for case in after.private_tests] == ["of the finals"]
    with pytest.raises(UsageError, match="1 of 1 gradings"):
        admit(PreparedJob(settings, after, KERNEL))
    (stale,) = tables(settings)
    assert all(row.stale for row in stale.rows), "what was graded in the first phase has another table"

    settings = phases(competition, NOW - 2 * HOUR, NOW - HOUR)
    with pytest.raises(UsageError, match="takes no more submissions"):
        admit(PreparedJob(settings, find_problem(settings, "double"), KERNEL))


def test_late_phase_changes_are_harmless(competition: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    private = tmp_path / "private"
    (private / "finals").mkdir(parents=True)
    (private / "finals/double.toml").write_text(CASES.format(salt="f" * 32, name="of the finals"))
    monkeypatch.setenv("KERNELMARK_PRIVATE_CASES", str(private))
    graded(phases(competition, NOW + DAY, NOW + 2 * DAY), "1" * 16, NOW - 3 * HOUR)
    settings = phases(competition, NOW - HOUR, NOW + DAY)
    graded(settings, "2" * 16, NOW - HOUR / 2)
    before, ledger = standings(settings), competition / "leaderboard/results/double.jsonl"
    bytes_before = ledger.read_bytes()
    assert [run for _, [(_, run)] in before] in (["1" * 16, "2" * 16], ["2" * 16, "1" * 16])
    for first, second in ((DAY, 2 * DAY), (-4 * HOUR, DAY), (-4 * HOUR, -2 * HOUR), (-4 * DAY, -3 * DAY)):
        assert standings(phases(competition, NOW + first, NOW + second)) == before
    assert ledger.read_bytes() == bytes_before
    assert JsonlLedger(ledger).verify() == 2


def test_a_problem_with_a_deadline_of_its_own_is_in_no_phase(competition: Path) -> None:
    file = competition / "problems/double/problem.toml"
    own = NOW + 9 * DAY
    file.write_text(f"deadline = {own.isoformat()}\n{file.read_text()}")
    settings = phases(competition, NOW - 2 * DAY, NOW - DAY)
    assert find_problem(settings, "double").deadline == own
    assert state(settings, "double", NOW).schedule.deadline == own


def test_the_freeze_of_a_phase_is_that_of_its_problems(competition: Path, command: Command) -> None:
    settings = phases(competition, NOW - DAY, NOW + DAY, 'freeze = "2d"\n')
    graded(settings, "1" * 16, NOW - 3 * DAY)
    graded(settings, "2" * 16, NOW - HOUR)
    assert (command("show", "1" * 16).code, command("show", "2" * 16).code) == (0, 2)
    assert "phase       finals, open until" in command("problems", "list").out
    phases(competition, NOW - 2 * DAY, NOW - DAY, 'freeze = "2d"\n')
    assert "phase       finals, closed\n" in command("problems", "list").out


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('[[phases]]\nname = "a"\n', "phases.0.deadline"),
        ('[[phases]]\nname = "a"\ndeadline = 2027-01-01T00:00:00\n', "timezone info"),
        ('[[phases]]\nname = "A b"\ndeadline = 2027-01-01T00:00:00Z\n', "phases.0.name"),
        ('[[phases]]\nname = "a"\ndeadline = 2027-01-01T00:00:00Z\nlimit = 3\n', "`limits`"),
        (
            '[[phases]]\nname = "a"\ndeadline = 2027-01-02T00:00:00Z\n[[phases]]\nname = "b"\n'
            "deadline = 2027-01-01T00:00:00Z\n",
            "give them in order",
        ),
        ('[[phases]]\nname = "a"\ndeadline = 9999-12-31T23:59:59Z\ngrace = "1d"\n', "no end on the calendar"),
        (
            '[[phases]]\nname = "a"\ndeadline = 2027-01-01T00:00:00Z\ngrace = "1d"\n'
            "late = { days = 1, penalty_per_day = 0.1 }\n",
            "the `grace` of a is not shorter than the time of `late`",
        ),
        ('[[announcements]]\ntext = "when?"\n', "announcements.0.at"),
    ],
)
def test_invalid_phases_get_an_error(text: str, error: str, competition: Path) -> None:
    (competition / "kernelmark.toml").write_text(HEAD + text)
    with pytest.raises(SettingsError) as refused:
        Settings.load(competition)
    assert error in str(refused.value)


def test_announcements_appear_from_their_time_on(competition: Path, command: Command) -> None:
    lines = [("everyone: <b>new</b> rules", -2 * HOUR, ""), ("even n only", -HOUR, "double"), ("not yet", HOUR, "")]
    lines.append(("odd n, too", -3 * HOUR, "dubble"))
    text = "".join(
        f'[[announcements]]\nat = {(NOW + at).isoformat()}\ntext = "{said}"\n'
        + (f'problem = "{slug}"\n' if slug else "")
        for said, at, slug in lines
    )
    (competition / "kernelmark.toml").write_text(HEAD + text)
    listed = command("problems", "list").out
    assert listed.index("double: even n only") < listed.index("everyone: <b>new</b> rules")
    assert "even n only" in (shown := command("problems", "show", "double").out)
    assert "everyone" not in shown
    assert command("site", "build").code == 0
    front = (competition / "site/index.html").read_text()
    assert front.index("even n only") < front.index("everyone: &lt;b&gt;new&lt;/b&gt; rules")
    assert "even n only" in (competition / "site/problems/double.html").read_text()
    assert [
        announcement["text"]
        for announcement in json.loads((competition / "site/index.json").read_text())["announcements"]
    ] == [
        "even n only",
        "everyone: <b>new</b> rules",
        "odd n, too",
    ]
    assert "dubble: odd n, too" in front, "without a link: it has no page"
    assert all("not yet" not in said for said in (listed, front, shown))
