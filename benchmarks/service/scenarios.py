"""The scenarios that need no failure: submissions, claims, fairness, devices, memory and the board.

Each takes a folder for its project and a scale, 1 for the bars and 1/50 in CI, and returns its figures. What must hold
whatever the machine is in `wrong`, which is empty then; the bars are in `__main__`.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.service.clients import Sent, flood, paced, percentile, send
from benchmarks.service.connection import Connection
from benchmarks.service.fake_worker import FakeWorker, hashes
from benchmarks.service.served import SLUG, Server
from kernelmark.service.submissions import ENDED
from kernelmark.service.work import Task

Figures = dict[str, Any]
OWNERS = 300
DEVICES = 8
DEVICE_S = 0.4


def submissions(root: Path, scale: float) -> Figures:
    """16 clients submit as fast as they can, then 50 a second; then the server is killed, and has all of them."""
    server = Server(root)
    server.begin()
    try:
        tokens = server.people([f"person-{number}" for number in range(16)])
        count = scaled(4500, scale)
        began = time.monotonic()
        fast = flood(server, tokens, count)
        seconds = time.monotonic() - began
        slow = paced(server, tokens, scaled(1500, scale), 50)
        server.kill()
        server.start()
        return {
            "submissions": count,
            "submissions_a_second": count / seconds,
            "submission_p50_ms": 1e3 * percentile((each.seconds for each in slow), 0.5),
            "submission_p99_ms": 1e3 * percentile((each.seconds for each in slow), 0.99),
            "wrong": [*doubled(fast + slow), *lost(server, fast + slow)],
        }
    finally:
        server.close()


def claims(root: Path, scale: float) -> Figures:
    """A batch of 300 owners is queued, and a worker claims one job at a time, which it answers before the next. Then
    one person submits, and ten equals do.
    """
    server = Server(root)
    server.begin()
    try:
        owners = server.people([f"owner-{number}" for number in range(scaled(OWNERS, scale, least=6))])
        queued = flood(server, owners, scaled(10_000, scale), batch="a batch", mode="check")
        claimant = Claimant(server)
        seconds = [claimant.one()[1] for _ in range(scaled(1_000, scale))]
        behind = one_person(server, claimant)
        fair, wrong = equals(server, claimant, scaled(500, scale, least=200) // 10)
        wrong += [f"claim {behind} was the person's, behind a batch"] if behind > 2 else []
        again = [run for run, times in Counter(claimant.runs).items() if times > 1]
        return {
            "queued": len(queued),
            "owners": len(owners),
            "claims": len(seconds),
            "claim_p50_ms": 1e3 * percentile(seconds, 0.5),
            "claim_p99_ms": 1e3 * percentile(seconds, 0.99),
            "claims_a_second": len(seconds) / sum(seconds),
            "person_behind_a_batch_claim": behind,
            "jain_of_50_claims": fair,
            "wrong": [*wrong, *doubled(queued), *(f"claimed twice: {run}" for run in again)],
        }
    finally:
        server.close()


class Claimant:
    """A worker that claims one job at a time, and answers it."""

    def __init__(self, server: Server) -> None:
        self._worker = fake_worker(server, devices=1)
        self._connection = Connection(server.url, self._worker.token)
        self._worker.hello(self._connection)
        self.runs: list[str] = []

    def one(self) -> tuple[Task, float]:
        """The next job, which is answered then, and how many seconds the claim took.

        Raises:
            ValueError: nothing is queued.
        """
        began = time.perf_counter()
        [lease] = self._worker.claim(self._connection, 1)
        seconds = time.perf_counter() - began
        self.runs.append(lease.task.run)
        self._worker.answer(self._connection, lease)
        return lease.task, seconds


def one_person(server: Server, claimant: Claimant) -> int:
    """Which claim, counted from 1, gets the job of a person who submits while a batch is queued."""
    [token] = server.people(["person"])
    run = send(server.connection(token), token, mode="check").run
    return next(number for number in range(1, 21) if claimant.one()[0].run == run)


def equals(server: Server, claimant: Claimant, jobs: int) -> tuple[float, list[str]]:
    """Jain's index of ten people with as many jobs each, the least of any 50 claims in a row; and what is wrong."""
    tokens = server.people([f"equal-{number}" for number in range(10)])
    mine = {each.run for each in flood(server, tokens, 10 * jobs, clients=10, mode="check")}
    names = list[str]()
    for _ in range(2 * len(mine)):
        task, _ = claimant.one()
        names += [task.author] if task.run in mine else []
        if len(names) == len(mine):
            break
    wrong = [] if len(names) == len(mine) else [f"{len(names)} of {len(mine)} jobs of equals were claimed"]
    windows = [names[start : start + 50] for start in range(max(1, len(names) - 49))]
    least = min(jain([Counter(window)[f"equal-{number}"] for number in range(10)]) for window in windows)
    return least, wrong + ([f"Jain's index is {least:.3f}"] if least < 0.95 else [])


def jain(counts: Sequence[int]) -> float:
    """Jain's index of fairness: 1 if all have the same, 1/n if one has all."""
    return sum(counts) ** 2 / (len(counts) * sum(count * count for count in counts))


def devices(root: Path, scale: float) -> Figures:
    """1,000 jobs of 200 people on eight devices that take 400 ms for each."""
    server = Server(root)
    server.begin()
    try:
        tokens = server.people([f"person-{number}" for number in range(scaled(200, scale))])
        sent = flood(server, tokens, scaled(1_000, scale))
        worker = fake_worker(server, devices=DEVICES, seconds=DEVICE_S)
        began = time.monotonic()
        worker.start()
        runs = drained(worker, len(sent))
        seconds = time.monotonic() - began
        worker.close()
        return {
            "jobs": len(sent),
            "busy_percent": 100 * len(sent) * DEVICE_S / (DEVICES * seconds),
            "gradings_a_second": len(sent) / seconds,
            "wrong": [
                *doubled(sent),
                *unrecorded(server, sent),
                *([] if len(set(runs)) == len(sent) else ["a job ran twice"]),
            ],
        }
    finally:
        server.close()


def memory(root: Path, scale: float) -> Figures:
    """The server with nothing to do; then 10,000 gradings; then how soon the next one is on the board."""
    server = Server(root)
    server.begin()
    server.close()
    began = time.monotonic()
    server.start()
    try:
        first_page = time.monotonic() - began
        server.connection().ask("GET", "problems")
        idle_mib, cpu, seconds = server.rss_mib(), server.cpu_s(), max(1.0, 20 * scale)
        time.sleep(seconds)
        idle_percent = 100 * (server.cpu_s() - cpu) / seconds
        tokens = server.people([f"person-{number}" for number in range(8)])
        worker = fake_worker(server, devices=8)
        worker.start()
        sent = flood(server, tokens, scaled(1_000, scale), clients=4)
        drained(worker, len(sent))
        early_mib = server.rss_mib()
        more = flood(server, tokens, scaled(10_000, scale), clients=4)
        drained(worker, len(more))
        late_mib = server.rss_mib()
        shown_s = shown(server)
        worker.close()
        return {
            "first_page_s": first_page,
            "idle_mib": idle_mib,
            "idle_percent_of_a_core": idle_percent,
            "gradings": len(more),
            "mib_after_the_first": early_mib,
            "mib_after_all": late_mib,
            "mib_more": late_mib - early_mib,
            "on_the_board_s": shown_s,
            "wrong": [*doubled(sent + more), *unrecorded(server, sent + more)],
        }
    finally:
        server.close()


def shown(server: Server) -> float:
    """The seconds from the first submission of a newcomer, which is graded at once, to its row on the board."""
    [token] = server.people(["latecomer"])
    connection, began = server.connection(token), time.monotonic()
    send(connection, token)
    while b"latecomer" not in connection.ask("GET", f"boards/{SLUG}"):
        if time.monotonic() - began > 60:
            raise RuntimeError("a submission is not on the board after a minute")
        time.sleep(0.02)
    return time.monotonic() - began


def fake_worker(server: Server, *, devices: int, seconds: float = 0.0, name: str = "one") -> FakeWorker:
    """A fake worker of this project; it is not started yet."""
    problems = hashes(server.root / "problems", SLUG)
    return FakeWorker(server.url, server.worker_token(name), problems, devices=devices, seconds=seconds)


def drained(worker: FakeWorker, count: int, seconds: float = 600) -> list[str]:
    """Wait until so many answers are acknowledged; returns their runs."""
    return [worker.ended.get(timeout=seconds) for _ in range(count)]


def doubled(sent: Sequence[Sent]) -> list[str]:
    """Runs that two submissions were given."""
    return [f"given twice: {run}" for run, times in Counter(each.run for each in sent).items() if times > 1]


def lost(server: Server, sent: Sequence[Sent]) -> list[str]:
    """Acknowledged submissions that the server does not know."""
    return [f"lost: {run}" for run, state in states(server, sent).items() if not state]


def unrecorded(server: Server, sent: Sequence[Sent], seconds: float = 60) -> list[str]:
    """What is wrong with the ledger, which must come to have each of these runs once, within some seconds."""
    until = time.monotonic() + seconds
    times = server.recorded()
    while not all(times[each.run] for each in sent) and time.monotonic() < until:
        time.sleep(0.2)
        times = server.recorded()
    return [f"{times[each.run]} times in the ledger: {each.run}" for each in sent if times[each.run] != 1]


def states(server: Server, sent: Sequence[Sent]) -> dict[str, str]:
    """The state of each submission, as the server tells the organizer; empty of one that it does not know."""
    found: dict[str, str] = {}

    def ask(number: int) -> None:
        connection = server.connection()
        for each in sent[number::4]:
            answer = json.loads(connection.keep_asking("GET", f"submissions/{each.run}"))
            found[each.run] = answer["state"]

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {each.run: found.get(each.run, "") for each in sent}


def all_ended(server: Server, sent: Sequence[Sent], seconds: float) -> list[str]:
    """Wait until all have ended; returns what has not by then."""
    until, waiting = time.monotonic() + seconds, list(sent)
    while waiting and time.monotonic() < until:
        now = states(server, waiting)
        waiting = [each for each in waiting if now[each.run] not in ENDED]
        time.sleep(1.0 if waiting else 0.0)
    now = states(server, waiting)
    return [f"has not ended: {run} is {state or 'unknown'}" for run, state in now.items()]


def scaled(count: int, scale: float, least: int = 1) -> int:
    """A count at a scale."""
    return max(least, round(count * scale))


ALL: dict[str, Callable[[Path, float], Figures]] = {
    "submissions": submissions,
    "claims": claims,
    "devices": devices,
    "memory": memory,
}
