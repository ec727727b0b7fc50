"""Routes of one's own account: who one is, one's tokens, and the way in. `create_app` includes them."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request
from sqlalchemy import Connection
from starlette.responses import PlainTextResponse, Response

from kernelmark.server.accounts import invitations, listing, names, tokens
from kernelmark.server.accounts.principal import Principal
from kernelmark.server.service import Service
from kernelmark.server.web.asking import changed, seen
from kernelmark.server.web.defence import require
from kernelmark.service.accounts import InvitationAcceptance, Me, NewToken, SignedIn, TokenOrder, Tokens

router = APIRouter(tags=["account"])
page = APIRouter()
"""The page that an invitation's link opens, beside the API."""

Member = Annotated[Principal, Depends(require("read"))]

_JOIN = """\
This is an invitation to submit kernels to {url}.

To use it, have kernelmark installed (pip install kernelmark), and give it the whole address of this page, in quotes:

    kernelmark login '{url}/join#kmi_...'

It can be used once. You choose a name, which is shown on the board and recorded with your runs for ever.
"""


@router.get("/me")
async def me(request: Request, principal: Member) -> Me:
    """Whose the token is."""
    service: Service = request.app.state.service
    return await seen(service, lambda c: listing.me(c, principal))


@router.get("/me/tokens")
async def own_tokens(request: Request, principal: Member) -> Tokens:
    """The account's tokens that still count, without their secrets."""
    service: Service = request.app.state.service
    return await seen(service, lambda c: listing.own_tokens(c, principal, service.clock.now_ns()))


@router.post("/me/tokens", status_code=201)
async def make_token(request: Request, principal: Member, order: TokenOrder) -> NewToken:
    """Make a token that may do less. One that was made so makes no others."""
    service: Service = request.app.state.service
    now_ns = service.clock.now_ns()
    return await changed(service, lambda c: tokens.delegate(c, now_ns, principal, order))


@router.delete("/me/tokens/{token}", status_code=204)
async def revoke_token(
    request: Request, principal: Member, token: Annotated[str, Path(pattern=r"^(current|[0-9]{1,18})$")]
) -> Response:
    """Revoke a token of the account, and those that were made with it; `current`: the one that asks."""
    service: Service = request.app.state.service
    now_ns = service.clock.now_ns()
    which = principal.token if token == "current" else int(token)
    await changed(service, lambda c: tokens.give_up(c, now_ns, principal, which))
    return Response(status_code=204)


@router.post("/invitations/accept", status_code=201)
async def accept(request: Request, acceptance: InvitationAcceptance) -> SignedIn:
    """Use an invitation, which gives an account and a token. It needs no token."""
    service: Service = request.app.state.service
    now_ns = service.clock.now_ns()
    await seen(service, lambda c: invitations.usable(c, acceptance.secret, now_ns))  # before ledgers are read
    among = await asyncio.to_thread(names.recorded, service.project)

    def change(connection: Connection) -> SignedIn:
        made = invitations.accept(connection, acceptance.secret, acceptance.name, now_ns, among, acceptance.label)
        principal = tokens.authenticate(connection, made.secret, now_ns)
        assert principal is not None
        return SignedIn(token=made.secret, me=listing.me(connection, principal))

    return await changed(service, change)


@page.get("/join", include_in_schema=False)
async def join(request: Request) -> PlainTextResponse:
    """What to do with an invitation's link. The secret is in the fragment, which browsers do not send."""
    service: Service = request.app.state.service
    return PlainTextResponse(_JOIN.format(url=service.url))
