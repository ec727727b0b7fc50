"""The routes of submissions: to send them, to follow, read and cancel one's own, and those of results and the queue.

Thin: the modules of `queue` decide. What is another's is answered as if it were not there.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import takewhile
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query, Request
from sqlalchemy import Connection, Row, or_, select
from starlette.responses import Response

from harness.submission import MAX_BESIDE
from harness.verdict import RUN_ID
from kernelmark.server.accounts import audit
from kernelmark.server.accounts.accounts import owner_of
from kernelmark.server.accounts.principal import Principal
from kernelmark.server.changes import wait
from kernelmark.server.database.tables import gradings, sources, submissions
from kernelmark.server.queue import endings, status
from kernelmark.server.queue.admission import admit
from kernelmark.server.record import boards, selecting
from kernelmark.server.record.sources import stored_files
from kernelmark.server.service import Service
from kernelmark.server.web import health, received
from kernelmark.server.web.dependencies import BatchSubmitter, Reader, RequestRecorder, Serving, Submitter
from kernelmark.service.refusal import Refusal
from kernelmark.service.submissions import (
    ENDED,
    LineAnswer,
    NamedText,
    QueueStatus,
    Result,
    SelectedRuns,
    SelectionRequest,
    Slug,
    SourceDocument,
    SubmissionRequest,
    Submissions,
    SubmissionStatus,
)

WAIT_S = 25.0
_TOGETHER = 32  # submissions of a batch in one change
_KEY = r"^[\x21-\x7e]{1,100}$"
_LINES = "application/x-ndjson"
router = APIRouter(tags=["submissions"])

RunPath = Annotated[str, Path(pattern=RUN_ID)]
DOCUMENTS = (SubmissionRequest, LineAnswer, Result)
"""What the routes take and answer beyond the models of their functions."""
_FILE = {"type": "string", "contentMediaType": "application/octet-stream"}
_FORM = {
    "type": "object",
    "required": ["problem", "file"],
    "properties": {
        "file": _FILE,
        "with": {"type": "array", "items": _FILE, "maxItems": MAX_BESIDE},
        **{name: {"type": "string"} for name in received.FIELDS},
    },
}
_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": {"$ref": "#/components/schemas/SubmissionRequest"}},
            "multipart/form-data": {"schema": _FORM},
            _LINES: {"schema": {"type": "string"}},
        },
    }
}
_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"model": SubmissionStatus, "description": "It was there already.", "content": {_LINES: {}}},
}


@router.post("/submissions", status_code=202, response_model=SubmissionStatus, responses=_ANSWERS, openapi_extra=_BODY)
async def submit(
    request: Request,
    service: Serving,
    principal: Submitter,
    idempotency_key: Annotated[str | None, Header(pattern=_KEY)] = None,
) -> Response:
    """Submit a kernel: as JSON, or as a form with `problem`, `file` and, for each file beside it, `with`.

    202: accepted, which means that it is on the disk. 200: it was there already, by its key or, within a day, by its
    source. With lines of JSON (`application/x-ndjson`), up to 256 are submitted at once; there is one answer a line.
    """
    body = await request.body()
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    key = idempotency_key or secrets.token_hex(16)
    if kind == _LINES:
        return await _submit_lines(service, principal, body, key)
    if kind == "application/json":
        asked = await asyncio.to_thread(received.document, body)
    elif kind == "multipart/form-data":
        asked = await received.form(request.headers, body)
    else:
        what = f"is none of application/json, multipart/form-data and {_LINES}"
        raise Refusal(415, "media-type", "Content-Type", what, "see /openapi.json")
    if asked.batch is not None:
        _refuse_without_batch(principal)
    run, created = await service.change(_admission(service, principal, asked, key))
    document = await service.read(lambda connection: status.status(connection, service, run))
    headers = {"Location": f"{service.url}/api/v1/submissions/{run}"}
    return _json(document.model_dump_json(), 202 if created else 200, headers)


async def _submit_lines(service: Service, principal: Principal, body: bytes, key: str) -> Response:
    _refuse_without_batch(principal)
    asked = [*enumerate(await asyncio.to_thread(lambda: [*received.lines(body)]), 1)]
    answers = list[LineAnswer]()
    for begin in range(0, len(asked), _TOGETHER):
        answers += await _line_answers(service, principal, asked[begin : begin + _TOGETHER], key)
    first = answers[0].refusal
    if first is not None and first.status == 429 and all(one.status == 429 for one in answers):
        again = {"Retry-After": str(first.retry_after_s or 60)}
        return Response(first.model_dump_json(), 429, again, "application/problem+json")
    return Response("".join(f"{one.model_dump_json()}\n" for one in answers), 200, media_type=_LINES)


async def _line_answers(
    service: Service, principal: Principal, asked: Sequence[tuple[int, SubmissionRequest | Refusal]], key: str
) -> list[LineAnswer]:
    """What becomes of some lines, which are committed together."""

    async def admitted(line: int, one: SubmissionRequest | Refusal) -> tuple[str, bool] | Refusal:
        if isinstance(one, Refusal):
            return one
        try:
            return await service.change(_admission(service, principal, one, f"{key}:{line}"))
        except Refusal as refusal:
            return refusal

    made = await asyncio.gather(*(admitted(line, one) for line, one in asked))
    runs = [one[0] for one in made if not isinstance(one, Refusal)]
    told = iter(await service.read(lambda connection: status.statuses(connection, service, runs)))
    return [
        LineAnswer(line=line, status=one.status, refusal=one.document)
        if isinstance(one, Refusal)
        else LineAnswer(line=line, status=202 if one[1] else 200, submission=next(told))
        for (line, _), one in zip(asked, made, strict=True)
    ]


@router.get("/submissions")
async def own(
    service: Serving,
    principal: Reader,
    last: Annotated[int, Query(ge=1, le=500)] = 20,
    open: Annotated[bool, Query()] = False,  # noqa: A002 - as the address has it
    problem: Slug | None = None,
    standings: Annotated[bool, Query()] = False,
) -> Submissions:
    """The newest submissions of one's account, or team; on one problem, if it is named."""

    def look(connection: Connection) -> Submissions:
        mine = select(submissions.c.run).where(_mine(principal)).order_by(submissions.c.received_ns.desc()).limit(last)
        if problem is not None:
            mine = mine.where(submissions.c.problem == problem)
        if open:
            unseen = gradings.c.visible_ns > service.clock.now_ns()
            mine = mine.join(gradings, gradings.c.run == submissions.c.run)
            mine = mine.where(gradings.c.state.not_in(ENDED) | unseen)
        return Submissions(items=tuple(status.statuses(connection, service, connection.scalars(mine).all())))

    found = await service.read(look)
    if not standings:
        return found
    slugs = {one.problem for one in found.items if one.state == "recorded"}
    stands = await asyncio.to_thread(boards.standings, service, slugs)
    placed = (one.model_copy(update={"standing": stands.get(one.run, "")}) for one in found.items)
    return Submissions(items=tuple(placed))


@router.get("/submissions/{run}")
async def follow(
    service: Serving,
    principal: Reader,
    run: RunPath,
    after: Annotated[int | None, Query(ge=0, le=2**53)] = None,
    wait_s: Annotated[float, Query(ge=0, le=WAIT_S)] = 0,
) -> SubmissionStatus:
    """One submission; with `after`, as soon as its version is larger, or when the time is over."""

    def look(connection: Connection) -> SubmissionStatus:
        _visible(connection, principal, run)
        return status.status(connection, service, run, organizes=principal.has("organize"))

    with _waiting(service, principal, wait_s if after is not None else 0) as end:
        while True:
            change = service.changes.subscribe(f"run:{run}")
            try:
                document = await service.read(look)
                left_s = end - asyncio.get_running_loop().time()
                if after is None or document.version > after or left_s <= 0 or service.changes.closed:
                    return document
                if not await wait(change, left_s):
                    return await service.read(look)
            finally:
                change.cancel()


@router.get(
    "/submissions/{run}/verdict", response_class=Response, responses={200: {"content": {"application/json": {}}}}
)
async def verdict(service: Serving, principal: Reader, run: RunPath) -> Response:
    """The verdict, or the check, of a submission, exactly as the worker wrote it."""

    def look(connection: Connection) -> Row[Any]:
        _visible(connection, principal, run)
        return connection.execute(select(gradings).where(gradings.c.run == run)).one()

    row = await service.read(look)
    if row.ended_ns is None or row.answer is None or not endings.is_shown(row, service.clock.now_ns()):
        raise Refusal(404, "no-verdict", f"run {run}", "has no verdict", "ask again when it has ended")
    return _json(row.answer, 200)


@router.get("/submissions/{run}/source")
async def source(service: Serving, principal: Reader, run: RunPath) -> SourceDocument:
    """The files of a submission. An organizer's or assistant's look at another's is noted."""

    def look(connection: Connection) -> tuple[SourceDocument, bool]:
        row = _visible(connection, principal, run)
        stored = connection.execute(select(sources).where(sources.c.sha256 == row.source)).one()
        if not stored.source:
            remedy = "what is recorded is in the project's archive"
            raise Refusal(410, "source-dropped", f"run {run}", "has no source here any more", remedy)
        beside = ((one.name, one.content) for one in stored_files(stored.beside))
        texts = (NamedText(name=name, content=raw.decode()) for name, raw in ((row.name, stored.source), *beside))
        return SourceDocument(language=stored.language, files=tuple(texts)), _owns(principal, row)

    document, is_own = await service.read(look)
    if not is_own:
        now_ns = service.clock.now_ns()
        await service.change(lambda connection: audit.note(connection, now_ns, principal, "source read", run))
    return document


@router.delete("/submissions/{run}")
async def cancel(service: Serving, principal: Submitter, run: RunPath) -> SubmissionStatus:
    """Cancel a submission. Of one that was never tried nothing is charged; of another, what it took."""
    await service.change(lambda connection: endings.cancel(connection, service, run, principal))
    return await service.read(lambda connection: status.status(connection, service, run))


@router.put("/selection")
async def choose(service: Serving, principal: Submitter, asked: SelectionRequest) -> SelectedRuns:
    """Select which runs of one's account, or team, on a problem count once it is closed; again replaces it."""
    return await asyncio.to_thread(selecting.select, service, principal, asked)


@router.get("/queue")
async def queue(service: Serving, recorder: RequestRecorder, principal: Reader) -> QueueStatus:
    """How much waits, and for which devices. Organizers are told what keeps the server from its work."""
    found = await service.read(lambda connection: status.overview(connection, service))
    if not principal.has("organize"):
        return found
    problems = await asyncio.to_thread(health.problems, service, recorder, with_paths=True)
    return found.model_copy(update={"problems": tuple(problems)})


@router.get("/results", response_class=Response, responses={200: {"content": {_LINES: {}}}})
async def results(
    service: Serving,
    principal: BatchSubmitter,
    after: Annotated[int, Query(ge=0, le=2**53)] = 0,
    last: Annotated[int, Query(ge=1, le=1000)] = 256,
    wait_s: Annotated[float, Query(ge=0, le=WAIT_S)] = 0,
) -> Response:
    """Gradings of one's account that ended after a cursor, as lines of JSON; if there are none, the next that ends."""
    columns = gradings.c
    wanted = (
        select(gradings, submissions.c.batch)
        .join(submissions, submissions.c.run == columns.submission)
        .where(columns.account == principal.account_id, columns.cursor > after)
        .order_by(columns.cursor)
        .limit(last)
    )
    with _waiting(service, principal, wait_s) as end:
        while True:
            change = service.changes.subscribe("queue")
            try:
                found = await service.read(lambda connection: connection.execute(wanted).all())
                # None is passed over that is shown later.
                rows = [*takewhile(lambda row: endings.is_shown(row, service.clock.now_ns()), found)]
                left_s = end - asyncio.get_running_loop().time()
                if rows or left_s <= 0 or service.changes.closed or not await wait(change, left_s):
                    return Response("".join(f"{_result(row).model_dump_json()}\n" for row in rows), media_type=_LINES)
            finally:
                change.cancel()


@contextmanager
def _waiting(service: Service, principal: Principal, wait_s: float) -> Iterator[float]:
    """Yields when, by the event loop's clock, a request is answered at the latest: at once, if too many wait."""
    begin = asyncio.get_running_loop().time()
    if not wait_s:
        yield begin
        return
    assert principal.account_id is not None  # workers have no scope to read
    with service.changes.accounts.one_of(principal.account_id) as may_wait:
        yield begin + (wait_s if may_wait else 0)


def _result(row: Row[Any]) -> Result:
    return Result(
        cursor=row.cursor,
        run=row.run,
        submission=row.submission,
        problem=row.problem,
        mode=row.mode,
        batch=row.batch,
        state=row.state,
        outcome=row.outcome,
        score_s=None if row.score_s is None else float(row.score_s),
        error_class=row.error_class or "",
    )


def _admission(
    service: Service, principal: Principal, asked: SubmissionRequest, key: str
) -> Callable[[Connection], tuple[str, bool]]:
    name, digest = f"submission.{asked.language}", received.request_sha256(asked)
    return lambda connection: admit(connection, service, principal, asked, name, key, digest)


def _visible(connection: Connection, principal: Principal, run: str) -> Row[Any]:
    """The row of a submission that this account may see.

    Raises:
        Refusal: there is none, or it is another's.
    """
    row = connection.execute(select(submissions).where(submissions.c.run == run)).one_or_none()
    if row is None or not (_owns(principal, row) or principal.has("assist")):
        raise Refusal(404, "no-such-run", f"run {run}", "is not known here", "`kernelmark queue` lists yours")
    return row


def _owns(principal: Principal, row: Row[Any]) -> bool:
    return bool(row.account == principal.account_id or row.owner == owner_of(principal))


def _mine(principal: Principal) -> Any:
    return or_(submissions.c.account == principal.account_id, submissions.c.owner == owner_of(principal))


def _refuse_without_batch(principal: Principal) -> None:
    if not principal.has("batch"):
        what = "does not have the scope `batch`"
        raise Refusal(403, "scope", "the token", what, "make one that has it with `kernelmark tokens make`")


def _json(document: str, status_code: int, headers: dict[str, str] | None = None) -> Response:
    return Response(document, status_code, headers, "application/json")
