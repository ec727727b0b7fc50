"""`kill -9` of the server, or of a worker, while a grading is in each of its states."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.service.clients import send, send_again
from benchmarks.service.connection import Refused
from benchmarks.service.fake_worker import FakeWorker, hashes
from benchmarks.service.kills import start_worker
from benchmarks.service.served import SLUG
from kernelmark.service.submissions import ENDED
from kernelmark.service.work import Lease
from tests.integration.service.site import ENDS, Site


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    run = made.submit()  # so that there is a ledger, whose lock can be held
    made.work()
    made.wait(run, "recorded")
    yield made
    made.server.close()


@pytest.mark.parametrize("state", ENDS)
def test_a_server_that_is_killed_in_a_state_goes_on_from_there(site: Site, state: str) -> None:
    with site.reached(state) as run:
        site.server.kill()
    site.server.start()
    if state == "leased":
        assert site.told(run) == (), "the worker's lease still counts"
        site.answer(run)
    site.work()
    assert site.wait(run, *ENDED) == ENDS[state]
    assert site.in_ledger(run) == (ENDS[state] == "recorded")
    if state in ("graded", "appended", "recorded"):
        site.server.kill()
        site.server.start()
        assert site.state(run) == "recorded"
        assert site.in_ledger(run) == 1
    assert site.server.verify() == ""


def test_what_was_asked_before_a_kill_has_the_same_answer_after_it(site: Site) -> None:
    sent = send(site.connection(), site.token)
    claim = {"instance": site.workers["one"].instance, "claim": secrets.token_hex(16), "free": 1, "wait_s": 0}
    asked = json.dumps(claim).encode()
    before = site.connection("one").ask("POST", "worker/claim", asked)
    site.server.kill()
    site.server.start()
    assert send_again(site.connection(), sent.key, sent.body) == sent.run
    after = site.connection("one").ask("POST", "worker/claim", asked)
    assert json.loads(after) == json.loads(before)
    [lease] = json.loads(after)["leases"]
    site.leases[sent.run] = Lease.model_validate(lease)
    site.answer(sent.run)
    site.wait(sent.run, "recorded")
    assert site.in_ledger(sent.run) == 1


@pytest.mark.parametrize("both", [False, True], ids=["the worker alone", "with its server"])
def test_what_a_killed_worker_was_grading_is_graded_by_its_next_start(site: Site, both: bool) -> None:
    token = site.server.worker_token("three")
    killed = start_worker(site.server, token, 1, seconds=600)
    run = site.submit()
    site.wait(run, "leased")
    killed.kill()
    killed.wait()
    if both:
        site.server.kill()
        site.server.start()
    again = start_worker(site.server, token, 1, seconds=0)
    try:
        assert site.wait(run, *ENDED) == "recorded"
        assert site.in_ledger(run) == 1
    finally:
        again.kill()
        again.wait()


def test_what_a_killed_worker_has_answered_is_recorded(site: Site) -> None:
    worker = start_worker(site.server, site.server.worker_token("three"), 1, seconds=0)
    with site.ledger_held():
        run = site.submit()
        site.wait(run, "graded")
        worker.kill()
        worker.wait()
    site.wait(run, "recorded")
    assert site.in_ledger(run) == 1


def test_an_answer_whose_lease_was_lost_meanwhile_counts_once(site: Site) -> None:
    run = site.submit()
    site.claim()
    late = site.leases[run]
    site.server.kill()
    site.server.start()
    successor = FakeWorker(site.server.url, site.tokens["one"], hashes(site.server.root / "problems", SLUG))
    successor.hello(site.connection("one"))  # as after the worker was killed, too, and started again
    [lease] = successor.claim(site.connection("one"), 1)
    assert lease.task.run == run
    assert lease.lease != late.lease
    successor.answer(site.connection("one"), lease)
    with pytest.raises(Refused, match="409"):
        site.workers["one"].answer(site.connection("one"), late)
    site.wait(run, "recorded")
    assert site.in_ledger(run) == 1
