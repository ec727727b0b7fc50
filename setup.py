"""Copies into the wheel what `kernelmark init` makes projects of, from its one place in this repository.

Everything else about the package is in pyproject.toml. An editable install copies nothing: it reads the checkout
(`kernelmark.project.problems`).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

SHIPPED = (
    "problems",
    "reference",
    "examples",
    "kernelmark.toml",
    ".gitattributes",
    ".github/dependabot.yml",
    ".github/PULL_REQUEST_TEMPLATE/submission.md",
    ".github/workflows/grade.yml",
    ".github/workflows/problems.yml",
    "tools/annotate",
    "tools/runner-environment",
    "tools/take-recorded",
)  # also in MANIFEST.in
LEFT_OUT = {"__pycache__", "leaderboard"}  # what a run of an example leaves there


class BuildPy(build_py):
    """Builds the packages, and `kernelmark/shipped` among them."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        shutil.rmtree(Path(self.build_lib, "kernelmark/shipped"), ignore_errors=True)
        for source, copy in self._shipped():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, copy)

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        """What was built, as `install` records it."""
        own = [] if self.editable_mode else [str(copy) for _, copy in self._shipped()]
        return [*super().get_outputs(include_bytecode), *own]

    def _shipped(self) -> Iterator[tuple[Path, Path]]:
        """Every file, and where its copy goes."""
        for name in SHIPPED:
            for file in sorted(Path(name).rglob("*")) or [Path(name)]:
                if file.is_file() and not LEFT_OUT & set(file.parts):
                    yield file, Path(self.build_lib, "kernelmark/shipped", file)


setup(cmdclass={"build_py": BuildPy})
