"""The web application: its routes behind its defence, and its OpenAPI document. `process` serves it; tests call it."""

from __future__ import annotations

from fastapi import APIRouter, FastAPI

from kernelmark import __version__
from kernelmark.server.record.recorder import Recorder
from kernelmark.server.service import Service
from kernelmark.server.web import account, errors, health, organizers, public, submissions, work
from kernelmark.server.web.defence import API, Defence

ROUTERS: tuple[APIRouter, ...] = (
    account.router,
    organizers.router,
    public.router,
    submissions.router,
    work.router,
)
"""Of the API."""


def create_app(service: Service, recorder: Recorder) -> FastAPI:
    """The application of one server, whose parts run already."""
    app = FastAPI(title="kernelmark", version=__version__, openapi_url="/openapi.json", docs_url=None, redoc_url=None)
    app.state.service, app.state.recorder = service, recorder
    app.add_middleware(Defence, service=service)
    errors.install(app)
    for router in ROUTERS:
        app.include_router(router, prefix=API, responses=errors.RESPONSES)
    app.include_router(account.page)
    app.include_router(health.router)
    errors.describe(app, submissions.DOCUMENTS)
    return app
