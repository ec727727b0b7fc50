"""The tasks: which problems are for training and which are held out, and the prompt of each."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args

import kernelmark

LANGUAGES = {"py": "a Python file, in Triton or PyTorch", "cu": "a CUDA file", "cpp": "a C++ file"}
Split = Literal["train", "held_out", "all"]
HELD_OUT = frozenset(
    {"layernorm", "layernorm_backward", "pack_int4", "unpack_int4", "rope_strided", "segment_scan", "topk_ties"}
)
"""Problems of kernelmark that are not for training. No other problem asks for the same computation."""


def problems(project: kernelmark.Project, split: Split = "train") -> list[str]:
    """The names of the project's problems in this split, in order. A project's own problems are for training."""
    return [name for name in project.problems() if split == "all" or (name in HELD_OUT) == (split == "held_out")]


def prompt(problem: kernelmark.Problem, language: str = "py") -> str:
    """The prompt for a model: the problem's statement, its definition, and the form of the answer."""
    statement = problem.directory / "README.md"
    definition = (problem.directory / "reference.py").read_text(encoding="utf-8")
    return "\n".join(
        [
            statement.read_text(encoding="utf-8") if statement.exists() else f"# {problem.title}\n",
            "The definition, which your outputs are compared with:\n",
            f"```python\n{definition}```\n",
            f"Write `{problem.entry}` as {LANGUAGES[language]}. It must be right, and as fast as you can make it.",
            "Give the whole file in one code block. Of several blocks the last one counts.",
        ]
    )


def rows(project: kernelmark.Project, split: Split = "train", language: str = "py") -> Iterator[dict[str, Any]]:
    """One row for each task, as libraries for training read it: a prompt of chat messages, and `info`.

    Raises:
        kernelmark.UsageError: a problem cannot be loaded.
    """
    for name in problems(project, split):
        problem = project.problem(name)
        info = {"problem": name, "problem_sha256": problem.sha256, "language": language}
        info["split"] = "held_out" if name in HELD_OUT else "train"
        yield {"prompt": [{"role": "user", "content": prompt(problem, language)}], "answer": "", "info": info}


def main() -> None:
    """The command `kernel-tasks`: prints the dataset, a JSON object a line."""
    parser = argparse.ArgumentParser(description="Prints the tasks of a kernelmark project, a JSON object a line.")
    parser.add_argument("--project", type=Path, default=Path(), help="its folder")
    parser.add_argument("--split", choices=get_args(Split), default="train")
    parser.add_argument("--language", choices=list(LANGUAGES), default="py")
    given = parser.parse_args()
    for row in rows(kernelmark.Project.around(given.project), given.split, given.language):
        print(json.dumps(row))


if __name__ == "__main__":
    main()
