"""The public routes: problems, boards, recorded runs and the heads of ledgers. `create_app` includes them.

With a token, participants see their own runs, too, and assistants see all.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import PlainTextResponse, Response

from kernelmark.authoring.start import Start
from kernelmark.server.accounts.principal import Principal
from kernelmark.server.record import boards
from kernelmark.server.web.dependencies import Serving, Visitor
from kernelmark.service.record import LedgerHead
from kernelmark.service.submissions import RunId, Slug

_DOCUMENT: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The document that the command prints.",
        "content": {"application/json": {"schema": {"type": "object"}}},
    },
    304: {"description": "It has not changed."},
}
router = APIRouter(tags=["public"])


@router.get("/problems", responses=_DOCUMENT, response_class=Response)
async def problems(request: Request, service: Serving, principal: Visitor) -> Response:
    """The problems, as `kernelmark problems list --format json`, with the places of the token's account."""
    return await _document(request, principal, lambda: boards.problem_list(service, principal))


@router.get("/problems/{slug}", responses=_DOCUMENT, response_class=Response)
async def problem(request: Request, service: Serving, slug: Slug) -> Response:
    """A problem, as `kernelmark problems show` prints it for programs."""
    return await _document(request, None, lambda: boards.problem(service, slug))


@router.get("/problems/{slug}/text", response_class=PlainTextResponse)
async def problem_text(service: Serving, slug: Slug) -> PlainTextResponse:
    """A problem for people: its statement, and what a submission must define."""
    return PlainTextResponse(await asyncio.to_thread(boards.problem_text, service, slug))


@router.get("/problems/{slug}/start/{language}", response_class=PlainTextResponse)
async def problem_start(service: Serving, slug: Slug, language: Start) -> PlainTextResponse:
    """A first submission to a problem, as `kernelmark start` writes it."""
    return PlainTextResponse(await asyncio.to_thread(boards.problem_start, service, slug, language))


@router.get("/boards", responses=_DOCUMENT, response_class=Response)
async def all_boards(request: Request, service: Serving) -> Response:
    """The standings of all problems, as `kernelmark board --format json`."""
    return await _document(request, None, lambda: boards.board(service, None))


@router.get("/boards/{slug}", responses=_DOCUMENT, response_class=Response)
async def board(request: Request, service: Serving, slug: Slug) -> Response:
    """The standings of a problem, as `kernelmark board` prints them for programs."""
    return await _document(request, None, lambda: boards.board(service, slug))


@router.get("/runs/{run}", responses=_DOCUMENT, response_class=Response)
async def recorded_run(request: Request, service: Serving, run: RunId, principal: Visitor) -> Response:
    """A recorded run, as `kernelmark show` prints it for programs."""
    return await _document(request, principal, lambda: boards.run(service, run, principal))


@router.get("/ledgers/{slug}/head", response_model=LedgerHead, responses={304: _DOCUMENT[304]})
async def head(request: Request, service: Serving, slug: Slug) -> Response:
    """The number and the hash of a ledger's last line: who keeps them can tell later whether it was rewritten."""
    return await _document(request, None, lambda: boards.head(service, slug))


async def _document(request: Request, principal: Principal | None, make: Callable[[], str]) -> Response:
    """Send a document if it has changed. A shared cache may keep it only if it does not depend on a token."""
    body = (await asyncio.to_thread(make)).encode()
    headers = {"ETag": f'"{hashlib.sha256(body).hexdigest()[:32]}"'}
    headers["Cache-Control"] = "no-cache" if principal is None else "private, no-store"
    if headers["ETag"] in request.headers.get("if-none-match", "").split(", "):
        return Response(status_code=304, headers=headers)
    return Response(body, 200, headers, "application/json")
