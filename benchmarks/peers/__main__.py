"""Other projects' evaluators beside this one, on one card: how long they take, how right they are, what they believe.

    python -m benchmarks.peers --pack FOLDER --seconds 300 --markdown docs/peers.md

FOLDER has the projects' own code: checkouts in `KernelBench`, `reference-kernels` and `robust-kbench`, the other
packages in `site`, installed there by `pip install --target`, and `versions.json` with the version of each by its name.
A project without one there is listed as missing. No sandbox holds the other evaluators, as at home.

It measures in four stages, each in random order, until the time is up; a further call goes on where the last stopped:

1. the reference: CUPTI's durations in three processes;
2. of each project the seconds of a verdict in a new process without any cache, and of the next one in the same process
   where there is one, alone on the machine;
3. the cheats;
4. ten new processes of each project: the time that it reports of a kernel, and of one that does 1 % more.

But for the second stage several processes start at a time; the kernel's file lets only one of them go on at a time.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks.foreign import keep
from benchmarks.peers.evaluators import ANEW, EVALUATORS
from benchmarks.peers.kernels import REPORTED
from benchmarks.peers.table import PROCESSES, page, ran
from benchmarks.slug import device_slug
from harness.device import DEVICES

ROOT = Path(__file__).resolve().parents[2]
REFERENCES = 3
PAIR = ("add", "slower")
STARTS_AT_A_TIME = 4
LIMIT_S = 120.0
Found = dict[str, Any]
Task = tuple[str, tuple[str, ...], str, Callable[[Found], None]]  # evaluator, sources, kind, what keeps the answer


class Bench:
    """What there is so far, and what adds to it."""

    def __init__(self, given: argparse.Namespace, out: Path, found: Found) -> None:
        self.out, self.found, self.only, self.pack = out, found, given.only, given.pack.resolve()
        self.scratch, self.until = given.scratch.resolve(), time.monotonic() + given.seconds
        self._writing = threading.Lock()

    def ask(self, name: str, sources: tuple[str, ...], kind: str) -> Found:
        """What an evaluator tells of sources, in this order, in a new process with empty caches."""
        folder = self.scratch / f"{name}-{kind}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        command = [sys.executable, "-m", "benchmarks.peers.one", name, str(folder), *sources]
        begun = time.time()
        with (folder / "log").open("w") as log:
            child = subprocess.Popen(
                command,
                cwd=ROOT,
                env=self._environment(name, folder, kind),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            try:
                status = child.wait(LIMIT_S)
            except subprocess.TimeoutExpired:
                status = 124
            with contextlib.suppress(ProcessLookupError):  # it may have left children
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        lines = (folder / "told").read_text().splitlines() if (folder / "told").exists() else []
        rows = dict(zip(sources, map(json.loads, lines), strict=False))
        times = [begun, *(row.pop("at") for row in rows.values())]
        for row, before, after in zip(rows.values(), times, times[1:], strict=False):
            row["seconds"] = round(after - before, 2)
        told: Found = {"told": rows}
        if len(rows) < len(sources):
            last = [line for line in (folder / "log").read_text(errors="replace").splitlines() if line.strip()]
            told["failed"] = f"status {status}: {' | '.join(last[-3:])}"[-500:]
        shutil.rmtree(folder, ignore_errors=True)
        return told

    def _environment(self, name: str, folder: Path, kind: str) -> dict[str, str]:
        theirs = [self.pack / each for each in ("KernelBench/src", "robust-kbench", "site")]
        theirs = [] if name in ("kernelmark", "CUPTI") else theirs
        caches = {"TRITON_CACHE_DIR": "triton", "TORCH_EXTENSIONS_DIR": "extensions", "FIB_CACHE_PATH": "flashinfer"}
        return {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", ""), *map(str, theirs)]),
            "PEERS_GPU_MODE": str(self.pack / "reference-kernels"),
            "POPCORN_SEED": str(random.getrandbits(31)),
            **{name: str(folder / cache) for name, cache in caches.items()},
            **({} if kind == "alone" else {"PEERS_TURN": __file__}),
        }

    def do(self, tasks: Sequence[Task], at_a_time: int) -> None:
        """Ask, in random order, until the time is up, and keep each answer as it comes."""

        def one(task: Task) -> None:
            if time.monotonic() < self.until:
                told = self.ask(*task[:3])
                with self._writing:
                    task[3](told)
                    keep(self.out, self.found)
                print(*task[:3], json.dumps(told), flush=True)

        with ThreadPoolExecutor(at_a_time) as pool:
            list(pool.map(one, random.sample(tasks, len(tasks))))

    def reference(self) -> None:
        rows = self.found.setdefault("reference", [])

        def store(told: Found) -> None:
            if "failed" in told:
                raise SystemExit(f"the reference failed: {told['failed']}")
            rows.append(told["told"])

        missing = range(len(rows), REFERENCES)
        self.do([("CUPTI", PAIR, f"reference-{number}", store) for number in missing], STARTS_AT_A_TIME)

    def verdicts(self) -> None:
        def store(name: str, told: Found) -> None:
            self.found["peers"][name] = {"alone": told, "cheats": {}, "processes": []}

        missing = [name for name in self.only if name not in self.found["peers"]]
        self.do([(name, PAIR[: 1 + (name not in ANEW)], "alone", partial(store, name)) for name in missing], 1)

    def running(self) -> list[tuple[str, Found]]:
        """The projects that took the honest kernel."""
        return [(name, peer) for name, peer in self.found["peers"].items() if name in self.only and ran(peer)]

    def cheats(self) -> None:
        def store(cheats: Found, cheat: str, told: Found) -> None:
            cheats[cheat] = told["told"].get(cheat, {"right": False, "us": {}, "said": told.get("failed")})

        missing = [
            (name, (cheat,), f"cheat-{cheat}", partial(store, peer["cheats"], cheat))
            for name, peer in self.running()
            for cheat in REPORTED
            if cheat not in peer["cheats"]
        ]
        self.do(missing, STARTS_AT_A_TIME)

    def processes(self) -> None:
        for number in range(PROCESSES):  # a round of all, then the next
            missing = [each for each in self.running() if len(each[1]["processes"]) <= number]
            orders = [random.sample(PAIR, 2) for _ in missing]
            self.do(
                [
                    (name, tuple(order), f"process-{number}", peer["processes"].append)
                    for (name, peer), order in zip(missing, orders, strict=True)
                ],
                STARTS_AT_A_TIME,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pack", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--only", nargs="+", choices=EVALUATORS, default=list(EVALUATORS))
    parser.add_argument("--seconds", type=float, default=300.0, help="when to begin nothing more")
    parser.add_argument("--out", type=Path, help="is added to; by default in benchmarks/results, by the card's name")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="where to write the page")
    parser.add_argument("--scratch", type=Path, default=Path("/tmp/kernelmark-peers"))  # pygpubench writes below /tmp
    given = parser.parse_args()
    facts = DEVICES["cuda"].facts()
    card = device_slug(facts.device_name)
    out = given.out or ROOT / f"benchmarks/results/peers_{card}.json"
    found: Found = json.loads(out.read_text()) if out.exists() else {"peers": {}, "dates": []}
    uuid = facts.known().get("device_uuid_sha256")
    if found.setdefault("card", uuid) != uuid:
        raise SystemExit(f"{out} is of another card, and all is to be measured on one: give another --out")
    found["peers"] = {name: peer for name, peer in found["peers"].items() if ran(peer)}
    found |= facts.known() | {"torch": torch.__version__, "cpus": os.cpu_count()}
    found["command"] = "python -m benchmarks.peers --pack FOLDER"
    found["dates"].append(datetime.now(UTC).isoformat(timespec="seconds"))
    versions = given.pack / "versions.json"
    found["versions"] = json.loads(versions.read_text()) if versions.exists() else {}
    bench = Bench(given, out, found)
    for stage in (bench.reference, bench.verdicts, bench.cheats, bench.processes):
        stage()
    keep(out, found)
    if len(found["reference"]) < REFERENCES:
        raise SystemExit("the time was up before there was a reference")
    text = page(found)
    print(text)
    if given.markdown:
        given.markdown.write_text(text)


if __name__ == "__main__":
    main()
