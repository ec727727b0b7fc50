"""Runs a fuzz target in a process of its own, and reads what libFuzzer printed last."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TARGETS = ("frames", "ledger", "problem")
_COVERAGE = re.compile(r"^#\d+\s+(?:DONE|NEW|REDUCE|INITED|pulse)\s+cov: (\d+) ft: (\d+) corp: (\d+)/", re.MULTILINE)


def fuzz(target: str, seconds: int, corpus: Path) -> dict[str, Any]:
    """Fuzz for so long, from the target's own seeds; `failure` is what it printed last if it did not end well."""
    command = [sys.executable, f"tests/fuzz/{target}.py", f"-max_total_time={seconds}", "-print_final_stats=1"]
    # By a shell: libFuzzer counts the peak memory of the process that started it, and stops at 2 GiB.
    by_shell = ["sh", "-c", '"$@"; exit $?', "sh"]
    ended = subprocess.run(
        [*by_shell, *command, str(corpus)], cwd=ROOT, capture_output=True, text=True, errors="replace",
        timeout=seconds + 120, check=False,
    )  # fmt: skip
    executions = re.findall(r"^Done (\d+) runs in (\d+) second", ended.stderr, re.MULTILINE)
    covered = _COVERAGE.findall(ended.stderr)
    cov, ft, kept = covered[-1] if covered else (0, 0, 0)
    return {
        "target": target,
        "command": f"python {' '.join(command[1:])}",
        "executions": int(executions[-1][0]) if executions else 0,
        "seconds": int(executions[-1][1]) if executions else 0,
        "cov": int(cov),
        "ft": int(ft),
        "corpus": int(kept),
        "findings": sorted(path.name for path in corpus.parent.glob(f"{corpus.name}-*")),
        "failure": ""
        if ended.returncode == 0
        else f"status {ended.returncode}: {ended.stdout[-1500:]}{ended.stderr[-500:]}",
    }
