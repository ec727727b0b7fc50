"""Fuzzes each target for a while, starting from its seeds: `python -m benchmarks.fuzz --seconds 180`.

Prints executions, libFuzzer's coverage (edges of the instrumented modules, and features) and findings, and writes them
to `benchmarks/results/fuzz.json`; exits with 1 if anything was found.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import sys
import tempfile
from pathlib import Path

import pydantic

from benchmarks.scratch import report
from tests.fuzz.figures import TARGETS, fuzz

RESULT = Path(__file__).parent / "results" / "fuzz.json"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=180, help="for each target")
    parser.add_argument("--only", choices=TARGETS, help="only this target; the rows of the others are kept")
    parser.add_argument("--out", type=Path, default=RESULT)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        chosen = [given.only] if given.only else TARGETS
        targets = [fuzz(target, given.seconds, Path(scratch) / target) for target in chosen]
    if given.only:
        others = [target for target in json.loads(given.out.read_text())["targets"] if target["target"] != given.only]
        targets = sorted([*others, *targets], key=lambda each: str(each["target"]))
    what = "coverage-guided fuzzing of the frame decoder, the ledger reader and the problem loader"
    versions = {"atheris": importlib.metadata.version("atheris"), "pydantic": pydantic.VERSION}
    report("fuzz", what, given.out, {**versions, "targets": targets})
    return 1 if any(each["failure"] or each["findings"] for each in targets) else 0


if __name__ == "__main__":
    sys.exit(main())
