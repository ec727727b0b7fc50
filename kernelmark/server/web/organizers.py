"""Routes of organizers: accounts, invitations, workers, gradings, pins, pauses, the audit. `create_app` includes them.

Each needs the scope `organize` (`gradings`: `assist`), and each act is audited in the change that makes it.
"""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request
from sqlalchemy import Connection
from starlette.responses import Response

from harness.verdict import RUN_ID
from kernelmark.server.accounts import accounts, invitations, listing, names, operating, tokens
from kernelmark.server.accounts.principal import Principal
from kernelmark.server.clock import moment
from kernelmark.server.service import Service
from kernelmark.server.web.asking import changed, seen
from kernelmark.server.web.defence import require
from kernelmark.service.accounts import NewToken
from kernelmark.service.organizing import (
    AccountChange,
    AccountLink,
    Accounts,
    Audit,
    InvitationOrder,
    Invitations,
    NewInvitation,
    NewInvitations,
    PauseOrder,
    Pauses,
    Pin,
    Pins,
    WorkerOrder,
    Workers,
)
from kernelmark.service.refusal import Refusal
from kernelmark.service.submissions import SubmissionStatus

router = APIRouter(tags=["organizers"])

Organizer = Annotated[Principal, Depends(require("organize"))]
Assistant = Annotated[Principal, Depends(require("assist"))]
Named = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
Id = Annotated[int, Path(ge=1, lt=1 << 62)]


@router.get("/accounts")
async def all_accounts(request: Request, _: Organizer) -> Accounts:
    """All accounts."""
    return await seen(_service(request), listing.all_accounts)


@router.patch("/accounts/{name}")
async def change_account(request: Request, by: Organizer, name: Named, asked: AccountChange) -> Accounts:
    """Change the role, the state or the team of an account; the answer has all accounts."""
    service = _service(request)
    now_ns, among = service.clock.now_ns(), await _recorded(service)

    def change(connection: Connection) -> Accounts:
        accounts.change(
            connection, now_ns, by, name, among,
            role=asked.role, state=asked.state, team=asked.team, no_team=asked.no_team,
        )  # fmt: skip
        return listing.all_accounts(connection)

    return await changed(service, change)


@router.post("/accounts/{name}/link")
async def link_account(request: Request, by: Organizer, name: Named, asked: AccountLink) -> Accounts:
    """Give an account without runs the name of an author in a ledger; the answer has all accounts."""
    service = _service(request)
    now_ns, among = service.clock.now_ns(), await _recorded(service)

    def change(connection: Connection) -> Accounts:
        accounts.link(connection, now_ns, by, name, asked.author, among)
        return listing.all_accounts(connection)

    return await changed(service, change)


@router.delete("/accounts/{name}/tokens", status_code=204)
async def sign_out_account(request: Request, by: Organizer, name: Named) -> Response:
    """End all tokens of an account."""
    service = _service(request)
    now_ns = service.clock.now_ns()
    await changed(service, lambda c: accounts.sign_out(c, now_ns, by, name))
    return Response(status_code=204)


@router.get("/invitations")
async def all_invitations(request: Request, _: Organizer) -> Invitations:
    """All invitations, newest first, without their links."""
    service = _service(request)
    return await seen(service, lambda c: listing.invitations(c, service.clock.now_ns()))


@router.post("/invitations", status_code=201)
async def make_invitations(request: Request, by: Organizer, order: InvitationOrder) -> NewInvitations:
    """Make invitations; their links are shown this once."""
    service = _service(request)
    now_ns, among = service.clock.now_ns(), await _recorded(service)

    def change(connection: Connection) -> NewInvitations:
        made = invitations.make(
            connection, now_ns, by, among,
            role=order.role, name=order.name, team=order.team, account=order.account,
            count=order.count, days=order.days,
        )  # fmt: skip
        return NewInvitations(
            items=tuple(
                NewInvitation(
                    link=f"{service.url}/join#{secret}",
                    role=invited.role,
                    name=invited.name,
                    team=invited.team,
                    ends=moment(tokens.ends_ns(connection, secret)),
                )
                for secret, invited in made
            )
        )

    return await changed(service, change)


@router.delete("/invitations/{invitation}", status_code=204)
async def revoke_invitation(request: Request, by: Organizer, invitation: Id) -> Response:
    """Revoke an invitation that was not used."""
    service = _service(request)
    now_ns = service.clock.now_ns()
    await changed(service, lambda c: invitations.revoke(c, now_ns, by, invitation))
    return Response(status_code=204)


@router.get("/workers")
async def all_workers(request: Request, _: Organizer) -> Workers:
    """All workers."""
    service = _service(request)
    return await seen(service, lambda c: operating.workers(c, service.clock.now_ns()))


@router.post("/workers/{name}", status_code=201)
async def make_worker_token(request: Request, by: Organizer, name: Named, order: WorkerOrder) -> NewToken:
    """Make a token for a worker of this name; whoever has it can forge verdicts."""
    service = _service(request)
    now_ns = service.clock.now_ns()

    def change(connection: Connection) -> NewToken:
        secret = operating.make_worker_token(connection, now_ns, by, name, order.days)
        return NewToken(token=secret, ends=moment(tokens.ends_ns(connection, secret)))

    return await changed(service, change)


@router.delete("/workers/{name}", status_code=204)
async def revoke_worker(request: Request, by: Organizer, name: Named) -> Response:
    """End all tokens of a worker; what it was grading is queued again."""
    service = _service(request)
    await changed(service, lambda c: operating.revoke_worker(c, service, by, name))
    return Response(status_code=204)


@router.post("/workers/{name}/resume")
async def resume_worker(request: Request, by: Organizer, name: Named) -> Workers:
    """Give a paused worker work again; the answer has all workers."""
    service = _service(request)
    now_ns = service.clock.now_ns()

    def change(connection: Connection) -> Workers:
        operating.resume_worker(connection, service, by, name)
        return operating.workers(connection, now_ns)

    return await changed(service, change)


@router.post("/gradings/{run}/again")
async def grade_again(request: Request, by: Assistant, run: Annotated[str, Path(pattern=RUN_ID)]) -> SubmissionStatus:
    """Queue a grading that has failed once more; nobody does it for their own runs or their team's."""
    service = _service(request)
    return await changed(service, lambda c: operating.grade_again(c, service, by, run))


@router.get("/pins")
async def all_pins(request: Request, _: Organizer) -> Pins:
    """The hashes of private cases that organizers have confirmed, and those that workers have."""
    return await seen(_service(request), operating.pins)


@router.put("/pins")
async def pin(request: Request, by: Organizer, wanted: Pin) -> Pins:
    """Confirm the hash of a problem's private cases; the answer has all pins."""
    service = _service(request)
    now_ns = service.clock.now_ns()
    if wanted.problem not in await asyncio.to_thread(service.project.problems):
        what = f"there is no problem {wanted.problem!r} here"
        raise Refusal(404, "no-such-problem", "problem", what, "see which there are with `kernelmark problems list`")

    def change(connection: Connection) -> Pins:
        operating.pin(connection, now_ns, by, wanted)
        return operating.pins(connection)

    pins = await changed(service, change)
    service.changes.notify("queue", "jobs")
    return pins


@router.get("/brakes")
async def all_pauses(request: Request, _: Organizer) -> Pauses:
    """Everything that is paused."""
    return await seen(_service(request), operating.pauses)


@router.put("/brakes")
async def pause(request: Request, by: Organizer, order: PauseOrder) -> Pauses:
    """Have nothing graded, of an account or of anybody, until it is resumed; the answer has all that is paused."""
    service = _service(request)
    now_ns = service.clock.now_ns()

    def change(connection: Connection) -> Pauses:
        operating.pause(connection, now_ns, by, order.account, order.why)
        return operating.pauses(connection)

    pauses = await changed(service, change)
    service.changes.notify("queue", "jobs")
    return pauses


@router.delete("/brakes", status_code=204)
async def resume(
    request: Request, by: Organizer, account: Annotated[str | None, Query(max_length=64)] = None
) -> Response:
    """Have what was paused graded again, of an account or of everybody."""
    service = _service(request)
    now_ns = service.clock.now_ns()
    await changed(service, lambda c: operating.resume(c, now_ns, by, account))
    service.changes.notify("queue", "jobs")
    return Response(status_code=204)


@router.get("/audit")
async def acts(
    request: Request,
    _: Organizer,
    before: Annotated[int | None, Query(ge=1, lt=1 << 62)] = None,
    last: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Audit:
    """What organizers and assistants did, newest first."""
    return await seen(_service(request), lambda c: listing.acts(c, before, last))


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


async def _recorded(service: Service) -> names.Recorded:
    return await asyncio.to_thread(names.recorded, service.project)
