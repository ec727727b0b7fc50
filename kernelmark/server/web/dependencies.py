"""What routes depend on: the service, its recorder, and whoever sent the request, who must have the scope needed.

The routes use it. The defence has authenticated the request by then.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from kernelmark.server.accounts.principal import Principal, TokenScope
from kernelmark.server.record.recorder import Recorder
from kernelmark.server.service import Service
from kernelmark.service.refusal import Refusal

_BEARER = HTTPBearer(auto_error=False, description="A token that `kernelmark login` or an organizer has made.")
_Credentials = Annotated[HTTPAuthorizationCredentials | None, Security(_BEARER)]


async def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


async def _recorder(request: Request) -> Recorder:
    recorder: Recorder = request.app.state.recorder
    return recorder


async def _visitor(request: Request, _: _Credentials) -> Principal | None:
    principal: Principal | None = request.scope["state"]["principal"]
    return principal


Serving = Annotated[Service, Depends(_service)]
RequestRecorder = Annotated[Recorder, Depends(_recorder)]
Visitor = Annotated[Principal | None, Depends(_visitor)]
"""Whoever sent the request; None: somebody without a token."""


@functools.cache
def require(scope: TokenScope) -> Callable[..., Awaitable[Principal]]:
    """A dependency on a principal with this scope; other requests are refused."""

    async def allowed(principal: Visitor) -> Principal:
        if principal is None:
            what = "names no token"
            raise Refusal(401, "unauthenticated", "Authorization", what, "sign in with `kernelmark login`")
        if not principal.has(scope):
            raise Refusal(403, "scope", "the token", f"does not have the scope `{scope}`", "use a token that has it")
        return principal

    return allowed


Submitter = Annotated[Principal, Depends(require("submit"))]
Reader = Annotated[Principal, Depends(require("read"))]
BatchSubmitter = Annotated[Principal, Depends(require("batch"))]
Assistant = Annotated[Principal, Depends(require("assist"))]
Organizer = Annotated[Principal, Depends(require("organize"))]
WorkerPrincipal = Annotated[Principal, Depends(require("work"))]
