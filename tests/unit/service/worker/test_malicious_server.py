"""A server that is broken into gets of an honest worker no more than gradings of its own problems, as they are.

What it sends is data: it names no path, sandbox, device or baseline, and sees no hidden test but in a submission.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.problem.load import identify
from harness.submission import MAX_BESIDE, MAX_SOURCE_BYTES
from tests.fake_server import Document, FakeServer, refusal_of
from tests.unit.service.worker.conftest import Started
from tests.workers import FakeWorker, held, until

Lease = Callable[..., Document]
OTHER = b64encode(b"x = 1\n").decode()

MALFORMED: dict[str, dict[str, Any]] = {
    "a slug that leads out of the project": {"problem": "../elsewhere"},
    "a slug that is a path": {"problem": "/tmp/double"},
    "an empty slug": {"problem": ""},
    "a slug with a control": {"problem": "double\n"},
    "no sandbox": {"sandbox": "process"},
    "an image": {"image": "evil:latest"},
    "a device": {"device": "cuda"},
    "a baseline": {"baselines": ["../../evil"]},
    "one test": {"only": ["small"]},
    "hidden tests": {"hidden": True},
    "a directory": {"directory": "/tmp"},
    "another mode": {"mode": "profile"},
    "another effort": {"effort": "endless"},
    "an unknown language": {"language": "sh"},
    "a run that is a path": {"run": "../../../etc/pwd"},
    "a hash that is none": {"problem_sha256": "0"},
    "source that is no base64": {"source": "abc"},
    "a file beside that is a path": {"beside": [{"name": "../x.py", "content": OTHER}]},
    "a file beside with more": {"beside": [{"name": "x.py", "content": OTHER, "mode": 0o4777}]},
    "too many files": {"beside": [{"name": f"x{n}.py", "content": OTHER} for n in range(MAX_BESIDE + 1)]},
    "a long name": {"name": "x" * 256},
    "a long author": {"author": "x" * 65},
}
REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "an unknown problem": ({"problem": "treble"}, "worker", "no problem of this worker"),
    "another version": ({"problem_sha256": "0" * 64}, "worker", "is another version than this worker has"),
    "a name that is a path": ({"name": "../../k.py"}, "worker", "is not a file's name"),
    "a name with a control": ({"name": "k\x1b[2J.py"}, "worker", "is not a file's name"),
    "an effort that records nothing": (
        {"mode": "submit", "effort": "screen"},
        "worker",
        "times one benchmark case, and so cannot rank",
    ),
    "two files of one name": ({"beside": [{"name": "x.py", "content": OTHER}] * 2}, "worker", "has two files"),
    "an author that is a path": ({"author": "../ada"}, "usage", "is not a valid name"),
    "too large": ({"source": b64encode(b"#" * (MAX_SOURCE_BYTES + 1)).decode()}, "usage", "is larger than"),
    "a program": ({"source": b64encode(b"\x7fELF\0\0").decode()}, "usage", "NUL"),
}


def honest(server: FakeServer, lease: Lease, worker: FakeWorker, number: int = 7) -> None:
    """The honest twin: a task without the attack is graded, by the same worker."""
    server.lease(leased := lease(f"# honest {number}\n", number))
    assert "check" in server.answer_to(leased)
    assert worker.handed[-1].run == leased["task"]["run"]


@pytest.mark.parametrize("attack", MALFORMED)
def test_a_task_with_anything_else_in_it_is_no_task(
    attack: str, server: FakeServer, started: Started, lease: Lease
) -> None:
    """Nor is what came with it: the claim is one document. The worker lets those leases be, and claims anew."""
    started(worker := FakeWorker())
    server.lease(lease("# beside\n", 1), lease(number=2, **MALFORMED[attack]))
    until(lambda: not server.queued)
    honest(server, lease, worker)
    assert len(worker.handed) == len(server.answers) == 1
    assert all(beat["held"] == [] or len(beat["held"]) == 1 for beat in server.beats)


@pytest.mark.parametrize("attack", REFUSED)
def test_a_task_that_is_not_for_this_checkout_is_refused_and_says_why(
    attack: str, server: FakeServer, started: Started, lease: Lease
) -> None:
    started(worker := FakeWorker())
    task, fault, what = REFUSED[attack]
    server.lease(leased := lease(number=1, **task))
    error = server.answer_to(leased)["error"]
    assert error["fault"] == fault
    assert what in error["what"]
    assert worker.handed == []
    honest(server, lease, worker)


@pytest.mark.parametrize("mode", ["check", "bench", "screen"])
def test_final_tests_in_another_mode_than_submit_are_asked_for_in_vain(
    mode: str, server: FakeServer, started: Started, lease: Lease
) -> None:
    """Whether they are due is the server's to say, but hidden tests, which they are, run in a submission only."""
    started(worker := FakeWorker())
    server.lease(leased := lease(number=1, mode=mode, final=True))
    server.answer_to(leased)
    server.lease(twin := lease("# twin\n", number=2, mode="submit", final=True))
    server.answer_to(twin)
    assert [(asked.hidden, asked.final) for asked in worker.handed] == [(False, True), (True, True)]


def test_a_problem_that_the_server_makes_the_worker_wish_for_is_not_looked_for(
    server: FakeServer, started: Started, lease: Lease, competition: Path, tmp_path: Path
) -> None:
    """A folder with a problem beside those of the project is none of the project's."""
    elsewhere = tmp_path / "elsewhere"
    (competition / "problems/double").rename(elsewhere)
    sha256 = identify(elsewhere)
    started(worker := FakeWorker())
    server.lease(leased := lease_of_sha(lease, competition, elsewhere, sha256))
    assert server.answer_to(leased)["error"]["fault"] == "worker"
    assert worker.handed == []


def lease_of_sha(lease: Lease, competition: Path, elsewhere: Path, sha256: str) -> Document:
    (competition / "problems/double").symlink_to(elsewhere)
    made = lease(problem="elsewhere", problem_sha256=sha256)
    (competition / "problems/double").unlink()
    return made


@pytest.mark.parametrize(
    "answer", [b"", b"[]", b"null", b'{"leases": [], "run": "rm -rf"}', b"\xff" * 100, b"[" * 9999]
)
def test_an_answer_that_is_none_ends_no_worker(
    answer: bytes, server: FakeServer, started: Started, lease: Lease
) -> None:
    server.raw["worker/claim"] = answer
    started(worker := FakeWorker())
    server.until(lambda: len(server.claims) > 1)
    assert worker.handed == []
    del server.raw["worker/claim"]
    honest(server, lease, worker)


def test_a_hello_that_somebody_else_answers_ends_no_worker(server: FakeServer, started: Started, lease: Lease) -> None:
    """Such as a proxy's page while the server starts again, after which the worker must say hello."""
    started(worker := FakeWorker())
    server.until(lambda: server.claims)
    server.raw["worker/hello"] = b"<html>back soon</html>"
    server.refused_answers.append(refusal_of(409, "hello-first"))
    server.lease(lease("# an answer that must wait\n", 2))
    server.until(lambda: len(server.hellos) > 2)
    del server.raw["worker/hello"]
    honest(server, lease, worker)


def test_told_to_end_what_it_does_not_hold_it_ends_nothing(server: FakeServer, started: Started, lease: Lease) -> None:
    started(worker := FakeWorker(held))
    server.lease(leased := lease())
    [asked] = worker.has(1)
    beats = len(server.beats)
    server.end("f" * 32)
    server.until(lambda: len(server.beats) > beats + 1)
    worker.answer(asked)
    server.answer_to(leased)
    assert worker.cancelled == []


def test_a_server_redirects_no_token_elsewhere(server: FakeServer, started: Started, lease: Lease) -> None:
    other = FakeServer()
    with other.serving():
        server.redirects = other.origin
        running = started(FakeWorker())
        until(lambda: server.redirected > 1)
        assert (other.hellos, other.claims) == ([], [])
        server.redirects = ""
        server.until(lambda: server.hellos)
        assert running.stop() is None
