"""The scenario of kills: submissions keep coming, jobs are graded, and `kill -9` ends the server at random moments.

Every fourth time a worker is killed with it. What must hold afterwards: the server serves again, no acknowledged
submission is lost, a repeated request gets its run, every job ends, no run is twice in the ledger, and `verify` finds
nothing.
"""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.service.clients import Sent, flood, send, send_again
from benchmarks.service.connection import Connection
from benchmarks.service.scenarios import all_ended, doubled, scaled, states
from benchmarks.service.served import Server, environment

GRADING_S = 0.5
WORKERS = 2


def kills(root: Path, scale: float, seed: int | None = None) -> dict[str, Any]:
    """1,000 queued, 16 leased, 20 kills; figures as for the other scenarios."""
    seed = random.SystemRandom().randrange(1 << 32) if seed is None else seed
    draw = random.Random(seed)
    queued, leased = scaled(1_000, scale), scaled(16, scale, least=4)
    times = scaled(20, scale, least=3)
    server = Server(root)
    server.begin()
    workers: list[subprocess.Popen[str]] = []
    try:
        tokens = server.people([f"person-{number}" for number in range(8)])
        secrets = [server.worker_token(f"worker-{number}") for number in range(WORKERS)]
        workers = [start_worker(server, secret, leased // WORKERS) for secret in secrets]
        people = Submitters(server, tokens, queued)
        people.start()
        restarts, wrong = [], list[str]()
        for number in range(times):
            people.wait_for_queue()
            time.sleep(draw.uniform(0, 3 * GRADING_S))
            if number % 4 == 3:
                which = draw.randrange(WORKERS)
                workers[which].kill()
                workers[which].wait()
            server.kill()
            restarts.append(server.start())
            if number % 4 == 3:
                workers[which] = start_worker(server, secrets[which], leased // WORKERS)
            wrong += repeated(server, draw.sample(people.sent[:], min(5, len(people.sent))))
        people.stop()
        sent = [*people.sent, *flood(server, tokens, 1)]
        wrong += [*people.failed, *doubled(sent), *all_ended(server, sent, 600)]
        return {
            "seed": seed,
            "kills": times,
            "restart_most_s": max(restarts),
            "restart_s": [round(restart, 2) for restart in restarts],
            "acknowledged": len(sent),
            "states": dict(Counter(states(server, sent).values())),
            "wrong": wrong + recorded_once(server, sent),
        }
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
        server.close()


class Submitters:
    """Threads that keep so many jobs queued, whether the server runs or not."""

    def __init__(self, server: Server, tokens: list[str], queued: int) -> None:
        self.sent: list[Sent] = []
        self.failed: list[str] = []
        self._server, self._tokens, self._queued = server, tokens, queued
        self._end, self._counting = threading.Event(), threading.Lock()
        self._lines = self._counted_bytes = 0
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(4)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join()

    def waiting(self) -> int:
        """How many of the acknowledged submissions have no line in the ledger yet."""
        with self._counting, suppress(FileNotFoundError), self._server.ledger.path.open("rb") as file:
            file.seek(self._counted_bytes)
            new = file.read()
            self._counted_bytes += len(new)
            self._lines += new.count(b"\n")
        return len(self.sent) - self._lines

    def wait_for_queue(self, seconds: float = 120) -> None:
        """Wait until nearly as many are queued as there are to be."""
        until = time.monotonic() + seconds
        while self.waiting() < 0.95 * self._queued and time.monotonic() < until and not self.failed:
            time.sleep(0.02)

    def _run(self, number: int) -> None:
        token = self._tokens[number % len(self._tokens)]
        connection = Connection(self._server.url, token)
        try:
            while not self._end.is_set():
                if self.waiting() < self._queued:
                    self.sent.append(send(connection, token))
                else:
                    time.sleep(0.05)
        except Exception as error:  # noqa: BLE001 - the scenario reports it
            self.failed.append(f"a submission failed: {error}")


def start_worker(server: Server, secret: str, devices: int, seconds: float = GRADING_S) -> subprocess.Popen[str]:
    """A fake worker as a process of its own, once the server has taken it."""
    command = [sys.executable, "-m", "benchmarks.service.fake_worker", "--to", server.url]
    worker = subprocess.Popen(
        [*command, "--problems", str(server.root / "problems"), "--devices", str(devices), "--seconds", str(seconds)],
        env={**environment(), "KERNELMARK_TOKEN": secret}, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert worker.stdout is not None
    if not worker.stdout.readline():
        raise RuntimeError(f"the worker ended with {worker.wait()}")
    return worker


def repeated(server: Server, sent: list[Sent]) -> list[str]:
    """Requests that get another run than the first time."""
    again = [(each, send_again(Connection(server.url, each.token), each.key, each.body)) for each in sent]
    return [f"{each.run} became {run}" for each, run in again if run != each.run]


def recorded_once(server: Server, sent: list[Sent]) -> list[str]:
    """What is wrong with the ledger, after everything has ended."""
    runs, told = server.recorded(), states(server, sent)
    wrong = [f"{times} times in the ledger: {run}" for run, times in runs.items() if times > 1]
    wrong += [f"recorded, and not in the ledger: {run}" for run in told if told[run] == "recorded" and not runs[run]]
    wrong += [f"in the ledger, and nobody submitted it: {run}" for run in runs.keys() - {each.run for each in sent}]
    return wrong + ([said] if (said := server.verify()) else [])
