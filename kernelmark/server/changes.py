"""Wakes requests that wait for a change, after it was committed; they then read the state again.

Any thread notifies; requests wait in the event loop. Topics are `queue` (whatever changes in it), `jobs` (a worker may
find something to claim that was not there before), `worker:NAME` and `run:RUN`.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

WAITING_EACH = 8
"""Requests of one account, or of one worker, that may wait at the same time."""
WAITING_ACCOUNTS = 2000
"""Requests of all accounts together that may wait at the same time."""


class WaitingRequests:
    """Counts the requests that wait in the event loop: each holds an open file, and there are only so many."""

    def __init__(self, each: int, together: int | None = None) -> None:
        self._each, self._together = each, together
        self._count: Counter[int | str] = Counter()

    @contextmanager
    def one_of(self, who: int | str) -> Iterator[bool]:
        """Count a request while it is answered; yields whether it may wait, or must be answered at once."""
        full = self._together is not None and self._count.total() >= self._together
        if full or self._count[who] >= self._each:
            yield False
            return
        self._count[who] += 1
        try:
            yield True
        finally:
            self._count[who] -= 1
            if not self._count[who]:
                del self._count[who]


class Changes:
    """The topics of one server, and the requests that wait for them in its event loop."""

    def __init__(self) -> None:
        self.accounts = WaitingRequests(WAITING_EACH, WAITING_ACCOUNTS)
        self.workers = WaitingRequests(WAITING_EACH)
        self._lock = threading.Lock()
        self._waiting: defaultdict[str, set[asyncio.Future[None]]] = defaultdict(set)
        self.closed = False
        """Whether the server ends: no request should wait any more."""

    def notify(self, *topics: str) -> None:
        """Wake all requests that wait for one of these topics. Callable from any thread."""
        with self._lock:
            woken = [future for topic in topics for future in self._waiting.pop(topic, ())]
        for future in woken:
            future.get_loop().call_soon_threadsafe(_wake, future)

    def close(self) -> None:
        """Wake all requests, and let none wait from now on: the server ends. A signal handler may call it."""
        self.closed = True
        for future in [future for waiting in [*self._waiting.values()] for future in [*waiting]]:
            future.get_loop().call_soon_threadsafe(_wake, future)

    def subscribe(self, topic: str) -> asyncio.Future[None]:
        """A future that is done at the topic's next change: subscribe, then read the state, then wait."""
        future = asyncio.get_running_loop().create_future()
        with self._lock:
            self._waiting[topic].add(future)
        future.add_done_callback(lambda done: self._forget(topic, done))
        if self.closed:
            _wake(future)
        return future

    def _forget(self, topic: str, future: asyncio.Future[None]) -> None:
        with self._lock:
            waiting = self._waiting.get(topic)
            if waiting is not None:
                waiting.discard(future)
                if not waiting:
                    del self._waiting[topic]


async def wait(change: asyncio.Future[None], seconds: float) -> bool:
    """Wait for a change that was subscribed to, and say whether it came; the subscription ends."""
    try:
        await asyncio.wait_for(change, seconds)
    except TimeoutError:
        return False
    return True


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
