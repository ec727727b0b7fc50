"""A fake server, and a folder for the user's own configuration."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kernelmark.client import connection, servers
from tests.unit.conftest import competition, invoke, no_settings, project, run
from tests.unit.service.client.fake import Fake

__all__ = ["competition", "invoke", "no_settings", "project", "run"]

ENDS = datetime(2030, 1, 1, tzinfo=UTC)
TOKEN = "kmt_" + "a" * 43


@pytest.fixture(autouse=True)
def own_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the client keeps what it keeps; pauses are short."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "configuration"))
    monkeypatch.setattr(connection, "_FIRST_PAUSE_S", 0.001)
    return tmp_path / "configuration/kernelmark"


@pytest.fixture
def fake() -> Iterator[Fake]:
    with Fake().serving() as server:
        yield server


@pytest.fixture
def signed_in(fake: Fake) -> Fake:
    """The fake server, by the name `bench`."""
    known = servers.KnownServer(
        origin=fake.origin, token=TOKEN, account="ada", ends=datetime.now(UTC) + timedelta(days=9)
    )
    servers.keep("bench", known)
    return fake
