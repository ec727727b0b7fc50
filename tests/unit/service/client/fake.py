"""A server that answers as a test says, over HTTP on this machine, and remembers what it was asked."""

from __future__ import annotations

import json
import threading
from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import contextmanager

from kernelmark.service.refusal import MEDIA_TYPE, Refusal
from tests.answering import Answered, Asked, answering


class Fake:
    """Gives the prepared answers of a path in turn, and the last one again and again; 404 for any other path."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.origin = ""
        self._answers = defaultdict[str, deque[Answered | None]](deque)
        self._lock = threading.Lock()

    @contextmanager
    def serving(self) -> Iterator[Fake]:
        with answering(lambda asked: self._next(asked)) as self.origin:  # a test may replace it
            yield self

    def answers(self, route: str, *arguments: object, status: int = 200) -> None:
        """What `GET submissions/…` is answered with, next: documents, bytes, refusals, `Answered`, or None: no answer,
        the connection ends.
        """
        self._answers[route].extend(_answered(argument, status) for argument in arguments)

    def of(self, route: str) -> list[Asked]:
        """The requests of a method and path, such as `POST submissions`."""
        return [each for each in self.asked if f"{each.method} {each.path}" == route]

    def _next(self, asked: Asked) -> Answered | None:
        with self._lock:
            self.asked.append(asked)
            queue = self._answers[f"{asked.method} {asked.path}"]
            if not queue:
                return _answered(Refusal(404, "not-found", asked.path, "there is no such page", "look at docs"), 404)
            return queue.popleft() if len(queue) > 1 else queue[0]


def _answered(given: object, status: int) -> Answered | None:
    if given is None or isinstance(given, Answered):
        return given
    if isinstance(given, Refusal):
        body = given.document.model_dump_json().encode()
        return Answered(given.status, body, {"Content-Type": MEDIA_TYPE})
    if isinstance(given, bytes):
        return Answered(status, given)
    if hasattr(given, "model_dump_json"):
        return Answered(status, given.model_dump_json(exclude_none=True).encode())
    return Answered(status, json.dumps(given).encode())
