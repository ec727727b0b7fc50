"""Routes of one's own account, its tokens, and the acceptance of invitations. `create_app` includes them."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Path
from sqlalchemy import Connection
from starlette.responses import PlainTextResponse

from kernelmark.server.accounts import invitations, listing, names, tokens
from kernelmark.server.web.dependencies import Reader, Serving
from kernelmark.service.accounts import InvitationAcceptance, Me, NewToken, SignedIn, TokenOrder, Tokens

router = APIRouter(tags=["account"])
page = APIRouter()
"""The page that an invitation's link opens, outside of the API."""

_JOIN = """\
This is an invitation to submit kernels to {url}.

To use it, have kernelmark installed (pip install kernelmark), and give it the whole address of this page, in quotes:

    kernelmark login '{url}/join#kmi_...'

It can be used once. You choose a name, which is shown on the board and recorded with your runs for ever.
"""


@router.get("/me")
async def me(service: Serving, principal: Reader) -> Me:
    """Whose the token is."""
    return await service.read(lambda c: listing.me(c, principal))


@router.get("/me/tokens")
async def own_tokens(service: Serving, principal: Reader) -> Tokens:
    """The account's tokens that still count, without their secrets."""
    return await service.read(lambda c: listing.own_tokens(c, principal, service.clock.now_ns()))


@router.post("/me/tokens", status_code=201)
async def make_token(service: Serving, principal: Reader, order: TokenOrder) -> NewToken:
    """Make a token that may do less. One that was made so makes no others."""
    return await service.change(lambda c: tokens.delegate(c, service.clock.now_ns(), principal, order))


@router.delete("/me/tokens/{token}", status_code=204)
async def revoke_token(
    service: Serving, principal: Reader, token: Annotated[str, Path(pattern=r"^(current|[0-9]{1,18})$")]
) -> None:
    """Revoke a token of the account, and those that were made with it; `current`: that of the request."""
    which = principal.token if token == "current" else int(token)
    await service.change(lambda c: tokens.give_up(c, service.clock.now_ns(), principal, which))


@router.post("/invitations/accept", status_code=201)
async def accept(service: Serving, acceptance: InvitationAcceptance) -> SignedIn:
    """Use an invitation, which gives an account and a token. It needs no token."""
    now_ns = service.clock.now_ns()
    await service.read(lambda c: invitations.usable(c, acceptance.secret, now_ns))  # before ledgers are read
    taken = await asyncio.to_thread(names.taken_names, service.project)

    def change(connection: Connection) -> SignedIn:
        secret = invitations.accept(connection, now_ns, acceptance, taken)
        principal = tokens.authenticate(connection, secret, now_ns)
        assert principal is not None
        return SignedIn(token=secret, me=listing.me(connection, principal))

    return await service.change(change)


@page.get("/join", include_in_schema=False)
async def join(service: Serving) -> PlainTextResponse:
    """What to do with an invitation's link. The secret is in the fragment, which browsers do not send."""
    return PlainTextResponse(_JOIN.format(url=service.url))
