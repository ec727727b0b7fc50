"""What a user's type checker sees of kernelmark, installed from a checkout with `pip install -e`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
from collections.abc import AsyncIterator
from pathlib import Path

import kernelmark


async def rewards(sources: list[str]) -> AsyncIterator[float]:
    with kernelmark.Fleet(devices=1, project=kernelmark.Project(Path())) as fleet:
        for source in sources:
            job = kernelmark.Job(problem="softmax", submission=source, timeout=60.0)
            result = await fleet.agrade(job, effort="screen", baselines=["eager"], reuse="run")
            if isinstance(result.error, kernelmark.JobTimeoutError) or result.verdict is None:
                continue
            parts = kernelmark.reward_parts(result.verdict, widest=1.1)
            reveal_type(result.verdict)
            reveal_type(result.verdict.outcome)
            reveal_type(parts.speedup)
            yield parts.value


reveal_type(kernelmark.grade("softmax", "x = 1").speedups[0].ratio.median)
reveal_type(kernelmark.Project.around().problem("softmax").directory)
reveal_type(kernelmark.check("softmax", Path("kernel.py")).tests[0].message)
"""
SEEN = [
    "harness.verdict.Verdict", "harness.verdict.outcome.Outcome", "float | None", "float", "pathlib.Path", "str",
]  # fmt: skip
MISTAKES = """
import kernelmark

kernelmark.grade_al()
kernelmark.reward("x")
kernelmark.Fleet().grade_many([kernelmark.Job(problem="softmax")], effort="most")
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That of an environment with kernelmark in it as an editable install, and what it needs."""
    folder = tmp_path_factory.mktemp("user")
    checkout = folder / "checkout"
    for name in ("kernelmark", "harness", "leaderboard"):
        shutil.copytree(
            ROOT / name, checkout / name, ignore=shutil.ignore_patterns("__pycache__", "results", "archive")
        )
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy2(ROOT / name, checkout)
    build = f"from setuptools import build_meta as b; print(b.build_editable({str(folder)!r}))"
    built = subprocess.run([sys.executable, "-c", build], cwd=checkout, capture_output=True, text=True, check=True)
    venv.create(folder / "venv", symlinks=True)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder / "venv")}))
    zipfile.ZipFile(folder / built.stdout.split()[-1]).extractall(packages)
    (packages / "others.pth").write_text(sysconfig.get_path("purelib"))
    return folder / "venv/bin/python"


def checked(python: Path, program: str) -> tuple[int, str]:
    file = python.parents[2] / "use.py"
    file.write_text(program)
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MYPYPATH")}
    command = [sys.executable, "-m", "mypy", "--strict", "--python-executable", str(python), file.name]
    done = subprocess.run(command, cwd=file.parent, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


@pytest.mark.full
def test_public_names_have_types_in_a_users_project(python: Path) -> None:
    status, said = checked(python, PROGRAM)
    assert status == 0, said
    assert [line.split('"')[1] for line in said.splitlines() if "Revealed" in line] == SEEN


@pytest.mark.full
def test_a_users_mistakes_are_found(python: Path) -> None:
    status, said = checked(python, MISTAKES)
    assert (status, said.count(": error: ")) == (1, 4), said
