"""Many gradings, two at a time, into one ledger: `python -m benchmarks.load --gradings 500`.

On the CPU the timed parts of two gradings take turns; one's start, wait and recording overlap with the other's grading.

Every third is a random attack from the self-test, of those that run on the CPU in bubblewrap; the others are honest
kernels. Writes `benchmarks/results/load.json`; exits with 1 unless every acknowledged verdict is in the ledger exactly
once, its chain is intact, no honest kernel was refused, no attack accepted undeservedly, and nothing was left behind.
"""

from __future__ import annotations

import argparse
import random
import shutil
import statistics
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.scratch import Graded, ledger, left_behind, project, recorded, report, submit
from kernelmark.diagnostics.selftest import KnownSubmission, attacks, honest
from tests.leftovers import leftovers

RESULT = Path(__file__).parent / "results" / "load.json"
FAST = ("double_cpp", "numpy_views", "partial_entry", "scratch_kept", "talkative", "torch_mul")
AT_A_TIME = 2


def cases(gradings: int, seed: int) -> list[KnownSubmission]:
    """What is graded, in order: cases of one problem, since they share a ledger, that need no special file name."""
    draw = random.Random(seed)
    kind = [each for each in honest() if each.label in FAST]
    hostile = [
        attack for attack in attacks()
        if "cpu" in attack.devices and "bwrap" in attack.sandboxes
        and attack.problem == "double" and not attack.name
    ]  # fmt: skip
    return [draw.choice(hostile if number % 3 == 2 else kind) for number in range(gradings)]


def graded(root: Path, number: int, case: KnownSubmission) -> Graded:
    folder = root / "in" / str(number)
    folder.mkdir(parents=True)
    file = Path(shutil.copy(case.source, folder / f"{case.label}{case.source.suffix}"))
    result = submit(root, file, author=case.author if case.surface else "honest")
    line = f"{number:4} {case.surface or 'honest':8} {case.label:22} {result.outcome:14} {result.seconds} s"
    print(line, file=sys.stderr, flush=True)
    return result


def checked(chosen: list[KnownSubmission], ended: list[Graded], runs: list[str]) -> dict[str, Any]:
    """Lists of violations, by name; all must be empty."""
    acknowledged = [each.run for each in ended if each.run]
    pairs = list(zip(chosen, ended, strict=True))
    return {
        "lost": sorted(set(acknowledged) - set(runs)),
        "doubled": [run for run, times in Counter(runs).items() if times > 1],
        "unacknowledged_lines": sorted(set(runs) - set(acknowledged)),
        "honest_refused": [_said(c, g) for c, g in pairs if not c.surface and g.outcome != "accepted"],
        "accepted_undeservedly": [
            _said(c, g) for c, g in pairs if g.outcome == "accepted" and "accepted" not in c.outcomes
        ],
    }


def _said(case: KnownSubmission, result: Graded) -> str:
    return f"{case.label}: {result.outcome} (status {result.status}) {result.errors[-300:]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gradings", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULT)
    given = parser.parse_args()
    chosen = cases(given.gradings, given.seed)
    with project() as root:
        before, started = leftovers(), time.monotonic()
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            ended = list(pool.map(lambda pair: graded(root, *pair), enumerate(chosen)))
        seconds = time.monotonic() - started
        remains = left_behind(before)
        wrong = {**checked(chosen, ended, recorded(ledger(root))), "left_behind": remains}
        lines, size_bytes = ledger(root).verify(), ledger(root).path.stat().st_size
    took = sorted(each.seconds for each in ended)
    otherwise = [_said(c, g) for c, g in zip(chosen, ended, strict=True) if c.surface and g.outcome not in c.outcomes]
    figures = {
        "gradings": len(ended),
        "at_a_time": AT_A_TIME,
        "honest": sum(case.surface is None for case in chosen),
        "attacks": sum(case.surface is not None for case in chosen),
        "attacks_tried": dict(sorted(Counter(case.label for case in chosen if case.surface).items())),
        "acknowledged": sum(bool(each.run) for each in ended),
        "ledger_lines": lines,
        "ledger_bytes": size_bytes,
        "outcomes": dict(Counter(each.outcome for each in ended)),
        "seconds": round(seconds, 1),
        "grading_s": {"median": statistics.median(took), "longest": took[-1]},
        "attacks_that_ended_otherwise": otherwise,
        "held": not any(wrong.values()),
        **wrong,
    }
    report("load", "many gradings at once into one ledger, a third of them attacks", given.out, figures)
    return 0 if figures["held"] else 1


if __name__ == "__main__":
    sys.exit(main())
