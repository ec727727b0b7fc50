"""The command line in a process of its own, as a user starts it, whatever the environment of the tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

KERNELMARK = (sys.executable, "-P", "-c", "from kernelmark.commands.scripts import main; main()")
_NOT_INHERITED = ("KERNELMARK_", "GIT_", "RAY_")


def environment() -> dict[str, str]:
    """Without settings; the packages are those of this interpreter, and so of this checkout."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_INHERITED)}
    return {**kept, "KERNELMARK_RESIDENT": "false", "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def kernelmark(
    folder: Path, *arguments: str, typed: str = "", timeout_s: float = 600, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run `kernelmark` in that folder to its end; `more` are variables of its environment."""
    return subprocess.run(
        [*KERNELMARK, *arguments],
        cwd=folder,
        env=environment() | more,
        input=typed,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
