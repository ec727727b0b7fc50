"""A project outside this repository that has its problems, and the commands as a user types them there.

The demo site and the tests that begin with a project of their own use it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROBLEMS, REFERENCE = ROOT / "problems", ROOT / "reference"


def begin(project: Path) -> None:
    """Write the settings; the ledgers and the archive come to lie in the project."""
    (project / "kernelmark.toml").write_text(
        f"problems = {json.dumps(str(PROBLEMS))}\nreference = {json.dumps(str(REFERENCE))}\n"
    )


def run(project: Path, status: int, script: str, *args: str | Path) -> str:
    """Run a command of ours in the project, which must end with this status; returns what it printed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KERNELMARK_")}
    code = f"from kernelmark.commands.scripts import {script}; {script}()"
    ended = subprocess.run(
        [sys.executable, "-c", code, *map(str, args)],
        cwd=project, env={**environment, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    said = ended.stdout + ended.stderr
    if ended.returncode != status:
        raise RuntimeError(f"{script} {' '.join(map(str, args))} ended with {ended.returncode}: {said}")
    return said
