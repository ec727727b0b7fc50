"""Whether the server lives, and whether it can take, grade and record submissions. `create_app` includes them."""

from __future__ import annotations

import asyncio
import os
import shutil

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict
from sqlalchemy import select
from starlette.responses import JSONResponse, Response

from kernelmark.server.database.tables import facts
from kernelmark.server.queue.admission import LEAST_FREE_BYTES
from kernelmark.server.record.recorder import Recorder
from kernelmark.server.service import Service
from kernelmark.server.web.dependencies import RequestRecorder, Serving

router = APIRouter(prefix="/health", tags=["health"])
_STEP_NS = 60 * 10**9  # how far the clock may have been set back


class Health(BaseModel):
    """What keeps the server from its work; nothing if all is well."""

    model_config = ConfigDict(frozen=True)

    problems: tuple[str, ...] = ()


@router.get("/live")
async def live() -> Health:
    """Whether the process answers at all."""
    return Health()


@router.get("/ready", responses={503: {"model": Health, "description": "It is not."}})
async def ready(service: Serving, recorder: RequestRecorder) -> Response:
    """Whether it can do its work; otherwise what is wrong. `kernelmark queue` tells organizers more."""
    found = Health(problems=tuple(await asyncio.to_thread(problems, service, recorder)))
    return JSONResponse(found.model_dump(mode="json"), 503 if found.problems else 200, {"Cache-Control": "no-store"})


def problems(service: Service, recorder: Recorder, *, with_paths: bool = False) -> list[str]:
    """What keeps the server from its work, in words that everybody may read unless they are `with_paths`."""
    found, settings = list[str](), service.project.settings
    with service.database.read() as connection:
        newest = connection.scalar(select(facts.c.value).where(facts.c.key == "received"))
    if newest is not None and service.clock.now_ns() < int(newest) - _STEP_NS:
        found.append("the clock was set back")
    if not recorder.ready.is_set():
        found.append("the ledgers are being compared with the database")
    for slug, why in sorted(recorder.problems().items()):
        text = f"recording of {slug} has stopped: {why}" if slug else why
        found.append(text if with_paths else text.replace(f"{settings.locate('results')}{os.sep}", ""))
    folders = [folder for folder in (settings.locate("results"), settings.locate("archive")) if folder.exists()]
    if not all(os.access(folder, os.W_OK) for folder in folders):
        found.append("the ledgers cannot be written")
    if shutil.disk_usage(settings.root).free < LEAST_FREE_BYTES:
        found.append("the disk is nearly full")
    return found
