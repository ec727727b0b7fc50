"""Routes of organizers: accounts, invitations, workers, gradings, pins, pauses, the audit. `create_app` includes them.

Each needs the scope `organize` (`gradings`: `assist`), and each act is audited in the change that makes it.
"""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Path, Query
from sqlalchemy import Connection

from harness.verdict import RUN_ID
from kernelmark.server.accounts import accounts, invitations, listing, names, operating, tokens
from kernelmark.server.clock import moment
from kernelmark.server.service import Service
from kernelmark.server.web.dependencies import Assistant, Organizer, Serving
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

Named = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
Id = Annotated[int, Path(ge=1, lt=1 << 62)]


@router.get("/accounts")
async def all_accounts(service: Serving, _: Organizer) -> Accounts:
    """All accounts."""
    return await service.read(listing.all_accounts)


@router.patch("/accounts/{name}")
async def change_account(service: Serving, by: Organizer, name: Named, order: AccountChange) -> Accounts:
    """Change the role, the state or the team of an account; the answer has all accounts."""
    taken = await _taken_names(service)
    await service.change(lambda c: accounts.change(c, service.clock.now_ns(), by, name, taken, order))
    return await service.read(listing.all_accounts)


@router.post("/accounts/{name}/link")
async def link_account(service: Serving, by: Organizer, name: Named, order: AccountLink) -> Accounts:
    """Give an account without runs the name of an author in a ledger; the answer has all accounts."""
    taken = await _taken_names(service)
    await service.change(lambda c: accounts.link(c, service.clock.now_ns(), by, name, order.author, taken))
    return await service.read(listing.all_accounts)


@router.delete("/accounts/{name}/tokens", status_code=204)
async def sign_out_account(service: Serving, by: Organizer, name: Named) -> None:
    """End all tokens of an account."""
    await service.change(lambda c: accounts.sign_out(c, service.clock.now_ns(), by, name))


@router.get("/invitations")
async def all_invitations(service: Serving, _: Organizer) -> Invitations:
    """All invitations, newest first, without their links."""
    return await service.read(lambda c: listing.invitations(c, service.clock.now_ns()))


@router.post("/invitations", status_code=201)
async def make_invitations(service: Serving, by: Organizer, order: InvitationOrder) -> NewInvitations:
    """Make invitations; their links are shown this once."""
    taken = await _taken_names(service)

    def change(connection: Connection) -> NewInvitations:
        made = invitations.make(connection, service.clock.now_ns(), by, taken, order)
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

    return await service.change(change)


@router.delete("/invitations/{invitation}", status_code=204)
async def revoke_invitation(service: Serving, by: Organizer, invitation: Id) -> None:
    """Revoke an invitation that was not used."""
    await service.change(lambda c: invitations.revoke(c, service.clock.now_ns(), by, invitation))


@router.get("/workers")
async def all_workers(service: Serving, _: Organizer) -> Workers:
    """All workers."""
    return await service.read(lambda c: operating.workers(c, service.clock.now_ns()))


@router.post("/workers/{name}", status_code=201)
async def make_worker_token(service: Serving, by: Organizer, name: Named, order: WorkerOrder) -> NewToken:
    """Make a token for a worker of this name; whoever has it can forge verdicts."""

    def change(connection: Connection) -> NewToken:
        secret = operating.make_worker_token(connection, service.clock.now_ns(), by, name, order.days)
        return NewToken(token=secret, ends=moment(tokens.ends_ns(connection, secret)))

    return await service.change(change)


@router.delete("/workers/{name}", status_code=204)
async def revoke_worker(service: Serving, by: Organizer, name: Named) -> None:
    """End all tokens of a worker; what it was grading is queued again."""
    await service.change(lambda c: operating.revoke_worker(c, service, by, name))


@router.post("/workers/{name}/resume")
async def resume_worker(service: Serving, by: Organizer, name: Named) -> Workers:
    """Give a paused worker work again; the answer has all workers."""
    await service.change(lambda c: operating.resume_worker(c, service, by, name))
    return await service.read(lambda c: operating.workers(c, service.clock.now_ns()))


@router.post("/gradings/{run}/again")
async def grade_again(service: Serving, by: Assistant, run: Annotated[str, Path(pattern=RUN_ID)]) -> SubmissionStatus:
    """Queue a grading that has failed once more; nobody does it for their own runs or their team's."""
    return await service.change(lambda c: operating.grade_again(c, service, by, run))


@router.get("/pins")
async def all_pins(service: Serving, _: Organizer) -> Pins:
    """The hashes of private cases that organizers have confirmed, and those that workers have."""
    return await service.read(operating.pins)


@router.put("/pins")
async def pin(service: Serving, by: Organizer, wanted: Pin) -> Pins:
    """Confirm the hash of a problem's private cases; the answer has all pins."""
    if wanted.problem not in await asyncio.to_thread(service.project.problems):
        what = f"there is no problem {wanted.problem!r} here"
        raise Refusal(404, "no-such-problem", "problem", what, "see which there are with `kernelmark problems list`")
    await service.change(lambda c: operating.pin(c, service.clock.now_ns(), by, wanted))
    service.changes.notify("queue", "jobs")
    return await service.read(operating.pins)


@router.get("/brakes")
async def all_pauses(service: Serving, _: Organizer) -> Pauses:
    """Everything that is paused."""
    return await service.read(operating.pauses)


@router.put("/brakes")
async def pause(service: Serving, by: Organizer, order: PauseOrder) -> Pauses:
    """Have nothing graded, of an account or of anybody, until it is resumed; the answer has all that is paused."""
    await service.change(lambda c: operating.pause(c, service.clock.now_ns(), by, order.account, order.why))
    service.changes.notify("queue", "jobs")
    return await service.read(operating.pauses)


@router.delete("/brakes", status_code=204)
async def resume(service: Serving, by: Organizer, account: Annotated[str | None, Query(max_length=64)] = None) -> None:
    """Have what was paused graded again, of an account or of everybody."""
    await service.change(lambda c: operating.resume(c, service.clock.now_ns(), by, account))
    service.changes.notify("queue", "jobs")


@router.get("/audit")
async def acts(
    service: Serving,
    _: Organizer,
    before: Annotated[int | None, Query(ge=1, lt=1 << 62)] = None,
    last: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Audit:
    """What organizers and assistants did, newest first."""
    return await service.read(lambda c: listing.acts(c, before, last))


async def _taken_names(service: Service) -> names.TakenNames:
    return await asyncio.to_thread(names.taken_names, service.project)
