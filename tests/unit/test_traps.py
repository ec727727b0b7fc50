"""Every reader of files of others, with something else in place of a file: one clear line, and no waiting."""

from __future__ import annotations

import random
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import HarnessError, LedgerError, SubmissionError, UsageError
from harness.profiling.memory import timelines
from harness.submission import Submission
from harness.verdict import SubmissionId
from kernelmark.course.submissions import submissions_in
from kernelmark.interop.importing import checkout as importing
from kernelmark.interop.importing import gpu_mode, kernelbench
from kernelmark.interop.importing.checkout import Candidate, NotImportedError
from kernelmark.project import calibrations
from kernelmark.project.settings import Settings
from leaderboard.publishing.site.charts.memory import memory
from leaderboard.record import archive
from leaderboard.record.ledger import JsonlLedger
from tests.traps import LINKS, TRAPS, deep, ends
from tests.unit.conftest import Answering, Command
from tests.unit.test_importing import SETS
from tests.unit.test_inspection import graded, ledger  # noqa: F401 - a fixture
from tests.verdicts import accepted

KERNEL = "def twice(x, y): y.copy_(2 * x)\n"
COMPRESSED = {"deflate": zipfile.ZIP_DEFLATED, "bzip2": zipfile.ZIP_BZIP2, "lzma": zipfile.ZIP_LZMA}


@pytest.mark.parametrize("trap", TRAPS)
def test_a_submission_is_a_file(trap: str, run: Command, project: Path) -> None:
    TRAPS[trap](project / "trap.py")
    with ends():
        result = run("check", "double", "trap.py")
    assert result.code == 2
    assert len(result.err.splitlines()) == 1
    assert "trap.py " in result.err


def test_a_submission_may_be_a_link_of_its_authors(project: Path) -> None:
    (project / "link.py").symlink_to("kernel.py")
    assert Submission.read(project / "link.py", "ada").source == (project / "kernel.py").read_bytes()


@pytest.mark.parametrize("trap", TRAPS)
def test_a_trap_as_kernel_affects_one_author(trap: str, competition: Path, command: Command, judge: Answering) -> None:
    for author in ("ada", "bob"):
        (competition / "handins" / author).mkdir(parents=True)
    (competition / "handins/ada/kernel.py").write_text(KERNEL)
    TRAPS[trap](competition / "handins/bob/kernel.py")
    judge(accepted())
    with ends():
        result = command("grade", "double", "handins", "--no-record", "--csv", "marks.csv")
    assert result.code == 2, result.err
    rows = (competition / "marks.csv").read_text().splitlines()
    [ada] = [row for row in rows if row.startswith("ada,")]
    [bob] = [row for row in rows if row.startswith("bob,")]
    assert "accepted" in ada
    assert "accepted" not in bob
    if trap not in LINKS | {"folder", "huge"}:
        assert "bob/kernel.py cannot be read (it is" in result.out


def zipped(path: Path, method: int) -> Path:
    """Two hand-ins; a stream of the second one's is long enough that damage can lie anywhere."""
    drawn = random.Random(7)
    long = KERNEL + "".join(f"# {drawn.random()}\n" for _ in range(400))
    with zipfile.ZipFile(path, "w", method) as made:
        made.writestr("ada/kernel.py", KERNEL)
        made.writestr("bob/kernel.py", long)
    return path


@pytest.mark.parametrize("method", COMPRESSED)
def test_damaged_streams_affect_one_author(method: str, competition: Path, command: Command, judge: Answering) -> None:
    path = zipped(competition / "handins.zip", COMPRESSED[method])
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as whole:
        bob = whole.getinfo("bob/kernel.py")
    assert [each.submission().author for each in submissions_in(path)] == ["ada", "bob"], "undamaged, it is read"
    start = bob.header_offset + 30 + len(bob.filename) + 9
    content[start : start + 200] = b"\xff" * 200
    path.write_bytes(content)
    judge(accepted())
    result = command("grade", "double", "handins.zip", "--no-record")
    assert result.code == 2, result.err
    assert "bob/kernel.py cannot be read from the archive (" in result.out
    assert "Traceback" not in result.err
    assert "1 accepted" in result.out + result.err or "accepted" in result.out


@pytest.mark.parametrize("method", COMPRESSED)
def test_an_archive_damaged_anywhere_is_refused(method: str, tmp_path: Path) -> None:
    whole = zipped(tmp_path / "whole.zip", COMPRESSED[method]).read_bytes()
    drawn, damaged, refusals = random.Random(method), tmp_path / "damaged.zip", 0
    for _ in range(150):
        content = bytearray(whole)
        for _ in range(drawn.randrange(1, 6)):
            # Half of it in the directory at the end, which says how to read the rest.
            at = drawn.randrange(len(content) - (160 if drawn.random() < 0.5 else len(content)), len(content))
            content[at] = drawn.randrange(256)
        damaged.write_bytes(content[: drawn.randrange(len(content))] if drawn.random() < 0.1 else content)
        try:
            for each in submissions_in(damaged):
                try:
                    each.submission()
                except SubmissionError:
                    refusals += 1
        except UsageError:
            refusals += 1
    assert refusals > 20


@pytest.mark.parametrize("trap", [each for each in TRAPS if each != "folder"])
def test_the_hand_ins_are_a_folder_or_an_archive(trap: str, tmp_path: Path) -> None:
    TRAPS[trap](tmp_path / "handins.zip")
    with ends(), pytest.raises(UsageError, match=r"handins\.zip cannot be read .*; name a folder, or a zip archive"):
        submissions_in(tmp_path / "handins.zip")


def test_deep_folders_of_a_hand_in_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "ada").mkdir()
    (tmp_path / "ada/kernel.py").write_text(KERNEL)
    (tmp_path / "bob").mkdir()
    with deep(tmp_path / "bob"):
        ada, bob = submissions_in(tmp_path)
        assert ada.submission().source == KERNEL.encode()
        with pytest.raises(SubmissionError, match=r"bob: no kernel \(its folder is empty\)"):
            bob.submission()


@pytest.mark.parametrize("trap", TRAPS)
def test_an_archived_source_that_is_no_file_is_reported_with_its_run(
    trap: str,
    ledger: object,  # noqa: F811
    competition: Path,
    command: Command,
) -> None:
    assert command("verify").code == 0
    (ada,) = (competition / "leaderboard/archive/double/ada").iterdir()
    ada.unlink()
    TRAPS[trap](ada)
    with ends():
        said, alike, built = command("verify"), command("similar", "double"), command("site", "build")
    assert said.code == 7
    [fault] = [line for line in said.out.splitlines() if ".jsonl:1: " in line]
    assert ": run " in fault
    assert f"{ada}: the archived source cannot be read (" in fault
    assert (alike.code, built.code) == (0, 0), (alike.err, built.err)
    assert "the archived source cannot be read" in alike.err


@pytest.mark.parametrize("trap", TRAPS)
def test_nothing_is_archived_in_place_of_a_trap(trap: str, tmp_path: Path) -> None:
    submission, _ = graded("ada")
    identity = SubmissionId.of(submission)
    path = archive.location(tmp_path, "double", "ada", identity.sha256, identity.name)
    path.parent.mkdir(parents=True)
    TRAPS[trap](path)
    with ends(), pytest.raises(HarnessError, match=r"cannot be archived|something other than what was submitted"):
        archive.archive(tmp_path, "double", submission)


@pytest.mark.parametrize("trap", TRAPS)
def test_a_ledger_that_is_no_file_is_reported(
    trap: str,
    ledger: JsonlLedger,  # noqa: F811
    command: Command,
) -> None:
    run = next(iter(ledger.read())).verdict.run
    ledger.path.unlink()
    TRAPS[trap](ledger.path)
    with ends():
        verified, shown = command("verify"), command("show", run)
        with pytest.raises(UsageError, match=r"double\.jsonl: the result cannot be recorded there"):
            ledger.refuse_if_broken()
        with pytest.raises(LedgerError, match=r"double\.jsonl "):
            ledger.append(accepted(problem="double"))
    assert verified.code == shown.code == 7
    assert f"{ledger.path}:1" in verified.out
    assert "Traceback" not in verified.err + shown.err
    assert str(ledger.path) in shown.err


@pytest.mark.parametrize("trap", TRAPS)
@pytest.mark.parametrize("file", ["task.yml", "reference.py"])
def test_a_trap_in_a_checkout_of_gpu_mode_concerns_its_problem_alone(trap: str, file: str, tmp_path: Path) -> None:
    shutil.copytree(SETS, checkout := tmp_path / "checkout")
    whole = [candidate for candidate in gpu_mode.candidates(checkout) if _reads(checkout, candidate)]
    spoilt, *others = [each for each in whole if (each.file.parent / file).is_file()]
    assert others
    (spoilt.file.parent / file).unlink()
    TRAPS[trap](spoilt.file.parent / file)
    with ends():
        found = gpu_mode.candidates(checkout)
        assert all(other in found and _reads(checkout, other) for other in others)
        assert not _reads(checkout, spoilt)


def _reads(checkout: Path, candidate: Candidate) -> bool:
    try:
        return bool(gpu_mode.read(checkout, candidate).files)
    except NotImportedError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017 - it is told in a list
        return False


@pytest.mark.parametrize("trap", TRAPS)
def test_a_trap_in_a_checkout_of_kernelbench_concerns_its_problem_alone(trap: str, tmp_path: Path) -> None:
    level = tmp_path / "KernelBench/level1"
    level.mkdir(parents=True)
    (level / "1_whole.py").write_text("class Model: ...\n")
    (level / "3_\udcff.py").write_text("no text can hold its name")
    TRAPS[trap](level / "2_trap.py")
    with ends():
        found = kernelbench.candidates(tmp_path)
        assert kernelbench.read(tmp_path, found[0]).files[0].content == b"class Model: ...\n"
        for each in found[1:]:
            assert each.slug == "kernelbench_1_2_trap"
            with pytest.raises(NotImportedError, match=r"its file '2_trap\.py' (is|does)"):
                kernelbench.read(tmp_path, each)


@pytest.mark.parametrize("candidates", [gpu_mode.candidates, kernelbench.candidates])
def test_deep_folders_of_a_checkout_are_passed_over(candidates: Callable[[Path], object], tmp_path: Path) -> None:
    checkout = shutil.copytree(SETS.parent, tmp_path / "checkout")
    found = candidates(checkout)
    assert found
    with ends(), deep(checkout):
        assert candidates(checkout) == found


def test_a_folder_with_more_than_any_checkout_has_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "MAX_FILES", 20)
    for number in range(21):
        (tmp_path / str(number)).touch()
    for candidates in (gpu_mode.candidates, kernelbench.candidates):
        with pytest.raises(UsageError, match=r": it holds more than 20 files; name the folder of the checkout alone"):
            candidates(tmp_path)


@pytest.mark.parametrize("trap", TRAPS)
@pytest.mark.parametrize("name", ["problem.toml", "reference.py", "README.md"])
def test_a_problems_files_are_files(trap: str, name: str, run: Command, project: Path) -> None:
    file = project / "problems/double" / name
    file.unlink(missing_ok=True)
    TRAPS[trap](file)
    with ends():
        said = [run("check", "double", "kernel.py"), run("site", "build"), run("problems", "show", "double")]
    if name == "README.md":
        assert said[2].code == 0
        assert {each.code for each in said} <= {0, 2}
    else:
        assert said[0].code == 2
        assert len(said[0].err.splitlines()) == 1
    assert not any("Traceback" in each.err or each.code == 7 for each in said)


@pytest.mark.parametrize("trap", TRAPS)
def test_a_calibration_is_a_file(trap: str, project: Path) -> None:
    devices = project / "leaderboard/devices"
    devices.mkdir(parents=True)
    TRAPS[trap](devices / "cpu.json")
    with ends(), pytest.raises(UsageError, match=r"cpu\.json is not a valid calibration \(.*; remove it and run"):
        calibrations.stored(Settings.load(project))


@pytest.mark.parametrize("trap", [each for each in TRAPS if each not in LINKS])
def test_a_table_of_moments_is_a_file(trap: str, competition: Path, command: Command) -> None:
    (competition / "handins").mkdir()
    (competition / "handins/ada.py").write_text(KERNEL)
    TRAPS[trap](competition / "when.csv")
    with ends():
        result = command("grade", "double", "handins", "--handed-in", "when.csv", "--no-record")
    assert result.code == 2
    assert "when.csv" in result.err + result.out


@pytest.mark.parametrize("at_us", [float("1e308"), -float("1e308"), 10**19, 1 << 60])
def test_a_time_beyond_all_bounds_is_not_of_a_timeline(at_us: float) -> None:
    def event(ts: float) -> dict[str, object]:
        return {"name": "[memory]", "ts": ts, "args": {"Device Type": 0, "Bytes": 64}}

    [timeline] = timelines([event(1.0), event(3.5), event(at_us)])
    assert timeline.points == ((0.0, 64), (2.5, 128))
    assert memory(timeline.points, "CPU").startswith("<svg")
