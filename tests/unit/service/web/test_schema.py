"""Every route, asked what its own OpenAPI document allows and what it does not, by everybody who may ask.

Schemathesis draws the requests. None may end in an error of the server, and every answer is as the document says.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from kernelmark.server.app import create_app
from kernelmark.server.record.recorder import Recorder
from kernelmark.server.service import Service
from kernelmark.service.accounts import AccountRole
from tests.service_fixtures import FakeClock, make_project, make_service, make_token, make_worker_token

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
ROLES: dict[str, AccountRole] = {"participant": "participant", "assistant": "assistant", "organizer": "organizer"}
_CI = settings(
    max_examples=5, derandomize=True, deadline=None, database=None, phases=[Phase.generate],
    suppress_health_check=[*HealthCheck],
)  # fmt: skip


@schemathesis.serializer("application/x-ndjson")
def as_lines(_: Any, value: object) -> bytes:
    return value.encode() if isinstance(value, str) else json.dumps(value).encode()


@pytest.fixture(scope="module")
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, clock: FakeClock) -> Iterator[Service]:
    made = make_service(make_project(tmp_path_factory.mktemp("fuzzed") / "project"), clock)
    made.changes.close()  # so that nobody waits
    yield made
    made.database.close()


@pytest.fixture(scope="module")
def schema(service: Service) -> Iterator[Any]:
    recorder = Recorder(service)
    recorder.ready.set()
    app = create_app(service, recorder)
    made = schemathesis.openapi.from_dict(app.openapi())
    made.app = app
    yield made
    recorder.close()


def headers(service: Service, who: str) -> dict[str, str]:
    """What somebody sends who may ask so; a token of its own, since the one before may have been revoked."""
    if who == "nobody":
        return {}
    token = make_worker_token(service) if who == "worker" else make_token(service, who, ROLES[who])
    return {"Authorization": f"Bearer {token}"}


def ask(operation: Any, mode: GenerationMode, url: str, sent: dict[str, dict[str, str]]) -> Counter[tuple[str, int]]:
    """Ask one route a few times, each time as everybody; who got an answer of which status, how often.

    To draw a request takes longer than to answer it, and the draws are the same for all.
    """
    answered: Counter[tuple[str, int]] = Counter()

    @settings(_CI)
    @given(operation.as_strategy(generation_mode=mode))
    def once(case: schemathesis.Case) -> None:
        for who, headers in sent.items():
            response = case.call(base_url=url, headers=headers)
            case.validate_response(response, checks=CHECKS)
            assert response.status_code < 500
            assert "Traceback" not in response.text
            answered[who, response.status_code] += 1

    with suppress(Unsatisfiable):  # without parameters, nothing can be malformed
        once()
    return answered


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["allowed", "malformed"])
def test_no_request_ends_in_an_error_of_the_server(
    service: Service, clock: FakeClock, schema: Any, mode: GenerationMode
) -> None:
    everybody = ("nobody", *ROLES, "worker")
    asked: Counter[tuple[str, int]] = Counter()
    for operation in schema.get_all_operations():
        clock.pass_s(61)  # so that none is asked too often
        asked.update(ask(operation.ok(), mode, service.url, {who: headers(service, who) for who in everybody}))
    for who in everybody:
        total = sum(count for (asking, _), count in asked.items() if asking == who)
        assert total > 100
        assert asked[who, 421] == 0
        assert asked[who, 401] < total / 2 or who == "nobody", "it was let in"
