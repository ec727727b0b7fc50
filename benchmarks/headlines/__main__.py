"""Measures the claims of the lectures, and says of each whether it holds on this device.

    python -m benchmarks.headlines                      every claim, at most ten minutes
    python -m benchmarks.headlines gelu softmax         these
    python -m benchmarks.headlines --again              also those that the result has an answer to
    python -m benchmarks.headlines --page               the page and its plots, of a result

Kernels are graded by `kernelmark.grade` with one test each, in the sandbox that is best here (--sandbox). The result is
`benchmarks/results/headlines_DEVICE.json`, saved after each claim: a run that ends early goes on where it was. A claim
that fails, or takes longer than what is left of --seconds, is written down as not measured, and the next one begins.
On a CPU the kernels run, but no claim is answered.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

from benchmarks.headlines.bench import ROOT, Bench
from benchmarks.headlines.claims import CLAIMS
from benchmarks.headlines.finding import Answer, Claim, Finding, NotHereError
from benchmarks.headlines.page import write

RESULTS = ROOT / "benchmarks" / "results"


class _OutOfTime(BaseException):
    """So that no handler of exceptions keeps it."""


def found(claim: Claim, bench: Bench, seconds: float) -> Finding:
    """What is found about a claim in so many seconds; what goes wrong is a finding, too."""

    def end(number: int, frame: FrameType | None) -> None:
        raise _OutOfTime

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        finding = claim.measure(bench)
    except _OutOfTime:
        return Finding(Answer.NOT_MEASURED, f"took longer than the {seconds:.0f} s that were left")
    except NotHereError as error:
        return Finding(Answer.NOT_MEASURED, str(error))
    except Exception as error:  # noqa: BLE001 - one of several claims
        return Finding(Answer.NOT_MEASURED, f"{type(error).__name__}: {error}"[:500])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    if bench.device == "cpu":
        return replace(
            finding, answer=Answer.NOT_MEASURED, reason="the claim is about GPUs; on this CPU its kernels ran"
        )
    return finding


def measure(names: list[str], bench: Bench, out: Path, seconds: float, again: bool) -> dict[str, Any]:
    """Measure these claims; returns the document, which was saved after each."""
    document: dict[str, Any] = json.loads(out.read_text()) if out.exists() else {"claims": {}}
    deadline = time.monotonic() + seconds
    for name in names:
        claim, known = CLAIMS[name], document["claims"].get(name)
        if known and known["answer"] != Answer.NOT_MEASURED and not again:
            continue
        began = time.monotonic()
        left = deadline - began
        if left < 1:
            print(f"{name}: not begun, the {seconds:.0f} s are over", flush=True)
            continue
        print(f"\n{name} ({claim.lecture})\n  claim   {claim.says}", flush=True)
        finding = found(claim, bench, left)
        spent = time.monotonic() - began
        print(f"  here    {finding.answer}: {finding.reason}  ({spent:.0f} s)", flush=True)
        for row in finding.rows:
            print(f"          {row.case:34} {row.what:34} {row}", flush=True)
        document["claims"][name] = {
            "lecture": claim.lecture,
            "says": claim.says,
            "answer": finding.answer,
            "reason": finding.reason,
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": round(spent, 1),
            "rows": [asdict(row) for row in finding.rows],
        }
        document |= {"command": "python -m benchmarks.headlines", "effort": bench.effort, **bench.facts()}
        out.write_text(json.dumps(document, indent=1) + "\n")
    return document


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(CLAIMS)}")
    parser.add_argument("--seconds", type=float, default=570, help="for all of them together [default: 570]")
    parser.add_argument("--again", action="store_true", help="measure what has an answer already, too")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--sandbox", choices=("auto", "docker", "bwrap", "process"), default="auto")
    parser.add_argument("--effort", choices=("quick", "default", "thorough"), default="quick")
    parser.add_argument("--out", type=Path, help="the result, a JSON file")
    parser.add_argument(
        "--page", action="store_true", help="write the page and plots of the result, and measure nothing"
    )
    given = parser.parse_args()
    if unknown := [name for name in given.names if name not in CLAIMS]:
        parser.error(f"{unknown[0]} is not one of {', '.join(CLAIMS)}")
    if given.page:
        if given.out is None:
            parser.error("--page needs --out: the result")
        print(*write(given.out), sep="\n")
        return 0
    with Bench(given.device, given.sandbox, given.effort) as bench:
        out = given.out or RESULTS / f"headlines_{bench.slug()}.json"
        document = measure(given.names or list(CLAIMS), bench, out, given.seconds, given.again)
    print(f"\nwrote {out}")
    for name, claim in document["claims"].items():
        print(f"{name:18} {claim['seconds']:6.1f} s  {claim['answer']:14} {claim['reason'][:150]}")
    return 0 if all(claim["answer"] != Answer.NOT_MEASURED for claim in document["claims"].values()) else 1


if __name__ == "__main__":
    sys.exit(main())
