"""Tests gradings under faults of the machine: `python -m benchmarks.faults --kill 50 --disk-full`.

`--kill N`: kill the judge with SIGKILL at a random moment, N times. `--dockerd N`: kill and restart the Docker daemon
(one that this program starts, unless `--pidfile` names the one to restart). `--disk-full`: fill the ledger's file
system during an append (root only: it mounts a tmpfs). After each fault the chain must be intact, no acknowledged
verdict lost, nothing left behind, and an honest kernel accepted again. Writes `benchmarks/results/faults.json`; exits
with 1 unless all of this holds.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.scratch import HONEST, PROBLEM, end, ledger, left_behind, project, recorded, report, start, submit
from tests.leftovers import leftovers

RESULT = Path(__file__).parent / "results" / "faults.json"
IMAGE = "kernelmark-runner:latest"


def kill(times: int, draw: random.Random) -> dict[str, Any]:
    """Kill the judge at random moments, uniform over the length of a whole grading."""
    trials: list[dict[str, Any]] = []
    with project() as root:
        first = after = submit(root)
        promised = [first.run]
        for _ in range(times):
            before, started = leftovers(), time.monotonic()
            child, moment = start(root, HONEST), draw.uniform(0, after.seconds)
            time.sleep(moment)
            child.kill()
            hit = end(child, started)
            promised += [hit.run] if hit.run else []
            at_once = left_behind(before, 10)
            chain = _held(root, promised)
            after = submit(root)
            promised.append(after.run)
            trials.append(
                {
                    "moment_s": round(moment, 2),
                    "status": hit.status,
                    "left_after_10_s": at_once,
                    "left_after_the_next": _still(at_once, 5),
                    "chain": chain,
                    "after": after.outcome,
                    "chain_after": _held(root, promised),
                }
            )
            print(trials[-1], file=sys.stderr)
        lines = len(recorded(ledger(root)))
    held = first.outcome == "accepted" and all(
        t["chain"] == t["chain_after"] == "" and t["after"] == "accepted" and not t["left_after_the_next"]
        for t in trials
    )
    killed = sum(t["status"] == -signal.SIGKILL for t in trials)
    return {"held": held, "killed": killed, "acknowledged": len(promised), "ledger_lines": lines, "trials": trials}


def _still(left: dict[str, list[str]], seconds: float) -> dict[str, list[str]]:
    """Which of these leftovers still exist after so many seconds."""
    now = leftovers()
    others = {kind: [item for item in items if item not in left.get(kind, [])] for kind, items in now.items()}
    return left_behind(others, seconds)


def _held(root: Path, promised: list[str]) -> str:
    """What is wrong with the ledger; empty if nothing is."""
    runs = Counter(recorded(ledger(root)))
    lost = [run for run in promised if runs[run] != 1]
    return f"not there exactly once: {lost}" if lost else ""


def disk_full() -> dict[str, Any]:
    """Fill the ledger's own tmpfs to the last page (part of a line still fits), grade, free it, and grade again."""
    trials: list[dict[str, Any]] = []
    with project() as root:
        folder = ledger(root).path.parent
        folder.mkdir(parents=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)], check=True)
        try:
            promised = [submit(root).run]
            for _ in range(3):
                before = ledger(root).path.read_bytes()
                _fill(folder / "filler")
                full = submit(root)
                same = ledger(root).path.read_bytes() == before
                torn = ledger(root).torn_path.exists()
                chain = _held(root, promised)
                (folder / "filler").unlink()
                after = submit(root)
                promised.append(after.run)
                trials.append(
                    {
                        "ledger_bytes": len(before),
                        "status": full.status,
                        "said": full.errors.strip().splitlines()[-1:],
                        "unchanged": same,
                        "torn": torn,
                        "chain": chain,
                        "after": after.outcome,
                        "chain_after": _held(root, promised),
                    }
                )
                print(trials[-1], file=sys.stderr)
        finally:
            subprocess.run(["umount", str(folder)], check=True)
    held = all(
        t["status"] == 7 and t["unchanged"] and not t["torn"] and t["after"] == "accepted"
        and t["chain"] == t["chain_after"] == ""
        for t in trials
    )  # fmt: skip
    return {"held": held, "trials": trials}


def _fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file, suppress(OSError):  # full
        while file.write(bytes(4096)):
            pass


def dockerd(times: int, draw: random.Random, pidfile: Path | None) -> dict[str, Any]:
    """Kill the daemon at a random moment of a grading in a container, then start it again."""
    trials: list[dict[str, Any]] = []
    with project() as root, _own_daemon(root) if pidfile is None else _shared_daemon(pidfile) as (host, crash):
        in_docker = partial(submit, root, sandbox="docker", host=host)
        first = in_docker()
        promised = [first.run]
        for _ in range(times):
            started, moment = time.monotonic(), draw.uniform(0, first.seconds)
            child = start(root, HONEST, sandbox="docker", host=host)
            time.sleep(moment)
            crash()
            hit = end(child, started)
            promised += [hit.run] if hit.run else []
            after = in_docker()
            promised.append(after.run)
            left = _docker(host, "ps", "-aq", "--filter", "label=kernelmark=runner").split()
            trials.append(
                {
                    "moment_s": round(moment, 2),
                    "status": hit.status,
                    "outcome": hit.outcome,
                    "said": hit.errors.strip().splitlines()[-1:],
                    "after": after.outcome,
                    "containers": left,
                    "chain": _held(root, promised),
                }
            )
            print(trials[-1], file=sys.stderr)
    # A fault of the machine is never blamed on the participant: the kernel is accepted, or there is no verdict.
    held = first.outcome == "accepted" and all(
        t["status"] in (0, 7) and t["after"] == "accepted" and not t["containers"] and not t["chain"] for t in trials
    )
    return {"held": held, "own_daemon": pidfile is None, "first": first._asdict(), "trials": trials}


@contextmanager
def _own_daemon(root: Path) -> Iterator[tuple[str, Any]]:
    """A separate daemon with the image loaded; yields its address and a function that crashes and restarts it."""
    place = root / "dockerd"
    place.mkdir()
    host, log = f"unix://{place}/socket", (place / "log").open("wb")
    command = [
        "dockerd", "--data-root", str(place / "data"), "--exec-root", str(place / "exec"), "--host", host,
        "--pidfile", str(place / "pid"), "--bridge", "none", "--iptables=false", "--storage-driver", "overlay2",
    ]  # fmt: skip
    running: list[subprocess.Popen[bytes]] = []

    def begin() -> None:
        """Retry, as an init system does: a new daemon exits at once while the old containerd is still ending."""
        for _ in range(10):
            running.append(subprocess.Popen(command, stdout=log, stderr=log))
            if _answers(host, running[-1]):
                return
            time.sleep(1)
        raise SystemExit("dockerd does not start: " + (place / "log").read_text()[-1000:])

    def crash() -> None:
        running[-1].kill()
        running[-1].wait()
        (place / "pid").unlink(missing_ok=True)
        begin()

    try:
        begin()
        with subprocess.Popen(["docker", "save", IMAGE], stdout=subprocess.PIPE) as saving:
            subprocess.run(["docker", "--host", host, "load", "--quiet"], stdin=saving.stdout, check=True)
        yield host, crash
    finally:
        running[-1].terminate()
        running[-1].wait(60)
        log.close()
        subprocess.run(
            ["umount", str(place / "data")], capture_output=True, check=False
        )  # a crashed daemon leaves it mounted


@contextmanager
def _shared_daemon(pidfile: Path) -> Iterator[tuple[str, Any]]:
    """The daemon of this machine, restarted with its own command line."""

    def crash() -> None:
        process = Path("/proc") / pidfile.read_text().strip()
        command = (process / "cmdline").read_bytes().decode().split("\0")[:-1]
        os.kill(int(process.name), signal.SIGKILL)
        while process.exists() and "State:\tZ" not in (process / "status").read_text():
            time.sleep(0.05)
        pidfile.unlink(missing_ok=True)
        quiet = subprocess.DEVNULL
        if not _answers("", subprocess.Popen(command, stdout=quiet, stderr=quiet, start_new_session=True)):
            raise SystemExit("dockerd does not come back: start it by hand")

    yield "", crash


def _answers(host: str, daemon: subprocess.Popen[bytes]) -> bool:
    """Whether the daemon answers within a minute; false if it ends."""
    for _ in range(300):
        if daemon.poll() is not None:
            return False
        if _docker(host, "version", "--format", "{{.Server.Version}}").strip():
            return True
        time.sleep(0.2)
    return False


def _docker(host: str, *arguments: str) -> str:
    command = ["docker", *(["--host", host] if host else []), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kill", type=int, metavar="N", default=0)
    parser.add_argument("--dockerd", type=int, metavar="N", default=0)
    parser.add_argument("--pidfile", type=Path, help="pid file of the daemon to restart, instead of a separate one")
    parser.add_argument("--disk-full", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULT)
    given = parser.parse_args()
    if not (given.kill or given.dockerd or given.disk_full):
        parser.error("name at least one fault")
    figures: dict[str, Any] = {"problem": PROBLEM.name}
    if given.kill:
        figures["kill"] = kill(given.kill, random.Random(given.seed))
    if given.disk_full:
        figures["disk_full"] = disk_full()
    if given.dockerd:
        figures["dockerd"] = dockerd(given.dockerd, random.Random(given.seed), given.pidfile)
    held = all(figure["held"] for figure in figures.values() if isinstance(figure, dict))
    report("faults", "faults of the machine during a grading", given.out, {"held": held, **figures})
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
