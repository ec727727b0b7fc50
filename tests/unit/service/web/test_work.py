"""The routes of workers: nothing for anybody else, and waiting that ends when there is something to tell."""

from __future__ import annotations

import threading
from base64 import b64encode
from contextlib import ExitStack
from typing import Any

import pytest
from sqlalchemy import Connection
from starlette.testclient import TestClient

from kernelmark import __version__
from kernelmark.server.changes import WAITING_EACH
from kernelmark.server.queue import leases
from kernelmark.server.record.recorder import Recorder
from kernelmark.server.service import Service
from kernelmark.service.work import WORK_PROTOCOL, Claim, Leases
from tests.unit.service.queue.queueing import KERNEL, POOL, secret
from tests.unit.service.web.conftest import Asks
from tests.unit.service.web.test_submissions import code, submit

INSTANCE = secret("instance of the routes")


def hello(service: Service) -> dict[str, object]:
    problems = service.files.snapshot.problems
    hashes = {slug: {"public": one.sha256, "final_public": one.sha256} for slug, one in problems.items()}
    return {
        "instance": INSTANCE, "version": __version__, "protocol": WORK_PROTOCOL, "pool": POOL, "device": "cuda",
        "sandbox": "docker", "devices": 1, "slots": 1, "problems": hashes,
    }  # fmt: skip


def claim(worker: TestClient, number: int = 1, wait_s: float = 0) -> Any:
    asked = {"instance": INSTANCE, "claim": secret("claim", number), "free": 1, "wait_s": wait_s}
    return worker.post("/api/v1/worker/claim", json=asked)


def beat(worker: TestClient, *held: str, wait_s: float = 0) -> Any:
    listed = [{"lease": lease} for lease in held]
    return worker.post("/api/v1/worker/heartbeat", json={"instance": INSTANCE, "held": listed, "wait_s": wait_s})


def test_a_worker_claims_reports_and_is_told_of_a_cancellation(
    service: Service, client: Asks, worker: TestClient
) -> None:
    assert worker.post("/api/v1/worker/hello", json=hello(service)).json() == {"name": "gpu1", "paused": ""}
    assert claim(worker).json() == {"leases": []}
    ada = client("ada")
    run = submit(ada, KERNEL)
    (lease,) = claim(worker, 2).json()["leases"]
    assert (lease["task"]["run"], lease["task"]["source"]) == (run, b64encode(KERNEL).decode())
    assert claim(worker, 2).json()["leases"] == [lease]
    assert beat(worker, lease["lease"]).json() == {"end": [], "paused": ""}
    ada.delete(f"/api/v1/submissions/{run}")
    assert beat(worker, lease["lease"]).json()["end"] == [lease["lease"]]


@pytest.mark.parametrize(
    ("pool", "status"), [("a\x1b[2Jb", 422), ("a\nb", 422), ("a\u202eb", 422), ("", 422), ("H100 \u00e9", 200)]
)
def test_the_name_of_a_pool_can_be_printed(service: Service, worker: TestClient, pool: str, status: int) -> None:
    assert worker.post("/api/v1/worker/hello", json={**hello(service), "pool": pool}).status_code == status


def test_a_claim_that_wakes_for_nothing_only_reads(
    service: Service, client: Asks, worker: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes, has_read = list[str](), threading.Event()
    claims, any_queued = leases.claim, leases.any_queued

    def counted(connection: Connection, service: Service, name: str, asked: Claim) -> Leases:
        changes.append(name)
        return claims(connection, service, name, asked)

    def noted(connection: Connection, name: str) -> bool:
        found = any_queued(connection, name)
        has_read.set()
        return found

    monkeypatch.setattr(leases, "claim", counted)
    monkeypatch.setattr(leases, "any_queued", noted)
    worker.post("/api/v1/worker/hello", json=hello(service))
    got: list[Any] = []
    waits = threading.Thread(target=lambda: got.append(claim(worker, wait_s=25).json()))
    waits.start()
    while not has_read.wait(0.01):  # until it waits
        service.changes.notify("jobs")
    assert changes == ["gpu1"]
    run = submit(client("ada"))
    waits.join()
    assert [lease["task"]["run"] for lease in got[0]["leases"]] == [run]
    assert changes == ["gpu1"] * 2


def test_a_heartbeat_that_waits_brings_a_cancellation(service: Service, client: Asks, worker: TestClient) -> None:
    worker.post("/api/v1/worker/hello", json=hello(service))
    ada = client("ada")
    run = submit(ada)
    (lease,) = claim(worker).json()["leases"]
    told: list[Any] = []
    waits = threading.Thread(target=lambda: told.append(beat(worker, lease["lease"], wait_s=10).json()))
    waits.start()
    ada.delete(f"/api/v1/submissions/{run}")
    waits.join()
    assert told[0]["end"] == [lease["lease"]]


def test_a_worker_s_waiting_requests_are_bounded_and_it_still_gets_work(
    service: Service, client: Asks, worker: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []

    async def waits(change: object, seconds: float) -> bool:
        waited.append(seconds)
        return False

    monkeypatch.setattr("kernelmark.server.web.work.wait", waits)
    worker.post("/api/v1/worker/hello", json=hello(service))
    with ExitStack() as waiting:
        for _ in range(WAITING_EACH):
            assert waiting.enter_context(service.changes.workers.one_of("gpu1"))
        assert claim(worker, wait_s=25).json() == {"leases": []}
        assert beat(worker, wait_s=10).json()["end"] == []
        assert waited == []
        run = submit(client("ada"))
        assert [lease["task"]["run"] for lease in claim(worker, 2, wait_s=25).json()["leases"]] == [run]
    assert beat(worker, wait_s=10).status_code == 200
    assert claim(worker, 3, wait_s=25).status_code == 200
    assert len(waited) == 2


def test_nothing_is_given_out_before_the_stores_were_compared(
    service: Service, worker: TestClient, recorder: Recorder
) -> None:
    recorder.ready.clear()
    worker.post("/api/v1/worker/hello", json=hello(service))
    assert code(claim(worker)) == (503, "starting")
    recorder.ready.set()
    assert claim(worker).status_code == 200


def test_an_answer_to_no_lease_changes_nothing(service: Service, worker: TestClient) -> None:
    worker.post("/api/v1/worker/hello", json=hello(service))
    error = {"fault": "harness", "error_class": "DeviceError", "what": "it failed"}
    answer = {"instance": INSTANCE, "lease": secret("none"), "error": error, "answered_at": "2026-01-01T00:00:00Z"}
    assert worker.post("/api/v1/worker/answer", json=answer).status_code == 409


@pytest.mark.parametrize("route", ["hello", "claim", "heartbeat", "answer"])
def test_only_workers_work_and_they_do_nothing_else(client: Asks, worker: TestClient, route: str) -> None:
    for one in (client(), client("ada"), client("grace", role="organizer")):
        assert code(one.post(f"/api/v1/worker/{route}", json={}))[0] in (401, 403, 422)
        assert code(one.post(f"/api/v1/worker/{route}", json={}))[1] in ("scope", "unauthenticated", "malformed")
    for path in ("submissions", "queue", "results", "me", "accounts"):
        assert code(worker.get(f"/api/v1/{path}")) == (403, "scope")


def test_a_worker_says_hello_first(worker: TestClient) -> None:
    assert claim(worker).status_code == 409
