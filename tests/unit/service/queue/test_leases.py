"""Leases: who gets what, until when, and what follows when one ends."""

from __future__ import annotations

import pytest

from kernelmark.server.service import Service
from tests.service_fixtures import make_principal
from tests.unit.service.queue.queueing import Worker, state, submit, told


@pytest.fixture
def ready(service: Service) -> Service:
    service.files.refresh(service.database)
    return service


def test_a_submission_is_claimed_graded_and_shown(ready: Service) -> None:
    worker, ada = Worker(ready), make_principal(ready)
    worker.hello()
    run = submit(ready, ada)
    assert (told(ready, run).state, told(ready, run).before) == ("queued", 0)
    (lease,) = worker.claim()
    assert lease.task.run == run
    worker.progress(lease)
    assert told(ready, run).progress is not None
    assert worker.accept(lease) == run
    assert state(ready, run) == "graded"
