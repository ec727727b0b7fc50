"""Writes every error as a document of RFC 9457: refusals, malformed requests, and what was not expected.

`create_app` installs it; the defence uses it for what never reaches a route. Nothing of a request but the names of its
fields is repeated, and nothing of the server's own troubles is told but that there are some.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from harness.errors import KernelmarkError, SubmissionError
from kernelmark import __version__
from kernelmark.service.refusal import MEDIA_TYPE, UNKNOWN_FIELD, Refusal, RefusalDocument

_BODY = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/RefusalDocument"}}}
RESPONSES: dict[int | str, dict[str, object]] = {
    422: {"description": "The request is malformed.", "content": _BODY},
    "4XX": {"description": "Refused.", "content": _BODY},
    "5XX": {"description": "Not possible now.", "content": _BODY},
}
"""What the OpenAPI document says of every route's errors."""

_log = logging.getLogger("kernelmark.server")


def install(app: FastAPI) -> None:
    """Let the app write its errors so. What is not expected passes to the defence, which logs it."""

    @app.exception_handler(Refusal)
    async def refused(_: Request, error: Refusal) -> Response:
        return answer(error)

    @app.exception_handler(RequestValidationError)
    async def malformed(_: Request, error: RequestValidationError) -> Response:
        return answer(malformation(error.errors()))

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        return answer(_of_http(request, error), error.headers)

    @app.exception_handler(KernelmarkError)
    async def ours(_: Request, error: KernelmarkError) -> Response:
        return answer(_of_error(error))

    @app.exception_handler(SQLAlchemyError)
    async def storage(_: Request, error: SQLAlchemyError) -> Response:
        return answer(unexpected(error))


def describe(app: FastAPI, documents: Sequence[type[BaseModel]]) -> None:
    """Add documents to the app's OpenAPI document to which routes refer only by name, and that of errors."""
    make = app.openapi

    def described() -> dict[str, Any]:
        openapi = make()
        schemas = openapi.setdefault("components", {}).setdefault("schemas", {})
        every: list[type[BaseModel]] = [RefusalDocument, *documents]
        for document in every:
            schema = document.model_json_schema(ref_template="#/components/schemas/{model}")
            schemas |= {**schema.pop("$defs", {}), document.__name__: schema, **schemas}
        return openapi

    app.openapi = functools.cache(described)  # type: ignore[method-assign]  # as FastAPI's manual does


def answer(refusal: Refusal, headers: Mapping[str, str] | None = None) -> Response:
    """The response to a request that is refused."""
    document: RefusalDocument = refusal.document
    more = dict(headers or {})
    if refusal.retry_after_s is not None:
        more["Retry-After"] = str(refusal.retry_after_s)
    if refusal.status == 401:
        more["WWW-Authenticate"] = "Bearer"
    return Response(document.model_dump_json(), refusal.status, more, MEDIA_TYPE)


def malformation(errors: Sequence[Mapping[str, object]]) -> Refusal:
    """The refusal of a document that pydantic found fault with; it names the first place."""
    unknown = next((error for error in errors if error["type"] == "extra_forbidden"), None)
    first = unknown or errors[0]
    place = first["loc"]
    parts = [str(part) for part in place] if isinstance(place, tuple | list) else []
    if parts[:1] in (["body"], ["query"], ["path"], ["header"]):
        parts = parts[1:] or parts
    where = ascii(".".join(parts) or "the request")[1:-1][:200]
    if unknown is not None:  # a later version may have added it, and whoever sent it counts on it
        what = f"is a field that this server, kernelmark {__version__}, does not know"
        return Refusal(422, UNKNOWN_FIELD, where, what, "leave it out, or install the version that the server has")
    what = ascii(str(first["msg"]).removeprefix("Value error, "))[1:-1][:500]
    return Refusal(422, "malformed", where, what, "see /openapi.json for what this route takes")


def unexpected(error: BaseException) -> Refusal:
    """Log what went wrong with its traceback, and tell the one who asked that it is our fault."""
    _log.error("a request ended with an error", exc_info=error)
    if isinstance(error, SQLAlchemyError):
        what = "cannot read or write its database now"
    else:
        what = "could not do this because of an error of its own, which is logged"
    return Refusal(503, "unavailable", "the server", what, "try again later", retry_after_s=30)


def _of_http(request: Request, error: HTTPException) -> Refusal:
    if isinstance(error.__cause__, Refusal):  # raised while FastAPI read the body
        return error.__cause__
    if error.status_code == 404:
        return Refusal(404, "not-found", "the address", "is not one of this server's", "see /openapi.json")
    if error.status_code == 405:
        what = "does not take this method"
        return Refusal(405, "method", "the address", what, "see /openapi.json for the methods that it takes")
    title = HTTPStatus(error.status_code).phrase.lower()
    return Refusal(
        415 if error.status_code == 415 else 400,
        "malformed",
        "the request",
        f"cannot be read ({title})",
        "see /openapi.json",
    )


def _of_error(error: KernelmarkError) -> Refusal:
    """A submission's own faults are told; those of the project's files only to whoever reads the log."""
    if isinstance(error, SubmissionError):
        return Refusal(422, "submission", error.where, error.what, error.remedy or "put it right, and submit again")
    return unexpected(error)
