"""Private cases: read from a folder outside the project, part of the problem's hash, and shown only as a number."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from harness.errors import ProblemError, UsageError
from harness.files.identity import length_prefixed_sha256
from harness.problem import Problem, load
from harness.problem.load import identify
from harness.problem.reference import Reference
from harness.submission import Submission
from harness.verdict import PrivateId, ProblemId, Verdict
from kernelmark.grading.recorder import admit
from kernelmark.grading.setup import PreparedJob
from kernelmark.project.problems import find_problem, private_folder
from kernelmark.project.settings import Settings
from kernelmark.record.publishing import publish, table_of
from kernelmark.record.recording import record
from kernelmark.record.records import current, tables
from leaderboard.record.archive import archive
from leaderboard.record.ledger import JsonlLedger
from leaderboard.standings.staleness import stale
from tests.unit.conftest import Command
from tests.verdicts import EPOCH, accepted

SALT = "0123456789abcdef0123456789abcdef"
PRIVATE = f"""
salt = "{SALT}"

[[tests]]
name = "unknown to all"
params = {{ n = 4711 }}

[[tests]]
name = "on a GPU"
draw = {{ n = {{ low = 815, high = 9000 }} }}
devices = ["cuda"]
hidden = false
"""
SECRETS = ("4711", "815", "unknown to all", "on a GPU", SALT)


@pytest.fixture
def private(tmp_path: Path, competition: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of private cases of the competition, with those of `double`."""
    folder = tmp_path / "private"
    folder.mkdir(mode=0o700)
    (folder / "double.toml").write_text(PRIVATE)
    (folder / "double.toml").chmod(0o600)
    monkeypatch.setenv("KERNELMARK_PRIVATE_CASES", str(folder))
    return folder


@pytest.fixture
def problem(private: Path) -> Problem:
    return find_problem(Settings.load(), "double")


def recorded(competition: Path, problem: Problem, author: str = "ada", after: timedelta = timedelta()) -> Verdict:
    """An accepted verdict on a problem, in the project's ledger and archive."""
    submission = Submission.of(f"# {author}\n", "py", author=author, name="kernel.py")
    cases = PrivateId(sha256=problem.private.sha256, cases=2) if problem.private else None
    model = accepted(submission=submission, protocol=current(Settings.load()).protocol, created_at=EPOCH + after)
    identity = ProblemId(slug="double", sha256=problem.sha256, private=cases)
    verdict = model.model_copy(update={"problem": identity})
    archive(competition / "leaderboard/archive", "double", submission)
    JsonlLedger(competition / "leaderboard/results/double.jsonl").append(verdict)
    return verdict


def test_private_cases_are_hidden_tests_of_the_problem(problem: Problem, private: Path, competition: Path) -> None:
    assert problem.private_tests == problem.tests[3:]
    assert [(case.name, case.hidden) for case in problem.tests[3:]] == [("unknown to all", True), ("on a GPU", True)]
    assert Reference.load(problem)
    public = load(competition / "problems/double")
    assert problem.sha256 == identify(competition / "problems/double", private) != public.sha256
    toml, reference = ((public.directory / name).read_bytes() for name in ("problem.toml", "reference.py"))
    assert public.sha256 == length_prefixed_sha256(toml, reference), "without private cases the hash is what it was"
    assert find_problem(Settings.load(), "double").sha256 == problem.sha256
    (private / "double.toml").write_text(PRIVATE.replace("4711", "4712"))
    with pytest.raises(ProblemError, match="changed after it was loaded"):
        Reference.load(problem)
    assert find_problem(Settings.load(), "double").sha256 != problem.sha256
    (private / "double.toml").unlink()
    with pytest.raises(ProblemError, match="changed after it was loaded"):
        Reference.load(problem)
    assert find_problem(Settings.load(), "double") == public


BAD = [
    ("n = 4711", "m = 4711", "key `tests[0].params.m` is unknown; known: `n`"),
    ("n = 4711", "n = 0", "key `tests[0].params` leaves every output without elements"),
    ("low = 815", "low = 0", "key `tests[1].params` leaves every output without elements"),
    ("n = 4711", 'n = "int8"', "key `tensors[0].shape[0]` has no value"),
    ('"unknown to all"', '"prime"', "key `tests[0].name` is 'prime', as is `tests[1].name` of "),
    ("[[tests]]", "[[test]]", "key `test` is unknown; did you mean `tests`?"),
    ("[[tests]]", "[[benchmarks]]", "key `benchmarks` is in a private file; a time reveals its sizes"),
    (f'salt = "{SALT}"', "", "key `salt` is missing; it is 32 or more random characters"),
    (SALT, "short", "key `salt`: string should have at least 32 characters"),
    ('salt = "', "salt = ", "is not TOML"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "line"), BAD)
def test_a_bad_private_file_gets_one_line(private: Path, old: str, new: str, line: str) -> None:
    assert old in PRIVATE
    (private / "double.toml").write_text(PRIVATE.replace(old, new))
    with pytest.raises(ProblemError) as caught:
        find_problem(Settings.load(), "double")
    text = str(caught.value)
    assert line in text
    assert text.startswith(str(private / "double.toml"))
    assert "\n" not in text


def test_the_folder_lies_outside_the_project(
    competition: Path, tmp_path: Path, private: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = competition / "private"
    inside.mkdir()
    link = tmp_path / "link"
    link.symlink_to(inside)
    own = [(folder, "is inside") for folder in (inside, link, competition / "problems", competition)]
    none = [(path, "is not a folder") for path in (tmp_path / "none", private / "double.toml")]
    for folder, line in own + none:
        monkeypatch.setenv("KERNELMARK_PRIVATE_CASES", str(folder))
        with pytest.raises(UsageError, match=line):
            private_folder(Settings.load())
    (tmp_path / ".git").mkdir()
    monkeypatch.setenv("KERNELMARK_PRIVATE_CASES", "../private")
    with pytest.raises(UsageError, match="is inside"):
        private_folder(Settings.load())
    (tmp_path / ".git").rmdir()
    assert private_folder(Settings.load()) == private.resolve(), "a relative path starts at the project"


def test_a_sandbox_that_shows_them_is_refused(private: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    submission = Submission.of("def twice(x, y): ...\n", "py", author="ada")
    with pytest.raises(UsageError, match="can be read inside the sandbox process; use docker or bwrap"):
        PreparedJob.prepare(Settings.load(), "double", submission, author="ada").check()
    for sandbox, bound in (("docker", tmp_path), ("bwrap", Path("/usr"))):
        monkeypatch.setattr(f"harness.sandbox.{sandbox}.{sandbox.title()}.unavailable", lambda self: None)
        monkeypatch.setenv("KERNELMARK_DOCKER_BINDS", str(bound))
        if sandbox == "bwrap":
            monkeypatch.setattr("harness.sandbox.bwrap._SYSTEM", (str(tmp_path),))
        with pytest.raises(UsageError, match=f"can be read inside the sandbox {sandbox}; move it"):
            PreparedJob.prepare(Settings.load(sandbox=sandbox), "double", submission, author="ada").check()


def test_missing_private_cases_warn(problem: Problem, competition: Path, caplog: pytest.LogCaptureFixture) -> None:
    recorded(competition, problem)
    submission = Submission.of("# eve\n", "py", author="eve", name="kernel.py")
    verdict = accepted(submission=submission, problem="double")
    record(Settings.load(), submission, verdict)
    table_of(publish(Settings.load(), "double"), verdict)
    assert "double has results with private cases, but this one has none" in caplog.text


def test_a_problem_that_was_loaded_without_them_is_not_recorded(private: Path, competition: Path) -> None:
    submission = Submission.of("def twice(x, y): ...\n", "py", author="ada")
    without = load(competition / "problems/double")
    with pytest.raises(UsageError, match="loaded without the project's private cases"):
        admit(PreparedJob.prepare(Settings.load(), without, submission, author="ada"))
    assert admit(PreparedJob.prepare(Settings.load(), "double", submission, author="ada")) is None


def test_every_board_tells_how_many_there_are_and_nothing_else(
    problem: Problem, competition: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdict = recorded(competition, problem)
    board = command("board", "--write", "--format", "json").out
    assert command("site", "build", "--out", "site").code == 0
    page, document = ((competition / f"site/problems/double.{suffix}").read_text() for suffix in ("html", "json"))
    texts = [command("board").out, command("show", verdict.run).out, page]
    texts += [(competition / "leaderboard" / name).read_text() for name in ("BOARD.md", "boards/double.md")]
    assert all("2 private cases" in text for text in texts)
    assert not any(secret in text for secret in SECRETS for text in (*texts, board, document))
    shown = json.loads(document)["boards"][0]
    assert [each["private"]["cases"] for each in (json.loads(board)["items"][0], shown)] == [2, 2]
    assert shown["current"] is True
    monkeypatch.delenv("KERNELMARK_PRIVATE_CASES")
    assert command("site", "build", "--out", "site").code == 0, "a machine that publishes needs no private cases"
    page = (competition / "site/problems/double.html").read_text()
    assert "2 private cases" in page
    assert "(old)" not in page
    assert "private" not in command("problems", "show", "double").out
    assert "private" not in command("problems", "show", "double", "--format", "json").out


def test_the_problem_says_how_many_there_are(problem: Problem, command: Command) -> None:
    shown, document = command("problems", "show", "double"), command("problems", "show", "double", "--format", "json")
    assert "test        and 2 hidden ones, 2 of them private\n" in shown.out
    assert (json.loads(document.out)["hidden_tests"], json.loads(document.out)["private_tests"]) == (2, 2)
    for text in (shown.out, document.out, command("problems", "list").out):
        assert not any(secret in text for secret in SECRETS)


def test_without_the_private_cases_results_are_not_stale(
    problem: Problem, competition: Path, private: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdict = recorded(competition, problem)
    expected = "double.jsonl: 1 entry, 1 verdict on the current problem, 0 on earlier versions of it\n"

    def marks() -> list[str]:
        [table] = tables(Settings.load())
        return [row.stale.reason for row in table.rows if row.stale]

    assert (marks(), command("verify").out) == ([], expected)
    (private / "double.toml").write_text(PRIVATE.replace("4711", "4712"))
    assert marks()[0].startswith("the problem changed, ")
    monkeypatch.delenv("KERNELMARK_PRIVATE_CASES")
    assert (marks(), command("verify").out) == ([], expected)
    toml = competition / "problems/double/problem.toml"
    toml.write_text(toml.read_text() + "# changed\n")
    assert marks()[0].startswith("the problem changed, ")
    now = current(Settings.load())
    assert stale(verdict.problem, verdict.protocol, verdict.environment, now)


FINAL = f"""
salt = "{SALT[::-1]}"

[[tests]]
name = "at last"
params = {{ n = 9973 }}
"""
DEADLINE = datetime(2999, 1, 31, tzinfo=UTC)
CLOSES = DEADLINE + timedelta(days=2)
SCHEDULE = 'deadline = 2999-01-31T00:00:00Z\ngrace = "1h"\nlate = { days = 2, penalty_per_day = 0.1 }\n'


@pytest.fixture
def final(private: Path, competition: Path) -> Path:
    """The file of final tests of `double`, which has a deadline."""
    (private / "double.final.toml").write_text(FINAL)
    (private / "double.final.toml").chmod(0o600)
    toml = competition / "problems/double/problem.toml"
    toml.write_text(SCHEDULE + toml.read_text())
    return private / "double.final.toml"


def test_final_tests_are_part_of_the_problem_once_it_is_closed(problem: Problem, final: Path) -> None:
    """They join when nothing is accepted any more: whoever submits late must not learn from them."""
    before, after = (
        find_problem(Settings.load(), "double", moment) for moment in (CLOSES, CLOSES + timedelta(seconds=1))
    )
    assert before.model_copy(update={"deadline": None, "grace": None, "late": None}) == problem
    assert [(case.name, case.hidden) for case in after.private_tests[2:]] == [("at last", True)]
    assert after.final_tests == after.private_tests[2:]
    assert before.final_tests == ()
    assert before.sha256 != after.sha256
    for loaded, counts in ((before, False), (after, True)):
        assert identify(loaded.directory, final.parent, counts) == loaded.sha256
        assert Reference.load(loaded), "the clock is not asked again"
    final.write_text(FINAL.replace("9973", "9967"))
    assert find_problem(Settings.load(), "double", CLOSES) == before, "until then they may change"
    assert find_problem(Settings.load(), "double", final=True).sha256 != after.sha256
    (final.parent / "double.toml").unlink()
    assert find_problem(Settings.load(), "double", CLOSES).private is None
    assert [case.name for case in find_problem(Settings.load(), "double", final=True).private_tests] == ["at last"]


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("n = 9973", "n = 0", "key `tests[0].params` leaves every output without elements"),
        ('"at last"', '"unknown to all"', "key `tests[0].name` is 'unknown to all', as is `tests[0].name`"),
        ('"at last"', '"prime"', "key `tests[0].name` is 'prime', as is `tests[1].name` of "),
        ("salt", "pepper", "key `pepper` is unknown"),
        (SCHEDULE, "", "holds final tests, but the problem has no `deadline`; set one in "),
    ],
)
def test_final_tests_are_checked_before_they_count(
    final: Path, competition: Path, command: Command, old: str, new: str, line: str
) -> None:
    toml = competition / "problems/double/problem.toml"
    assert old in FINAL + SCHEDULE
    final.write_text(FINAL.replace(old, new))
    toml.write_text(toml.read_text().replace(old, new))
    (competition / "kernel.py").write_text("def twice(x, y): y.copy_(2 * x)\n")
    result = command("submit", "double", "kernel.py")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert result.err.startswith(f"kernelmark: error: {final}")
    assert line in result.err


def test_a_grading_has_one_moment(final: Path, competition: Path) -> None:
    """What was read while the problem was open is admitted as such, even if it closes meanwhile."""
    submission = Submission.of("def twice(x, y): ...\n", "py", author="ada")
    open_ = PreparedJob.prepare(Settings.load(), "double", submission, author="ada", moment=DEADLINE)
    assert (open_.problem.final_tests, admit(open_)) == ((), None)
    closed = PreparedJob.prepare(
        Settings.load(), "double", submission, author="ada", moment=CLOSES + timedelta(seconds=1)
    )
    assert len(closed.problem.final_tests) == 1
    with pytest.raises(UsageError, match="takes no more submissions, closed since 2999-02-02 00:00 UTC"):
        admit(closed)
    with pytest.raises(UsageError, match="has changed since"):
        admit(PreparedJob(closed.settings, open_.problem, submission, closed.moment), "grace")


def test_final_tests_are_not_revealed_before_the_deadline(final: Path, competition: Path, command: Command) -> None:
    open_ = find_problem(Settings.load(), "double", CLOSES)
    recorded(competition, open_)
    assert command("board", "--write").code == command("site", "build", "--out", "site").code == 0
    pages = [path.read_text() for path in competition.rglob("site/**/*.*") if path.suffix in (".html", ".json")]
    pages += [path.read_text() for path in competition.glob("leaderboard/**/*.md")]
    shown = [command("problems", "show", "double", "--format", form).out for form in ("table", "json")]
    assert not any(secret in page for secret in ("at last", "9973", SALT[::-1]) for page in (*pages, *shown))
    assert '"private_tests": 2' in shown[1]


@pytest.mark.parametrize("others", [2, 0])
def test_the_board_of_the_final_tests_is_the_current_one_everywhere(
    others: int, final: Path, competition: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether or not there were other private cases before."""
    if not others:
        (final.parent / "double.toml").unlink()
    before, after = (find_problem(Settings.load(), "double", counts) for counts in (False, True))
    for author in ("ada", "eve"):
        recorded(competition, before, author)
    newer = recorded(competition, after, after=timedelta(days=1))
    toml = competition / "problems/double/problem.toml"
    toml.write_text(toml.read_text().replace("2999-01-31T", "2020-01-31T"))

    def seen() -> list[tuple[int, list[tuple[str, str | None]]]]:
        return [
            (
                table.private.cases if table.private else 0,
                [(row.author, row.stale and row.stale.again) for row in table.rows if row.stale],
            )
            for table in tables(Settings.load())
        ]

    expected = [(2, []), (others, [("ada", newer.run), ("eve", None)])]
    assert seen() == expected
    monkeypatch.delenv("KERNELMARK_PRIVATE_CASES")
    assert seen() == expected, "the newest private cases count where they are not known"
    assert command("site", "build", "--out", "site").code == 0
    boards = json.loads((competition / "site/problems/double.json").read_text())["boards"]
    assert [board["current"] for board in boards] == [True, False]


def test_a_verdict_without_private_cases_is_written_as_before() -> None:
    verdict = accepted()
    assert json.loads(verdict.to_json())["problem"].keys() == {"slug", "sha256"}
    assert Verdict.from_json(verdict.to_json()) == verdict


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda folder: None, "ok    private cases  /"),
        (lambda folder: (folder / "dobule.toml").write_text(""), "dobule.toml: no such problem"),
        (lambda folder: (folder / "dobule.final.toml").write_text(""), "dobule.final.toml: no such problem"),
        (lambda folder: folder.chmod(0o755), "others have rights on"),
        (lambda folder: (folder / "double.toml").chmod(0o644), "others have rights on"),
    ],
)
def test_the_doctor_looks_at_the_folder(private: Path, change: object, line: str) -> None:
    from kernelmark.diagnostics import doctor
    from kernelmark.diagnostics.doctor import project

    change(private)  # type: ignore[operator]
    found = list(project.problems(Settings.load()))
    assert line in "\n".join(doctor.lines(found))
    assert found[-1].text == "loads, with 2 private cases"
