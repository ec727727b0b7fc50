"""Tests whether verdicts depend on the seed: every kernel of this repository on many fresh seeds, on the CPU.

    python -m benchmarks.outcomes --seeds 50 --sandbox bwrap --out benchmarks/results/outcomes.json

It tests every reference kernel, every sample of every problem (including a plain running sum for each problem that
sums) and every honest kernel of the test suite. One sandbox serves all gradings of a kernel; each grading runs all
tests, including hidden ones, on its own inputs. A kernel *flips* if its gradings do not all have the same outcome. The
result also says how close it comes to its budget: for each grading the worst error divided by the allowed one, or
"exact" if something other than a budget decides (integers, NaN, an exception). Exits with 1 on a flip.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

import torch

from benchmarks.scratch import report
from harness import sandbox, stats
from harness.judge.correctness.cases import Correctness
from harness.judge.correctness.graded_case import GradedCase
from harness.judge.session import BuildRequest, Session, SubmissionFault
from harness.problem import Problem, load
from harness.problem.reference import Reference
from harness.submission import Submission
from harness.verdict import DeviceKind, Outcome, OutputCheck
from harness.verdict.case import outcome_of
from kernelmark.authoring.samples import as_submission, read_samples
from kernelmark.diagnostics.selftest import PROBLEMS, honest
from kernelmark.project.choice import providers
from kernelmark.project.settings import Settings

ROOT = Path(__file__).resolve().parent.parent


class Kernel(NamedTuple):
    """One submission, and the problem that it solves, or does not; a sample may be made from another one's file."""

    kind: str
    problem: Path
    file: Path

    @property
    def name(self) -> str:
        where = self.file.parent.name if self.kind == "honest" else f"{self.problem.name}/{self.file.name}"
        return f"{self.kind} {where}"

    def submission(self) -> Submission:
        if self.kind == "sample":
            return as_submission(self.problem, self.file.stem, read_samples(self.problem)[self.file.stem])
        return Submission.read(self.file, "bench")


class Tested(NamedTuple):
    """The result of one seed; `share` is the worst error over the allowed one, None if no budget decides."""

    outcome: Outcome
    failed: tuple[str, ...]
    share: float | None


def kernels(device: DeviceKind) -> Iterator[Kernel]:
    """Everything that can be graded on this kind of device."""
    suffixes = (".py", ".cpp") if device == "cpu" else (".py", ".cu")
    for directory in sorted((ROOT / "problems").glob("*/problem.toml")):
        problem = directory.parent
        for file in sorted((ROOT / "reference" / problem.name).glob("*")):
            if file.suffix in suffixes and not (device == "cpu" and file.stem == "flash"):  # flash.py needs a GPU
                yield Kernel("reference", problem, file)
        for name, sample in read_samples(problem).items():
            if device in sample.devices:
                yield Kernel("sample", problem, problem / "samples" / f"{name}{Path(sample.file).suffix}")
    for case in honest():
        if device in case.devices:
            yield Kernel("honest", PROBLEMS / case.problem, case.source)


def test_often(kernel: Kernel, seeds: int, isolation: sandbox.SandboxChoice) -> list[Tested]:
    """Test one kernel on so many seeds; a sandbox that a fault has ended is followed by another."""
    problem, submission = load(kernel.problem), kernel.submission()
    tested: list[Tested] = []
    while len(tested) < seeds:
        provider = sandbox.choose(isolation, providers(Settings.load()))
        with Session.start(provider, "cpu", problem.limits) as session:
            session.handshake()
            try:
                rng = secrets.SystemRandom()
                cases = [problem.resolve(case.drawn(rng)) for case in problem.tests if "cpu" in case.devices]
                session.build(BuildRequest.of(problem, submission, cases, "cpu"), problem.limits.build_s)
                correctness = Correctness()
                reference = Reference.load(problem)
                while len(tested) < seeds:
                    tested.append(test_once(session, correctness, problem, reference))
            except SubmissionFault as fault:
                tested.append(Tested(fault.outcome, ("",), None))
    return tested


def test_once(session: Session, correctness: Correctness, problem: Problem, reference: Reference) -> Tested:
    """All tests of one grading.

    Raises:
        SubmissionFault: the runner cannot go on.
    """
    results, rng = [], secrets.SystemRandom()
    for case in problem.tests:
        if "cpu" in case.devices:
            # The result of a hidden case has no errors.
            seen = replace(problem.resolve(case.drawn(rng)), hidden=False)
            graded = GradedCase(problem, reference, "cpu", seen)
            results.append(correctness.run(session, graded, case.name))
    wrong = [result for result in results if result.outcome is not Outcome.ACCEPTED]
    shares = [share(output) for result in results for output in result.outputs]
    decided = any(not result.outputs for result in wrong) or None in shares
    worst = None if decided else max((each for each in shares if each is not None), default=None)
    return Tested(outcome_of(results), tuple(result.name for result in wrong), worst)


def share(output: OutputCheck) -> float | None:
    """The worse metric over its budget; 0 for correct integers, None if something else is wrong."""
    worst = output.share_of_budget
    return None if not output.correct and worst <= 1 else worst


def figures(kernel: Kernel, tested: list[Tested]) -> dict[str, Any]:
    """A row of the result."""
    outcomes = Counter(str(each.outcome) for each in tested)
    shares = [each.share for each in tested if each.share is not None]
    failed = Counter(name for each in tested for name in each.failed)
    row: dict[str, Any] = {"kernel": kernel.name, "torch": torch.__version__, "outcomes": dict(outcomes)}
    row["flips"] = len(outcomes) > 1
    if shares:
        spread = {"least": min(shares), "median": stats.median(shares), "most": max(shares)}
        row["share_of_budget"] = {name: float(f"{value:.3g}") for name, value in spread.items()}
    if len(shares) < len(tested):
        row["exact"] = len(tested) - len(shares)
    if row["flips"] or any(count < len(tested) for count in failed.values()):
        row["failed_tests"] = dict(failed)
    return row


def in_a_process(kernel: Kernel, seeds: int, isolation: str, cores: SimpleQueue[int]) -> dict[str, Any]:
    """The same in a separate process on one core, so that several can run at a time without waiting for each other."""
    core = cores.get()
    command = ["taskset", "-c", str(core), sys.executable, "-m", "benchmarks.outcomes", "--seeds", str(seeds)]
    command += ["--sandbox", isolation, "--one", *map(str, kernel)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    cores.put(core)
    if ran.returncode:
        return {"kernel": kernel.name, "error": ran.stderr[-1000:]}
    row: dict[str, Any] = json.loads(ran.stdout)
    return row


def run_all(chosen: list[Kernel], seeds: int, isolation: str, jobs: int | None, kept: Path) -> list[dict[str, Any]]:
    """A row for each kernel. Rows are appended to the file `kept`; complete ones with as many seeds are reused."""
    rows = list(map(json.loads, kept.read_text().splitlines())) if kept.exists() else []
    done = {row["kernel"]: row for row in rows if sum(row.get("outcomes", {}).values()) == seeds}
    cores: SimpleQueue[int] = SimpleQueue()
    for core in sorted(os.sched_getaffinity(0))[:jobs]:
        cores.put(core)
    left = [kernel for kernel in chosen if kernel.name not in done]
    with ThreadPoolExecutor(cores.qsize()) as pool, kept.open("a") as file:
        begun = [pool.submit(in_a_process, kernel, seeds, isolation, cores) for kernel in left]
        for future in as_completed(begun):
            row = future.result()
            done[row["kernel"]] = row
            file.write(json.dumps(row) + "\n")
            file.flush()
    return [done[kernel.name] for kernel in chosen]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--sandbox", choices=("docker", "bwrap", "process"), default="bwrap")
    parser.add_argument("--jobs", type=int, help="concurrent kernels, each on one core; default: all cores")
    parser.add_argument("--only", default="", help="only kernels whose name contains this")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results" / "outcomes.json")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        kernel = Kernel(given.one[0], Path(given.one[1]), Path(given.one[2]))
        print(json.dumps(figures(kernel, test_often(kernel, given.seeds, given.sandbox))))
        return 0
    chosen = [kernel for kernel in kernels("cpu") if given.only in kernel.name]
    rows = run_all(chosen, given.seeds, given.sandbox, given.jobs, given.out.with_suffix(".rows"))
    wrong = [row["kernel"] for row in rows if "error" in row or row["flips"]]
    document = {"seeds": given.seeds, "sandbox": given.sandbox, "kernels": len(rows), "wrong": wrong, "rows": rows}
    report("outcomes", "outcomes over many seeds", given.out, document)
    print(f"{len(rows)} kernels, {given.seeds} seeds, flips or errors: {', '.join(wrong) or 'none'}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
