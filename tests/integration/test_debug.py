"""`kernelmark debug` and `check --dump`, as a user types them; the submissions run in processes of their own."""

from __future__ import annotations

import resource
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import torch

from harness.errors import UsageError
from harness.judge.correctness.graded_case import FailedTest
from kernelmark.authoring.debugging import dump
from kernelmark.diagnostics.selftest import PROBLEMS
from tests.command import kernelmark

RIGHT = "import torch\ndef twice(x, y):\n    torch.mul(x, 2, out=y)\n"
CPP = """
#include <cstdint>
extern "C" void twice(const float *x, float *y, int64_t n) { for (int64_t i = 0; i < n; ++i) y[i] = FACTOR * x[i]; }
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "kernelmark.toml").write_text("")
    shutil.copytree(PROBLEMS / "double", folder / "problems" / "double")
    return folder


def written(project: Path, source: str, suffix: str = "py") -> str:
    path = project / f"kernel.{suffix}"
    path.write_text(source)
    return path.name


def debug(project: Path, source: str, *options: str, typed: str = "") -> subprocess.CompletedProcess[str]:
    return kernelmark(project, "debug", "double", written(project, source), "--device", "cpu", *options, typed=typed)


@pytest.mark.full
def test_a_breakpoint_has_the_tensors(project: Path) -> None:
    source = RIGHT.replace("    torch.mul", "    breakpoint()\n    torch.mul")
    typed = 'p x.shape\np (kernelmark_test.expected["y"] == 2 * kernelmark_test.inputs["x"].double()).all()\nc\n'
    ended = debug(project, source, typed=typed)
    assert "nothing isolates kernel.py" in ended.stderr
    assert "torch.Size([1])" in ended.stdout
    assert "tensor(True)" in ended.stdout
    assert ended.returncode == 0, ended.stderr


def test_a_dump_on_a_full_disk_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    failed = FailedTest("double", "one", {"n": 1}, "cpu", 1, {"x": torch.ones(1)}, {"y": torch.ones(1)}, {})
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
    try:
        with pytest.raises(UsageError, match=r"one\.pt cannot be written \(File too large\); name another folder"):
            dump(failed, tmp_path / "dumped")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not [*(tmp_path / "dumped").iterdir()]


def test_a_file_named_like_a_module_of_ours_is_not_imported_for_it(project: Path) -> None:
    """The working folder was once on the path of the process that debugs, whose own `import torch` found this."""
    folder = project / "own"
    folder.mkdir()
    for name in ("torch", "typing", "harness"):
        (folder / f"{name}.py").write_text("raise SystemExit('imported')\n")
    ended = debug(folder, RIGHT)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("one (n=1): right; --test NAME runs another of the ")


def test_a_wrong_output_is_explained_as_by_check(project: Path) -> None:
    ended = debug(project, RIGHT.replace("2,", "3,"), "--test", "pages")
    assert ended.returncode == 1
    assert "wrong answer: y: your relative RMS error" in ended.stdout
    assert "hint: constant factor 1.500" in ended.stdout


def test_an_exception_shows_the_authors_own_lines_and_opens_the_debugger(project: Path) -> None:
    source = "def inner(x):\n    return x.reshape(12345)\n\ndef twice(x, y):\n    inner(x)\n"
    ended = debug(project, source, "-i", typed="p x.numel() + 1000\nq\n")
    assert ended.returncode == 4
    first = ended.stderr[ended.stderr.index("Traceback") :].splitlines()[1]
    assert first.endswith('kernel.py", line 5, in twice'), "ours are left out"
    assert "1001" in ended.stdout


@pytest.mark.full
@pytest.mark.parametrize(
    ("source", "status", "shown"),
    [
        (RIGHT.replace("    torch.mul", "    breakpoint()\n    torch.mul"), 4, ""),  # `q` quits
        ("def twice(x, y:\n", 3, "compile error: line 1: SyntaxError: "),
    ],
)
def test_what_ends_before_the_call_has_its_status(project: Path, source: str, status: int, shown: str) -> None:
    ended = debug(project, source, typed="q\n")
    assert ended.returncode == status
    assert shown in ended.stderr
    assert "Traceback" not in ended.stderr
    assert "importlib" not in ended.stderr


@pytest.mark.full
def test_a_prompt_opens_after_the_call(project: Path) -> None:
    typed = 'print((outputs["y"] == expected["y"]).all(), inputs.keys())\n'
    ended = debug(project, RIGHT, "-i", typed=typed)
    assert "tensor(True) dict_keys(['x'])" in ended.stdout
    assert "\nright\n" in f"\n{ended.stdout}"


def test_a_write_to_an_input_is_told(project: Path) -> None:
    ended = debug(project, "def clear(x):\n    x.zero_()\ndef twice(x, y):\n    clear(x)\n")
    assert ended.returncode == 4
    where = "at line 2 in clear, called from line 4 in twice"
    assert f"its process was ended by SIGSEGV {where}: did it write to an input" in ended.stdout
    assert "Extension modules" not in ended.stderr
    assert "File" not in ended.stderr, "of Python's stack there are only the submission's own lines"


@pytest.mark.full
@pytest.mark.parametrize(("factor", "status"), [("2", 0), ("3", 1), ("twice", 3)])
def test_c_is_compiled(project: Path, factor: str, status: int) -> None:
    name = written(project, CPP.replace("FACTOR", factor), "cpp")
    ended = kernelmark(project, "debug", "double", name, "--device", "cpu")
    assert ended.returncode == status, ended.stderr
    assert ("error" in ended.stderr) == (status == 3)


@pytest.mark.full
def test_a_failed_test_can_be_repeated_with_the_same_inputs(project: Path) -> None:
    wrong = written(
        project, RIGHT.replace("    torch.mul", "    print('first', x[0].item())\n    torch.mul").replace("2,", "3,")
    )
    ended = kernelmark(project, "check", "double", wrong, "--device", "cpu", "--sandbox", "process", "--dump", "failed")
    assert ended.returncode == 1
    assert "failed tests to failed; `kernelmark debug double kernel.py --from failed/" in ended.stderr
    files = {path.stem: path for path in (project / "failed").iterdir()}
    tests = tomllib.loads((project / "problems/double/problem.toml").read_text())["tests"]
    shown = [test["name"].replace(" ", "_") for test in tests if not test.get("hidden")]
    assert sorted(files) == sorted(shown), "hidden tests are not written"
    kept = torch.load(files["pages"], weights_only=True)
    assert torch.equal(kept["expected"]["y"], 2 * kept["inputs"]["x"].double())
    assert torch.allclose(kept["outputs"]["y"], 3 * kept["inputs"]["x"])
    again = kernelmark(project, "debug", "double", wrong, "--device", "cpu", "--from", "failed/pages.pt")
    assert f"first {kept['inputs']['x'][0].item()}" in again.stdout
    assert again.returncode == 1


@pytest.mark.full
def test_a_test_that_crashes_is_dumped_too(project: Path) -> None:
    crashes = written(project, "import os\ndef twice(x, y):\n    y.fill_(7)\n    os._exit(1)\n")
    ended = kernelmark(project, "check", "double", crashes, "--device", "cpu", "--sandbox", "process", "--dump", "gone")
    assert ended.returncode == 4
    [file] = (project / "gone").iterdir()
    kept = torch.load(file, weights_only=True)
    assert kept["outputs"]["y"].eq(7).all(), "what it had written by then"
    assert kept["inputs"]["x"].numel() == kept["params"]["n"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--test", "page"], "test 'page' is not one of double; did you mean `pages`?"),
        (["--from", "kernelmark.toml"], "kernelmark.toml is not a dump of a test"),
        (["--from", "nowhere.pt"], "nowhere.pt cannot be read"),
        (["--from", "x", "--test", "pages"], "--from says which test it is; leave out --test"),
    ],
)
def test_what_cannot_be_run_is_one_line(project: Path, options: list[str], message: str) -> None:
    ended = debug(project, RIGHT, *options)
    assert ended.returncode == 2
    [line] = ended.stderr.splitlines()
    assert line.startswith(f"kernelmark: error: {message}")


@pytest.mark.full
def test_a_missing_file_and_a_gpu_kernel_on_a_cpu_are_refused(project: Path) -> None:
    missing = kernelmark(project, "debug", "double", "nowhere.py", "--device", "cpu")
    assert (missing.returncode, missing.stderr.count("\n")) == (2, 1)
    gpu = kernelmark(project, "debug", "double", written(project, "// nothing yet", "cu"), "--device", "cpu")
    assert gpu.returncode == 2
    assert "does not run on the device cpu\n" in gpu.stderr
    without = kernelmark(project, "debug", "double", "kernel.cu", CUDA_VISIBLE_DEVICES="")
    assert without.returncode == 2
    assert "does not run on the device cpu, and there is no GPU here to run it on" in without.stderr
