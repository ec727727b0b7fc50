"""kernelmark without the extra `grade`: records, boards and the site; what grades says what is missing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

from kernelmark.commands.boundary import GRADE
from tests.old_project import copied, ledgers
from tests.unit.conftest import ROOT

# As if they were not installed: the finder of installed packages does not find them, nor those of other extras.
WITHOUT = """
import importlib.machinery, sys

class Without(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in MISSING else super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(importlib.machinery.PathFinder)] = Without
"""
OTHER_EXTRAS = ("cuda", "pynvml", "pyarrow", "ray", "requests", "setuptools", "pytest")
MAIN = "from kernelmark.commands.scripts import main; main()"
LINE = "kernelmark: error: grading needs {}, which is not installed; pip install 'kernelmark[grade]'\n"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A project with a record of every kind."""
    return copied(tmp_path)


def run(project: Path, *arguments: str, missing: tuple[str, ...] = (*GRADE, *OTHER_EXTRAS)) -> tuple[int, str, str]:
    """Python where these modules cannot be imported: its status, and what it printed."""
    block = project.parent / "block"
    block.mkdir(exist_ok=True)
    (block / "sitecustomize.py").write_text(f"MISSING = {missing!r}\n{WITHOUT}")
    variables = {name: value for name, value in os.environ.items() if not name.startswith("KERNELMARK_")}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=project, capture_output=True, text=True, check=False,
        env={**variables, "PYTHONPATH": f"{block}:{ROOT}"},
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def command(project: Path, *arguments: str) -> str:
    status, out, err = run(project, "-c", MAIN, *arguments)
    assert (status, "Traceback" in err) == (0, False), err
    return out


def test_they_cannot_be_imported_here(old: Path) -> None:
    for name in GRADE:
        status, _, err = run(old, "-c", f"import {name}")
        assert (status, f"No module named '{name}'" in err) == (1, True)


def test_a_record_is_shown_checked_and_published(old: Path) -> None:
    verdict = next(entry.verdict for entry in ledgers(old)[0].read() if entry.kind == "verdict")
    assert "quickfix (bob)" in command(old, "board", "affine")
    assert verdict.run in command(old, "runs", "--last", "1000")
    assert verdict.problem.slug in command(old, "show", verdict.run)
    assert "affine.jsonl: 9 entries" in command(old, "verify")
    assert "row_sum" in command(old, "problems", "list")
    command(old, "board", "--write")
    command(old, "site", "build", "--out", "site")
    assert verdict.run in (old / f"site/runs/{verdict.run}.html").read_text()


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "square", "kernel.py", "--device", "cpu"),
        ("submit", "square", "kernel.py"),
        ("problems", "lint", "square"),
        ("grade", "square", "hand-ins"),
        ("regrade", "square"),
        ("debug", "square", "kernel.py"),
        ("calibrate",),
    ],
)
def test_what_grades_says_what_is_missing(old: Path, arguments: tuple[str, ...]) -> None:
    (old / "hand-ins/ada").mkdir(parents=True)
    for kernel in (old / "kernel.py", old / "hand-ins/ada/kernel.py"):
        kernel.write_text("def square(x, y): y.copy_(x * x)\n")
    before = [ledger.path.read_bytes() for ledger in ledgers(old)]
    assert run(old, "-c", MAIN, *arguments) == (2, "", LINE.format("torch"))
    assert [ledger.path.read_bytes() for ledger in ledgers(old)] == before


def test_serving_needs_no_grading_packages(old: Path) -> None:
    needs = "kernelmark: error: serving needs fastapi, which is not installed; pip install 'kernelmark[server]'\n"
    assert run(old, "-c", MAIN, "serve", missing=("fastapi",)) == (2, "", needs)
    for module in ("process", "app", "local_worker"):
        assert run(old, "-c", f"import kernelmark.server.{module}", missing=GRADE)[0] == 0


def test_the_api_says_so_too(old: Path) -> None:
    for call in ("kernelmark.check('square', 'x = 1')", "kernelmark.Fleet()"):
        code = f"import kernelmark\ntry: {call}\nexcept kernelmark.UsageError as e: print(f'kernelmark: error: {{e}}')"
        status, out, err = run(old, "-c", code)
        assert (status, out) == (0, LINE.format("torch")), err


def test_the_package_asks_for_nothing_else() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = {re.split(r"[<>=;\[ ]", line)[0] for line in project["dependencies"]}
    grade = {re.split(r"[<>=;\[ ]", line)[0] for line in project["optional-dependencies"]["grade"]}
    assert not asked & {*grade, *GRADE, "pyarrow", "ray"}
    assert {name.removeprefix("py") for name in grade} == set(GRADE), "pyyaml is imported as yaml"


def test_imports_form_no_circle() -> None:
    graph = grimp.build_graph("kernelmark", "leaderboard", "harness", cache_dir=None)
    order = TopologicalSorter({m: graph.find_modules_directly_imported_by(m) for m in graph.modules})
    order.prepare()  # raises CycleError, which names the modules


def test_a_server_needs_nothing_that_grades(old: Path) -> None:
    code = (
        "import kernelmark.server.process, sys; print(sorted({'torch', 'docker', 'triton', 'numpy'} & {*sys.modules}))"
    )
    assert run(old, "-c", code, missing=GRADE) == (0, "[]\n", "")
