"""Clients of the application: of accounts, of workers, and of nobody."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from kernelmark.server.app import create_app
from kernelmark.server.record.recorder import Recorder
from kernelmark.server.service import Service
from tests.service_fixtures import make_token, make_worker_token

Asks = Callable[..., TestClient]


@pytest.fixture
def recorder(service: Service) -> Iterator[Recorder]:
    """One that is not started, and says that work may be given out."""
    made = Recorder(service)
    made.ready.set()
    yield made
    made.close()


@pytest.fixture
def app(service: Service, recorder: Recorder) -> FastAPI:
    return create_app(service, recorder)


@pytest.fixture
def client(service: Service, app: FastAPI) -> Asks:
    """A client with a token of the account of this name, or of nobody."""

    def made(name: str | None = None, **account: str) -> TestClient:
        headers = {} if name is None else {"Authorization": f"Bearer {make_token(service, name, **account)}"}  # type: ignore[arg-type]
        return TestClient(app, base_url=service.url, headers=headers)

    return made


@pytest.fixture
def worker(service: Service, app: FastAPI) -> TestClient:
    """A client with a token of a worker."""
    headers = {"Authorization": f"Bearer {make_worker_token(service)}"}
    return TestClient(app, base_url=service.url, headers=headers)
