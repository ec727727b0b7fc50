"""A server that a test plays: it speaks a worker's protocol, leases what the test says, and keeps what it hears.

Nothing of it is the server's own code, so that it may also say what no honest server does.
"""

from __future__ import annotations

import json
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.answering import Answered, Asked, answering

Document = dict[str, Any]


class FakeServer:
    """What was said to it is in `hellos`, `beats` and `answers`, each as the document that came."""

    def __init__(self) -> None:
        self.hellos: list[Document] = []
        self.claims: list[Document] = []
        self.beats: list[Document] = []
        self.answers: list[Document] = []
        self.refused_hellos: list[Document] = []
        """Bodies of refusals, which the next hellos get."""
        self.refused_answers: list[Document] = []
        self.queued: list[list[Document]] = []
        """The leases that the next claims get, one list each."""
        self.ended: list[str] = []
        """Leases that the next heartbeat is told to end."""
        self.paused = ""
        self.raw: dict[str, bytes] = {}
        """Bodies by path, which are answered in place of a document."""
        self.redirects, self.redirected = "", 0
        """Where all requests are redirected, and how many were."""
        self.is_away = self.hears_no_answer = False
        self.origin = ""
        self.changed = threading.Condition()
        self._given: dict[str, list[Document]] = {}
        self._over = False

    @contextmanager
    def serving(self) -> Iterator[FakeServer]:
        with answering(self._answer) as self.origin:
            try:
                yield self
            finally:
                with self.changed:
                    self._over = True
                    self.changed.notify_all()

    @property
    def held(self) -> list[str]:
        """The leases that the last heartbeat listed."""
        return [each["lease"] for beat in self.beats[-1:] for each in beat["held"]]

    def lease(self, *leases: Document) -> None:
        """Give these to the next claim that finds them, at once."""
        with self.changed:
            self.queued.append(list(leases))
            self.changed.notify_all()

    def end(self, lease: str) -> None:
        with self.changed:
            self.ended.append(lease)
            self.changed.notify_all()

    def until(self, true: Callable[[], object], within_s: float = 240) -> None:
        """Wait until this is so; it looks each time that a document has come."""
        with self.changed:
            assert self.changed.wait_for(true, within_s), (self.hellos, self.beats[-3:], self.answers)

    def answer_to(self, lease: Document, within_s: float = 240) -> Document:
        def found() -> list[Document]:
            return [answer for answer in self.answers if answer["lease"] == lease["lease"]]

        self.until(found, within_s)
        return found()[0]

    def _answer(self, asked: Asked) -> Answered | None:
        if self.is_away or (self.hears_no_answer and asked.path == "worker/answer"):
            return None
        assert asked.headers["authorization"] == "Bearer kmw_secret"
        if self.redirects:
            self.redirected += 1
            return Answered(307, b"", {"Location": f"{self.redirects}/api/v1/{asked.path}"})
        status, document = self._said(asked.path, asked.document)
        return Answered(status, self.raw.get(asked.path, json.dumps(document).encode()))

    def _said(self, path: str, document: Document) -> tuple[int, Document]:
        """The answer, as status and body."""
        with self.changed:
            if path == "worker/hello":
                if self.refused_hellos:
                    refusal = self.refused_hellos.pop(0)
                    return refusal["status"], refusal
                self._note(self.hellos, document)
                return 200, {"name": "w1", "paused": self.paused}
            if path == "worker/claim":
                self._note(self.claims, document)
                if document["claim"] not in self._given:
                    self.changed.wait_for(lambda: self.queued or self._over, min(document["wait_s"], 1))
                    self._given[document["claim"]] = self.queued.pop(0) if self.queued else []
                return 200, {"leases": self._given[document["claim"]]}
            if path == "worker/heartbeat":
                self._note(self.beats, document)
                self.changed.wait_for(lambda: self.ended or self._over, min(document["wait_s"], 1))
                ended, self.ended = self.ended, []
                return 200, {"end": ended, "paused": self.paused}
            if path == "worker/answer":
                if self.refused_answers:
                    refusal = self.refused_answers.pop(0)
                    return refusal["status"], refusal
                self._note(self.answers, document)
                return 200, {"run": "0" * 16}
        return 404, refusal_of(404, "no-such-route")

    def _note(self, where: list[Document], document: Document) -> None:
        where.append(document)
        self.changed.notify_all()


def refusal_of(status: int, code: str, title: str = "is refused") -> Document:
    """The body of a refusal."""
    known = {"type": f"urn:kernelmark:{code}", "status": status, "title": title, "where": "the test"}
    return {**known, "detail": f"the test {title}", "remedy": "do something else", "retry_after_s": None}


def lease_of(text: str, number: int = 0, **task: Any) -> Document:
    """A lease of a check of `double`, as a server sends it; the hash must be given."""
    known = {
        "run": f"{number:016x}", "problem": "double", "final": False, "mode": "check", "effort": "quick",
        "name": "submission.py", "author": "ada", "language": "py", "beside": [], "alone": False,
        "source": b64encode(text.encode()).decode(),
    }  # fmt: skip
    return {"lease": f"{time.monotonic_ns():032x}", "task": {**known, **task}}
