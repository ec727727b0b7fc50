"""Has files graded by a server that is killed meanwhile: `python -m benchmarks.service.graded softmax/triton.py ...`.

A new project is served, with real gradings on this machine. Two people submit all files of the same moment with the
command line, one wrong kernel and one that does not compile among them. While the first is graded, the server gets
`kill -9` and is started again. Each client must end with its own exit status, each submission must be in a ledger
once, `verify` must pass, and nothing may be left on the device. Settings (sandbox, image, binds) come from
KERNELMARK_* in the environment. Files are named below reference/, here or in the project of `--from`, whose problems
are copied, too.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.scratch import left_behind, report
from benchmarks.service.served import COMMAND_S, ROOT, Server
from harness.device import DEVICES
from tests.leftovers import leftovers


class Sent(NamedTuple):
    """A file to submit, and the exit status that it has to end with."""

    problem: str
    file: Path
    status: int


class Ended(NamedTuple):
    """How one client ended, and after how many seconds."""

    sent: Sent
    status: int
    seconds: float
    said: str

    @property
    def right(self) -> bool:
        return self.status == self.sent.status


def begin(project: Path, names: Sequence[str], source: Path, device: str) -> list[Sent]:
    """Make the project, and say what is to be submitted to it."""
    sent = []
    for name in names:
        slug, _, kernel = name.partition("/")
        there = source if (source / "problems" / slug).is_dir() else ROOT
        for kind in ("problems", "reference"):
            shutil.copytree(there / kind / slug, project / kind / slug, dirs_exist_ok=True)
        sent.append(Sent(slug, project / "reference" / slug / kernel, 0))
    (project / "kernelmark.toml").write_text(f'device = "{device}"\n')
    shutil.copytree(ROOT / "problems" / "vector_add", project / "problems" / "vector_add", dirs_exist_ok=True)
    (wrong := project / "wrong.py").write_text("def vector_add(x, y, out):\n    out.copy_(x)\n")
    (broken := project / "broken.py").write_text("def vector_add(x, y, out:\n")
    return [*sent, Sent("vector_add", wrong, 1), Sent("vector_add", broken, 3)]


def login(server: Server, home: Path) -> dict[str, str]:
    """Accept an invitation as a person with this home; returns what the environment of their commands adds."""
    home.mkdir()
    person = {"HOME": str(home), "XDG_CONFIG_HOME": str(home / "config")}
    accepted = server.command("login", server.invitation(), "--name", home.name, "--as", "bench", **person)
    if accepted.returncode:
        raise RuntimeError(accepted.stdout + accepted.stderr)
    return person


def submit(server: Server, person: dict[str, str], sent: Sent, ended: list[Ended]) -> None:
    """Submit a file and wait for its result, as a user does; adds how that went to `ended`."""
    began = time.monotonic()
    client = server.command("submit", sent.problem, str(sent.file), "--to", "bench", **person)
    ended.append(Ended(sent, client.returncode, time.monotonic() - began, client.stdout + client.stderr))
    print(f"{sent.problem}/{sent.file.name}: {client.returncode} after {ended[-1].seconds:.1f} s", file=sys.stderr)


def wait_for_pools(server: Server, what: str, clients: Sequence[threading.Thread] = ()) -> None:
    """Wait until a pool's `what` is true, and one of the clients still runs.

    Raises:
        RuntimeError: that does not happen.
    """
    until = time.monotonic() + COMMAND_S
    while not any(pool[what] for pool in server.connection().get("queue")["pools"]):
        if time.monotonic() > until or (clients and not any(client.is_alive() for client in clients)):
            raise RuntimeError(f"no pool has {what}:\n" + "\n".join(server.said[-40:]))
        time.sleep(0.05)


def on_device() -> set[str]:
    """The process ids that use a GPU, where there is one."""
    if shutil.which("nvidia-smi") is None:
        return set()
    query = ["nvidia-smi", "--query-compute-apps=pid", "--format=csv,noheader"]
    return set(subprocess.run(query, capture_output=True, text=True, check=True).stdout.split())


def measure(project: Path, names: Sequence[str], source: Path, device: str, kill: bool) -> dict[str, Any]:
    """Serve, submit, kill and check."""
    sent = begin(project, names, source, device)
    before, users = leftovers(), on_device()
    server = Server(project, grading=True)
    server.begin()
    people = [login(server, project.with_name(name)) for name in ("ada", "grace")]
    wait_for_pools(server, "workers")
    ended: list[Ended] = []
    clients = [
        threading.Thread(target=submit, args=(server, people[place % 2], file, ended))
        for place, file in enumerate(sent)
    ]
    began = time.monotonic()
    for client in clients:
        client.start()
    absent = 0.0
    if kill:
        wait_for_pools(server, "leased", clients)
        time.sleep(3)  # so that the grading is under way
        server.kill()
        absent = server.start()
    for client in clients:
        client.join()
    total = time.monotonic() - began
    runs, verify = server.recorded(), server.verify()
    board = server.command("board", sent[0].problem).stdout
    server.close()
    left = left_behind(before)
    return {
        "seconds": round(total, 1),
        "restart_s": round(absent, 2) if kill else None,
        "rows": [
            {
                "problem": one.sent.problem,
                "file": one.sent.file.name,
                "status": one.status,
                "right": one.right,
                "seconds": round(one.seconds, 1),
                "said": "" if one.right else one.said[-2000:],
            }
            for one in ended
        ],
        "recorded": len(runs),
        "recorded_twice": [run for run, count in runs.items() if count > 1],
        "verify": verify,
        "board": board,
        "left": left,
        "still_on_the_device": sorted(on_device() - users),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="PROBLEM/KERNEL")
    parser.add_argument("--from", dest="source", type=Path, default=ROOT, help="a project with more problems")
    parser.add_argument("--device", default="cuda", choices=["cpu", "cuda"])
    parser.add_argument("--no-kill", action="store_true")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results" / "served_gradings.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="served-") as folder:
        (project := Path(folder) / "project").mkdir()
        result = measure(project, options.files, options.source, options.device, not options.no_kill)
    report(
        "service.graded", "files graded by a server that is killed meanwhile", options.out,
        DEVICES[options.device].facts().known() | result,
    )  # fmt: skip
    every = len(options.files) + 2  # the wrong and the broken one, which are recorded, too
    right = all(row["right"] for row in result["rows"]) and len(result["rows"]) == result["recorded"] == every
    wrong = ("recorded_twice", "verify", "left", "still_on_the_device")
    return 0 if right and not any(result[name] for name in wrong) else 1


if __name__ == "__main__":
    sys.exit(main())
