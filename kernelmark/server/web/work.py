"""The routes of workers: hello, claim, heartbeat and answer. A worker's token can do nothing else.

Claims and heartbeats wait in the event loop. Nothing is given out before the recorder has compared the two stores.
"""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Request
from sqlalchemy import Connection

from kernelmark.server.accounts.principal import Principal
from kernelmark.server.changes import wait
from kernelmark.server.queue import leases, workers
from kernelmark.server.record.answers import take_answer
from kernelmark.server.web.dependencies import RequestRecorder, Serving, WorkerPrincipal
from kernelmark.service.refusal import Refusal
from kernelmark.service.work import (
    Acknowledged,
    Answer,
    Claim,
    Heartbeat,
    HeartbeatResponse,
    Leases,
    WorkerHello,
    WorkerWelcome,
)

_AGAIN_S = 0.5
"""How soon a claim looks again while jobs are queued: one that was left to an idle worker may still be there."""
router = APIRouter(prefix="/worker", tags=["workers"])


@router.post("/hello")
async def hello(service: Serving, principal: WorkerPrincipal, said: WorkerHello) -> WorkerWelcome:
    """The first message of a worker after each start, and again whenever something of it changes."""
    return await service.change(lambda connection: workers.hello(connection, service, _name(principal), said))


@router.post("/claim")
async def claim(
    request: Request, service: Serving, recorder: RequestRecorder, principal: WorkerPrincipal, asked: Claim
) -> Leases:
    """Ask for work; the answer comes once there is some, or when the time is over.

    All claims that wait wake at each new job, and most find that another worker has it. Only a read tells them.
    """
    if not recorder.ready.is_set():
        what = "is still comparing its database with the ledgers"
        raise Refusal(503, "starting", "the server", what, "claim again in a moment", retry_after_s=1)
    name, begin = _name(principal), asyncio.get_running_loop().time()
    woken = False

    def any_queued(connection: Connection) -> bool:
        return leases.any_queued(connection, name)

    with service.changes.workers.one_of(name) as may_wait:
        end = begin + (asked.wait_s if may_wait else 0)
        while True:
            change = service.changes.subscribe("jobs")
            try:
                # What it got would be lost until its next heartbeat, or begin while the server ends.
                if service.changes.closed or await request.is_disconnected():
                    return Leases(leases=())
                some_wait = woken and await service.read(any_queued)
                if some_wait or not woken:  # the first time it may ask for leases that it has
                    got = await service.change(lambda connection: leases.claim(connection, service, name, asked))
                    if got.leases:
                        return got
                left_s = end - asyncio.get_running_loop().time()
                if left_s <= 0:
                    return Leases(leases=())
                if not woken:
                    some_wait, woken = await service.read(any_queued), True
                if not await wait(change, min(left_s, _AGAIN_S) if some_wait else left_s) and not some_wait:
                    return Leases(leases=())
            finally:
                change.cancel()


@router.post("/heartbeat")
async def heartbeat(service: Serving, principal: WorkerPrincipal, beat: Heartbeat) -> HeartbeatResponse:
    """Report what is held. The answer comes when a lease has ended, or when the time that it may take is over."""
    name, held = _name(principal), [one.lease for one in beat.held]
    change = service.changes.subscribe(f"worker:{name}")
    try:
        response = await service.change(lambda connection: leases.heartbeat(connection, service, name, beat))
        with service.changes.workers.one_of(name) as may_wait:
            if may_wait and not response.end and beat.wait_s and await wait(change, beat.wait_s):
                response = await service.read(lambda connection: leases.heartbeat_response(connection, name, held))
        return response
    finally:
        change.cancel()


@router.post("/answer")
async def answer(
    service: Serving, recorder: RequestRecorder, principal: WorkerPrincipal, given: Answer
) -> Acknowledged:
    """Answer a lease. Once it is acknowledged the worker may forget it; the same answer again is acknowledged again."""
    taken = await asyncio.to_thread(take_answer, service, recorder.due, _name(principal), given)
    return Acknowledged(run=await asyncio.wrap_future(taken))


def _name(principal: Principal) -> str:
    assert principal.worker is not None  # of whoever has the scope `work`
    return principal.worker
