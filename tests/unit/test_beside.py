"""Additional files of a submission: their names and limits, the hash over all of them, and where they are stored."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import kernelmark
from harness.errors import HarnessError
from harness.files.identity import length_prefixed_sha256
from harness.submission import MAX_BESIDE, MAX_SOURCE_BYTES, Submission
from harness.verdict import Outcome, SubmissionId
from harness.wire import checks, commands, frame
from kernelmark.commands.left_out import left_out
from kernelmark.grading.fleet.messages import JobRequest
from kernelmark.grading.setup import read_submission
from leaderboard.record.archive import archive, present, stored
from leaderboard.record.similar import GradedFile, similar
from tests.unit.conftest import Answering, Command
from tests.verdicts import failed
from tests.workers import request

SOURCE = "import tiling\n"


def with_files(beside: Mapping[str, Any], language: str = "py", name: str = "kernel.py") -> Submission:
    return Submission.of(SOURCE, language, author="ada", name=name, beside=beside)


def test_the_hash_of_one_file_is_as_it_always_was() -> None:
    """Ledgers have it."""
    expected = length_prefixed_sha256(b"kernelmark submission", b"py", SOURCE.encode())
    assert with_files({}).sha256 == expected
    assert SubmissionId.of(with_files({})).model_dump(exclude_none=True).keys() == {
        "sha256", "name", "author", "language", "size_bytes",
    }  # fmt: skip


def test_the_hash_covers_each_name_and_each_content_in_any_order() -> None:
    files = [{}, {"a.py": "1"}, {"a.py": "2"}, {"b.py": "1"}, {"a.py": "1", "b.py": ""}, {"a.py": "", "b.py": "1"}]
    assert len({with_files(beside).sha256 for beside in files}) == len(files)
    assert with_files({"a.py": "1", "b.py": "2"}) == with_files({"b.py": "2", "a.py": "1"})
    assert with_files({"a.py": "1"}).sha256 == with_files({"a.py": "1"}, name="other.py").sha256


@pytest.mark.parametrize(
    ("language", "names"),
    [
        ("py", ("tiling.py", "_a.py", "A1.py")),
        ("cu", ("common.cuh", "common.h", "a-b.hpp", "1.inl", "a.b.h")),
        ("cpp", ("common.h", "math.h", "common.hpp", "x.inl", "x.cuh")),
    ],
)
def test_judge_and_runner_accept_the_same_names(language: str, names: tuple[str, ...]) -> None:
    submission = with_files(dict.fromkeys(names, "x"), language, name="")
    assert {name for name, _ in submission.beside} == set(names)
    for name in names:
        [(_, command)] = [frame.decode(frame.encode(1, commands.Place(name=name)), commands.COMMANDS)]
        assert command == commands.Place(name=name)


@pytest.mark.parametrize(
    ("language", "name", "says"),
    [
        ("py", "torch.py", "in place of the module `torch`"),
        ("py", "math.py", "in place of the module `math`"),
        ("py", "sitecustomize.py", "in place of the module `sitecustomize`"),
        ("py", "submission.py", "the submission's own file"),
        ("py", "kernel.py", "the submission's own file"),
        ("py", "common.h", "cannot lie beside a .py submission"),
        ("cpp", "tiling.py", "cannot lie beside a .cpp submission"),
        ("cu", "other.cu", "cannot lie beside a .cu submission"),
        ("cu", "cuda_runtime.h", "CUDA's own header"),
        ("cpp", "../x.h", "not a plain name"),
        ("cpp", "a/x.h", "not a plain name"),
        ("cpp", ".h", "not a plain name"),
        ("cpp", "-x.h", "not a plain name"),
        ("cpp", "\u00e4.h", "not a plain name"),
        ("cpp", "x.h\n", "cannot lie beside"),
        ("cpp", "a" * 10**6 + ".h", "not a plain name"),
        ("py", "a-b.py", "not a plain name"),
        ("py", 5, "cannot lie beside"),
    ],
)
def test_any_other_name_is_refused_in_one_line(language: str, name: Any, says: str) -> None:
    with pytest.raises(kernelmark.SubmissionError, match=says) as refused:
        with_files({name: "x"}, language)
    assert len(str(refused.value)) < 300
    assert str(refused.value).isprintable()


@pytest.mark.parametrize("name", ["submission.py", "../x.h", "a/b.py", "x.so", "cuda_runtime.h", ".h", "x.h\n", ""])
def test_the_runner_refuses_the_same_names(name: str) -> None:
    packet = frame.encode(1, commands.Place(name="x.h")).replace(b'"x.h"', b'"' + name.encode("unicode_escape") + b'"')
    with pytest.raises(checks.WireError):
        frame.decode(packet, commands.COMMANDS)


@pytest.mark.parametrize(
    ("beside", "says"),
    [
        ({"a.py": "#" * (MAX_SOURCE_BYTES - len(SOURCE) + 1)}, "with the files beside it is larger than 1,048,576"),
        ({f"a{n}.py": "" for n in range(MAX_BESIDE + 1)}, f"has {MAX_BESIDE + 1} files beside it; use at most 32"),
        ({"a.py": b"\xff"}, "a.py is not UTF-8"),
        ({"a.py": "\0"}, "a.py holds a NUL"),
        ({"a.py": None}, "its content is of type NoneType"),
    ],
)
def test_limits_hold_for_all_files_together(beside: dict[str, Any], says: str) -> None:
    with_files({"a.py": "#" * (MAX_SOURCE_BYTES - len(SOURCE))})
    with_files({f"a{n}.py": "" for n in range(MAX_BESIDE)})
    with pytest.raises(kernelmark.SubmissionError, match=says):
        with_files(beside)


def test_files_are_read_from_any_folder_and_two_of_one_name_are_refused(tmp_path: Path) -> None:
    own, one, other = tmp_path / "kernel.cpp", tmp_path / "x" / "common.h", tmp_path / "y" / "common.h"
    for path in (own, one, other):
        path.parent.mkdir(exist_ok=True)
        path.write_text(path.parent.name)
    assert Submission.read(own, "ada", [one]).beside == (("common.h", b"x"),)
    with pytest.raises(kernelmark.SubmissionError, match="the name of another file"):
        Submission.read(own, "ada", [one, other])
    with pytest.raises(kernelmark.SubmissionError, match=r"none\.h cannot be read"):
        Submission.read(own, "ada", [tmp_path / "none.h"])


@pytest.mark.parametrize(
    ("given", "beside", "says"),
    [
        (Submission.of("x", "py", author="ada"), {"a.py": "1"}, "is given with a Submission"),
        (Path("kernel.py"), {"a.py": "1"}, "is not a list of paths"),
        (Path("kernel.py"), "a.py", "is not a list of paths"),
        (Path("kernel.py"), ["a.py"], "give a pathlib.Path"),
        ("import a", [Path("a.py")], "is not a dictionary"),
    ],
)
def test_extra_files_from_python_are_checked_like_the_submission(given: Any, beside: Any, says: str) -> None:
    with pytest.raises(kernelmark.SubmissionError, match=says):
        read_submission(given, "ada", beside=beside)
    assert read_submission("import a", "ada", beside={"a.py": "1"}).beside == (("a.py", b"1"),)


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("line 1: ModuleNotFoundError: No module named 'tiling'", "add `--with FOLDER/tiling.py`"),
        ("test small: line 3: ModuleNotFoundError: No module named 'tiling.rows'", "add `--with FOLDER/tiling.py`"),
        ("submission.cpp:1:10: fatal error: common.h: No such file or directory", "add `--with FOLDER/common.h`"),
        ("No module named 'parts'", "add its modules (`--with FOLDER/parts/OTHER.py`), and import them by their own"),
        ("No module named 'given'", None),
        ("No module named 'numpy'", None),  # which is installed: a file of that name could not go along
        ("No module named 'absent'", None),
        ("fatal error: parts/common.h: No such file or directory", None),  # all files are put into one folder
        ("No module named 'til\x1bng'", None),
        ("fatal error: ..: No such file or directory", None),
        (f"No module named '{'t' * 5000}'", None),
    ],
)
def test_what_a_submission_lacks_is_named_if_it_lies_beside_it(message: str, line: str | None, tmp_path: Path) -> None:
    for name in ("kernel.py", "tiling.py", "common.h", "numpy.py", "given.py", "parts/common.h"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = [*left_out(message, [tmp_path / "kernel.py", tmp_path / "given.py"])]
    assert [*left_out(message, [])] == [], "stdin has no folder"
    assert len(found) == (line is not None)
    assert line is None or line.replace("FOLDER", str(tmp_path)) in found[0]


@pytest.mark.parametrize("command", ["submit", "bench", "check", "profile"])
def test_a_command_names_the_option_for_a_module_that_was_not_given(
    command: str, run: Command, judge: Answering, project: Path
) -> None:
    (project / "tiling.py").touch()
    message = "line 1: ModuleNotFoundError: No module named 'tiling'"
    judge(failed(Outcome.RUNTIME_ERROR, message=message))
    ended = run(command, "double", "kernel.py")
    assert (ended.code, message in ended.out) == (4, True)
    assert "tiling.py lies beside kernel.py and was not given: add `--with tiling.py`\n" in ended.err


def test_the_archive_keeps_every_file_and_misses_every_file(tmp_path: Path) -> None:
    submitted = with_files({"tiling.py": "X = 1\n", "rows.py": ""}, name="my tiling.py")
    identity = SubmissionId.of(submitted)
    assert identity.beside == ("rows.py", "tiling.py")
    assert identity.size_bytes == len(SOURCE) + 6
    path = archive(tmp_path, "softmax", submitted)
    assert archive(tmp_path, "softmax", submitted) == path
    assert stored(tmp_path, "softmax", SubmissionId.model_validate_json(identity.model_dump_json())) == submitted
    other = path.parent / submitted.sha256 / "tiling.py"
    other.write_text("X = 2\n")
    with pytest.raises(HarnessError, match="is not what was graded"):
        stored(tmp_path, "softmax", identity)
    with pytest.raises(HarnessError, match="holds something other"):
        archive(tmp_path, "softmax", submitted)
    assert present(tmp_path, "softmax", identity)
    other.unlink()
    assert not present(tmp_path, "softmax", identity)
    with pytest.raises(HarnessError, match=r"tiling\.py: the archived source cannot be read"):
        stored(tmp_path, "softmax", identity)


def test_a_ledger_cannot_name_a_file_elsewhere() -> None:
    with pytest.raises(ValueError, match="not a plain name"):
        SubmissionId(sha256="0" * 64, name="a.py", author="ada", language="py", size_bytes=1, beside=("../../x.py",))


def test_a_worker_gets_every_file() -> None:
    own = request(with_files({"tiling.py": "X = 1  # \u00b5\n"}))
    assert JobRequest.model_validate_json(own.line()) == own


def test_code_copied_into_another_file_counts_as_similar() -> None:
    text = "def one(x, y):\n    for row in range(x.shape[0]):\n        y[row] = x[row].exp() / x[row].exp().sum()\n"
    parts = {"ada": {"tiling.py": text}, "bob": {"rows.py": text}, "eve": {"rows.py": "ROWS = 3\n"}}
    given = {
        GradedFile(author=author, run="0" * 16, name="kernel.py"): Submission.of(
            SOURCE, "py", author=author, beside=beside
        )
        for author, beside in parts.items()
    }
    assert [(pair.one.author, pair.other.author) for pair in similar(given, 0.9)] == [("ada", "bob")]
