"""Private cases: read from a folder outside the project, part of the problem's identity, told by their number alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.errors import ProblemError, UsageError
from harness.identity import length_prefixed_sha256
from harness.problem import Problem, load
from harness.problem.load import identify
from harness.problem.reference import Reference
from harness.submission import Submission
from harness.verdict import PrivateId, ProblemId, Verdict
from kernelmark.services.prepared import PreparedJob
from kernelmark.services.problems import find_problem, private_folder
from kernelmark.services.recording import record
from kernelmark.services.records import current, tables
from kernelmark.services.settings import Settings
from leaderboard.record.archive import archive
from leaderboard.record.ledger import JsonlLedger
from leaderboard.standings.staleness import stale
from tests.unit.conftest import Command
from tests.verdicts import accepted

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


def recorded(competition: Path, of: Problem, author: str = "ada") -> Verdict:
    """An accepted verdict on a problem, in the project's ledger and archive."""
    submission = Submission.of(f"# {author}\n", "py", author=author, name="kernel.py")
    model = accepted(author=author, problem="double")
    cases = PrivateId(sha256=of.private.sha256, cases=2) if of.private else None
    verdict = model.model_copy(
        update={
            "problem": ProblemId(slug="double", sha256=of.sha256, private=cases),
            "submission": model.submission.model_copy(update={"sha256": submission.sha256}),
            "protocol": current(Settings.load()).protocol,
        }
    )
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
    ('"unknown to all"', '"prime"', "key `tests[0].name` is 'prime', as is `tests[1].name`"),
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


def test_a_result_without_them_beside_results_with_them_is_told(
    problem: Problem, competition: Path, caplog: pytest.LogCaptureFixture
) -> None:
    recorded(competition, problem)
    submission = Submission.of("# eve\n", "py", author="eve", name="kernel.py")
    model = accepted(author="eve", problem="double")
    told = model.submission.model_copy(update={"sha256": submission.sha256})
    record(Settings.load(), submission, model.model_copy(update={"submission": told}))
    assert "double has results with private cases, but this one has none" in caplog.text


def test_a_problem_that_was_loaded_without_them_is_not_recorded(private: Path, competition: Path) -> None:
    submission = Submission.of("def twice(x, y): ...\n", "py", author="ada")
    without = load(competition / "problems/double")
    with pytest.raises(UsageError, match="loaded without the project's private cases"):
        PreparedJob.prepare(Settings.load(), without, submission, author="ada").admit()
    assert PreparedJob.prepare(Settings.load(), "double", submission, author="ada").admit() is None


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
    assert [each["private"]["cases"] for each in (json.loads(board)[0], shown)] == [2, 2]
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


def test_whoever_has_no_private_cases_takes_them_to_be_as_they_were(
    problem: Problem, competition: Path, private: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdict = recorded(competition, problem)
    told = "double.jsonl: 1 entry, 1 verdict on the current problem, 0 on earlier versions of it\n"

    def marks() -> list[str]:
        [table] = tables(Settings.load())
        return [row.stale.reason for row in table.rows if row.stale]

    assert (marks(), command("verify").out) == ([], told)
    (private / "double.toml").write_text(PRIVATE.replace("4711", "4712"))
    assert marks()[0].startswith("the problem changed, ")
    monkeypatch.delenv("KERNELMARK_PRIVATE_CASES")
    assert (marks(), command("verify").out) == ([], told)
    toml = competition / "problems/double/problem.toml"
    toml.write_text(toml.read_text() + "# changed\n")
    assert marks()[0].startswith("the problem changed, ")
    now = current(Settings.load())
    assert stale(verdict.problem, verdict.protocol, verdict.environment, now)


def test_a_verdict_without_private_cases_is_written_as_before() -> None:
    verdict = accepted()
    assert json.loads(verdict.to_json())["problem"].keys() == {"slug", "sha256"}
    assert Verdict.from_json(verdict.to_json()) == verdict


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda folder: None, "ok    private cases  "),
        (lambda folder: (folder / "dobule.toml").write_text(""), "dobule.toml: no such problem"),
        (lambda folder: folder.chmod(0o755), "others have rights on"),
        (lambda folder: (folder / "double.toml").chmod(0o644), "others have rights on"),
    ],
)
def test_the_doctor_looks_at_the_folder(private: Path, change: object, line: str) -> None:
    from kernelmark.services import doctor
    from kernelmark.services.doctor import project

    change(private)  # type: ignore[operator]
    found = list(project.problems(Settings.load()))
    assert line in "\n".join(doctor.lines(found))
    assert found[-1].text == "loads, with 2 private cases"
