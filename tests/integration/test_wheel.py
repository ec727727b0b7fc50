"""kernelmark's wheel, made of its source distribution, where there is no clone: from `init` to a ranked kernel."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from tests.documents import items

ROOT = Path(__file__).resolve().parents[2]
NO_SOURCES = shutil.ignore_patterns(
    ".*_cache", ".git", ".hypothesis", ".venv", "build", "dist", "*.egg-info", "__pycache__"
)
BUILD = "import sys; from setuptools import build_meta; print(build_meta.build_sdist(sys.argv[1]))"
# A time that other programs on the machine hardly change: it would not rank with an interval that is too wide.
SLOW = """
import time
first = square
def square(*arguments):
    time.sleep(0.05)
    return first(*arguments)
"""
NEXT = ["kernelmark start square my_kernel.py", "kernelmark check square my_kernel.py", "submit square my_kernel.py"]


def run(folder: Path, *command: object, **variables: str) -> str:
    """What a program prints, run with nothing of a developer's settings."""
    environment = {name: os.environ[name] for name in os.environ if not name.startswith(("KERNELMARK_", "PYTHON"))}
    done = subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env={**environment, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel that was made of a source distribution of this checkout, which stays as it is."""
    folder = tmp_path_factory.mktemp("wheel")
    shutil.copytree(ROOT, folder / "copy", ignore=NO_SOURCES)
    run(folder / "copy", sys.executable, "-c", BUILD, folder)
    (source,) = folder.glob("*.tar.gz")
    shutil.rmtree(folder / "copy")
    how = ("--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", folder)
    run(folder, sys.executable, "-m", "pip", "wheel", *how, source)
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment with that wheel, and what it needs from the one that runs the tests, whose own
    kernelmark cannot be imported there: an editable install is found by its .pth file, which is not read.
    """
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False, symlinks=True)
    programs, python = folder / "bin", folder / "bin/python"
    (site,) = folder.glob("lib/python*/site-packages")
    run(folder, sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", wheel)
    (site / "torch-and-the-rest.pth").write_text(f"{sysconfig.get_path('purelib')}\n{sysconfig.get_path('platlib')}\n")
    imported = (
        "import kernelmark, harness, leaderboard; print(*(m.__file__ for m in (kernelmark, harness, leaderboard)))"
    )
    assert all(Path(file).is_relative_to(site) for file in run(folder, python, "-c", imported).split())
    return programs


@pytest.mark.full
def test_from_init_to_a_ranked_kernel_without_a_clone(programs: Path, tmp_path: Path) -> None:
    kernelmark, submit, project = programs / "kernelmark", programs / "submit", tmp_path / "project"
    result = run(tmp_path, kernelmark, "init", "project", "--problem", "square")
    assert result.splitlines() == ["cd project", *NEXT]
    here = {"KERNELMARK_SANDBOX": "process", "KERNELMARK_DEVICE": "cpu"}
    run(project, kernelmark, "start", "square", "my_kernel.py", **here)
    with (project / "my_kernel.py").open("a") as file:
        file.write(SLOW)
    assert run(project, kernelmark, "check", "square", "my_kernel.py", **here).startswith("accepted")
    graded = run(project, submit, "square", "my_kernel.py", "--quick", "--author", "ada", **here)
    assert graded.startswith("accepted: ")
    (table,) = items(run(project, kernelmark, "board", "--format", "json"))
    (row,) = table["rows"]
    assert row["author"] == "ada"
    assert row["rank"] == 1 or row["state"] == "too_wide", "on a machine too busy to time it"
    assert "| ada |" in (project / "leaderboard/BOARD.md").read_text()
    assert "ada" in run(project, kernelmark, "board", "square")
    ask = "import kernelmark; print(kernelmark.__file__, kernelmark.Project('.').problems())"
    assert run(project, programs / "python", "-c", ask).startswith(f"{programs.parent}/lib/")


@pytest.mark.full
def test_the_course_of_the_wheel_is_that_of_the_clone(programs: Path, tmp_path: Path) -> None:
    run(tmp_path, programs / "kernelmark", "init", "--course", "course")
    assert "row_sum" in run(tmp_path / "course", programs / "kernelmark", "problems", "list")
    for file in (tmp_path / "course").rglob("*"):
        if file.is_file():
            assert file.read_bytes() == (ROOT / "examples/course" / file.relative_to(tmp_path / "course")).read_bytes()


@pytest.mark.full
def test_the_workflows_environment_is_made_of_the_wheel_in_the_project(
    wheel: Path, programs: Path, tmp_path: Path
) -> None:
    """As on a grading runner, without what the wheel needs, which would be downloaded."""
    project, kept = tmp_path / "project", tmp_path / "kept"
    run(tmp_path, programs / "kernelmark", "init", "project")
    (project / "wheels").mkdir()
    shutil.copy(wheel, project / "wheels")
    alone = {"PIP_NO_DEPS": "1", "PIP_NO_INDEX": "1", "RUNNER_TOOL_CACHE": str(kept)}
    script = (project / "tools/runner-environment").read_text()
    (last,) = [line for line in script.splitlines() if line == ".venv/bin/kernelmark doctor"]
    (project / "tools/runner-environment").write_text(script.replace(last, ""))
    for _ in range(2):
        run(project, "tools/runner-environment", PATH=f"{programs}:{os.environ['PATH']}", **alone)
        assert (project / ".venv/bin/kernelmark").is_file()
    assert len(list(kept.iterdir())) == 1
