"""Shows that a rank does not depend on the card: `python -m benchmarks.cards`, on two GPUs of one name.

Grades one product of 8192³ in bfloat16, and the same with about 4 % more work, on both cards at once. The two gradings
of one kernel must share a rank, and the slower kernel must have another one. Exits with 1 if not, 2 without two GPUs.
Prints what it found and writes it to `benchmarks/results/cards_DEVICE.json`. It takes some 60 s, and no more than 140.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic
from typing import Any

from benchmarks.scratch import report
from benchmarks.slug import device_slug
from harness.verdict import Verdict
from kernelmark.project.choice import Gpu, visible_gpus
from leaderboard.record.ledger import JsonlLedger
from leaderboard.standings.ranking import CARD, rank

ROOT = Path(__file__).resolve().parent.parent
LIMIT_S = 140.0
PROBLEM = """
title = "A large product"
entry = "product"
parameters = ["n"]
tensors = [
  { name = "a", role = "input", shape = ["n", "n"], dtype = "bfloat16" },
  { name = "b", role = "input", shape = ["n", "n"], dtype = "bfloat16" },
  { name = "c", role = "output", shape = ["n", "n"], dtype = "bfloat16" },
]
cost = { bytes = "6 * n * n", flops = "2 * n * n * n" }
tolerance = { sum_length = "n" }
tests = [{ name = "small", params = { n = 256 } }]
benchmarks = [{ name = "8192", params = { n = 8192 } }]
"""
REFERENCE = "def reference(a, b):\n    return a @ b\n"
KERNEL = "import torch\n\n\ndef product(a, b, c):\n    torch.matmul(a, b, out=c)\n"
MORE = "    torch.add(a[:3400], b[:3400])  # reads and writes 167 MB: about 4 % of the product's time\n"
KERNELS = {"one": KERNEL, "slower": KERNEL + MORE}


def begin(project: Path) -> None:
    """Write the project: the problem, both kernels, and the first of them as the baseline."""
    files = {
        "kernelmark.toml": "",
        "problems/product/problem.toml": PROBLEM,
        "problems/product/reference.py": REFERENCE,
        "reference/product/eager.py": KERNEL,
        **{f"{name}.py": text for name, text in KERNELS.items()},
    }
    for name, text in files.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)


def grade(project: Path, gpu: Gpu, card: int, deadline: float) -> None:
    """Grade and record both kernels on one card; each has an author of its own there."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path, "CUDA_VISIBLE_DEVICES": gpu.uuid}
    code = "from kernelmark.commands.scripts import submit; submit()"
    for name in KERNELS:
        command = [sys.executable, "-c", code, "product", f"{name}.py", "--author", f"{name}-{card}", "--here"]
        subprocess.run(
            [*command, "--device", "cuda", "--baseline", "eager"],
            cwd=project, env=environment, check=True, timeout=deadline - monotonic(),
        )  # fmt: skip


def told(verdict: Verdict) -> dict[str, Any]:
    """What a verdict says of time and card."""
    assert verdict.score is not None, verdict.message
    (speedup,) = verdict.speedups
    return {
        "author": verdict.submission.author,
        "card": verdict.environment.device_uuid_sha256,
        "score_ns": [verdict.score.low_ns, verdict.score.median_ns, verdict.score.high_ns],
        "over_eager": [speedup.ratio.low, speedup.ratio.median, speedup.ratio.high],
    }


def ranks_of(verdicts: Iterable[Verdict]) -> dict[str, int | None]:
    """The ranks by a ledger of these verdicts, by author."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = JsonlLedger(Path(folder, "product.jsonl"))
        for verdict in verdicts:
            ledger.append(verdict)
        (table,) = rank(ledger)
    return {row.author: row.rank for row in table.rows}


def result(verdicts: list[Verdict]) -> dict[str, Any]:
    """The ranks of all four, those of each pair alone, and whether they are as they must be."""
    by_author = {verdict.submission.author: verdict for verdict in verdicts}
    ranks = ranks_of(verdicts)
    pairs = {}
    for one, other in itertools.combinations(sorted(by_author), 2):
        alone = ranks_of([by_author[one], by_author[other]])
        pairs[f"{one}, {other}"] = "tie" if len({*alone.values()}) == 1 else "differ"
    right = (
        ranks["one-0"] == ranks["one-1"] == 1
        and ranks["slower-0"] == ranks["slower-1"] == 3
        and pairs["one-0, one-1"] == pairs["slower-0, slower-1"] == "tie"
        and pairs["one-0, slower-0"] == pairs["one-1, slower-1"] == "differ"
    )
    gradings = [told(verdict) for verdict in verdicts]
    return {"allowed": CARD, "gradings": gradings, "ranks": ranks, "pairs": pairs, "right": right}


def main() -> int:
    gpus, deadline = visible_gpus()[:2], monotonic() + LIMIT_S
    if len({gpu.uuid for gpu in gpus}) < 2 or len({gpu.name for gpu in gpus}) > 1:
        print("needs two GPUs of one name", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor() as pool:
        project = Path(folder)
        begin(project)
        grading = [pool.submit(grade, project, gpu, card, deadline) for card, gpu in enumerate(gpus)]
        for each in grading:
            each.result()
        ledger = JsonlLedger(project / "leaderboard/results/product.jsonl")
        found = result([entry.verdict for entry in ledger.read()])
    what = "one kernel and one with about 4 % more work, each graded on two cards of one name"
    seconds = round(LIMIT_S - (deadline - monotonic()), 1)
    out = ROOT / "benchmarks" / "results" / f"cards_{device_slug(gpus[0].name)}.json"
    report("cards", what, out, {"device": gpus[0].name, "seconds": seconds, **found})
    return 0 if found["right"] else 1


if __name__ == "__main__":
    sys.exit(main())
