"""People who submit: each in a thread with a connection of its own, and with a source that nobody else has."""

from __future__ import annotations

import itertools
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from benchmarks.service.connection import Connection
from benchmarks.service.served import Server, submission

_serial = itertools.count(1)


class Sent(NamedTuple):
    """A submission that was acknowledged."""

    run: str
    key: str
    """Its idempotency key."""
    body: bytes
    token: str
    seconds: float
    """From the request to its answer."""


def send(connection: Connection, token: str, **more: Any) -> Sent:
    """Submit once, and if nobody answers again, until it is acknowledged; `more` as for `submission`."""
    key, body = secrets.token_hex(16), submission(f"# {next(_serial)}, {secrets.token_hex(4)}\n", **more)
    began = time.perf_counter()
    run = send_again(connection, key, body)
    return Sent(run, key, body, token, time.perf_counter() - began)


def send_again(connection: Connection, key: str, body: bytes) -> str:
    """The run that the server gives for this request, whether it had it before or not."""
    answer = connection.keep_asking("POST", "submissions", body, {"Idempotency-Key": key})
    # Parsing the whole document costs the load generator more than it tells.
    return answer.partition(b'"run":"')[2][:16].decode()


def together(clients: int, work: Callable[[int], list[Sent]]) -> list[Sent]:
    """What as many threads have sent; `work` is given the thread's number.

    Raises:
        RuntimeError: of one thread, what it raised.
    """
    sent: list[Sent] = []
    failed: list[BaseException] = []

    def run(number: int) -> None:
        try:
            sent.extend(work(number))
        except Exception as error:  # noqa: BLE001 - it is raised again where the threads are waited for
            failed.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise RuntimeError(f"a client has failed: {failed[0]}") from failed[0]
    return sent


def flood(server: Server, tokens: Sequence[str], count: int, clients: int = 16, **more: Any) -> list[Sent]:
    """Submit as fast as the server answers, the accounts in turn."""

    def work(number: int) -> list[Sent]:
        mine = tokens[number % len(tokens) :: clients] or tokens[:1]
        connections = [(Connection(server.url, token), token) for token in mine]
        turns = itertools.cycle(connections)
        sent = [send(*next(turns), **more) for _ in range(number, count, clients)]
        for connection, _ in connections:
            connection.close()
        return sent

    return together(clients, work)


def paced(server: Server, tokens: Sequence[str], count: int, each_second: float, clients: int = 16) -> list[Sent]:
    """Submit at fixed moments, whether or not the earlier ones were answered by then."""
    began = time.monotonic() + 0.1

    def work(number: int) -> list[Sent]:
        connection, token = Connection(server.url, tokens[number % len(tokens)]), tokens[number % len(tokens)]
        sent = []
        for index in range(number, count, clients):
            time.sleep(max(0.0, began + index / each_second - time.monotonic()))
            sent.append(send(connection, token))
        return sent

    return together(clients, work)


def percentile(values: Iterable[float], share: float) -> float:
    """The smallest value that so many of all are not above, such as 0.99 of them."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * round(share * 1000) // 1000) - 1)]
