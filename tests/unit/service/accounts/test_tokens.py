"""Tokens: only their hash is kept, and they end by themselves, with their parent and with their account."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing

import pytest
from sqlalchemy import Connection, update

from kernelmark.server.accounts import tokens
from kernelmark.server.accounts.principal import OWN_SCOPES, Principal, TokenScope
from kernelmark.server.database import tables
from kernelmark.server.service import Service
from tests.service_fixtures import (
    START_NS,
    FakeClock,
    make_principal,
    make_token,
    make_worker_token,
    principal_of,
)


def test_a_token_names_its_account_and_what_it_may(service: Service) -> None:
    found = principal_of(service, make_token(service, "ada", "assistant", "red"))
    assert (found.name, found.role, found.team, found.worker) == ("ada", "assistant", "red", None)
    assert found.has("assist")
    assert not found.has("organize")
    assert not found.has("work")


def test_a_worker_may_claim_and_answer_and_nothing_else(service: Service) -> None:
    found = principal_of(service, make_worker_token(service, "gpu1"))
    assert found == Principal(None, "gpu1", None, None, found.token, frozenset({"work"}), "gpu1")


def test_the_secret_is_not_in_the_database(service: Service) -> None:
    secret = make_token(service)
    assert secret.startswith("kmt_")
    with closing(sqlite3.connect(service.database.path)) as connection:
        assert not any(secret[4:] in line for line in connection.iterdump())


@pytest.mark.parametrize("given", ["", "kmt_", "kmt_" + "A" * 43, "kmi_" + "A" * 43, "\0", "x" * 100_000])
def test_what_is_no_token_is_nobody(given: str, service: Service) -> None:
    make_token(service)
    assert _authenticated(service, given) is None


def _banned(connection: Connection) -> None:
    connection.execute(update(tables.accounts).values(state="banned"))


def _revoked(connection: Connection) -> None:
    assert tokens.revoke(connection, START_NS, tables.tokens.c.label == "the parent") == [1]


ENDS: dict[str, Callable[[Connection], object]] = {"banned": _banned, "revoked": _revoked}


@pytest.mark.parametrize("how", ENDS)
def test_a_token_and_what_was_made_with_it_end_together(how: str, service: Service) -> None:
    parent, child, other = _family(service)
    assert _authenticated(service, child) is not None, "the honest twin: until then it counts"
    service.database.write(ENDS[how]).result()
    assert _authenticated(service, parent) is None
    assert _authenticated(service, child) is None
    assert (_authenticated(service, other) is None) == (how == "banned"), "another token of the account stays"


def test_a_token_ends_after_90_days_and_none_made_with_it_later(service: Service, clock: FakeClock) -> None:
    parent, child, _ = _family(service)
    clock.pass_s(90 * 86_400 - 1)
    assert _authenticated(service, parent) is not None
    assert _authenticated(service, child) is not None
    clock.pass_s(1)
    assert _authenticated(service, parent) is None
    assert _authenticated(service, child) is None


def test_a_token_loses_what_the_role_loses_and_gains_nothing_by_a_new_one(service: Service) -> None:
    secret = make_token(service, role="assistant")
    for role, wanted in (("participant", OWN_SCOPES), ("organizer", OWN_SCOPES | {"assist"})):
        service.database.write(lambda c, role=role: c.execute(update(tables.accounts).values(role=role))).result()
        assert principal_of(service, secret).scopes == wanted


def test_its_last_use_is_written_at_most_once_a_minute(service: Service, clock: FakeClock) -> None:
    secret = make_token(service)
    seen = list[int | None]()
    for _ in range(4):
        found = principal_of(service, secret)
        tokens.note_use(service, found)
        service.database.write(lambda _: None).result()  # after what waited
        seen.append(found.used_ns)
        clock.pass_s(30)
    assert seen == [None, START_NS, START_NS, START_NS + 60 * 10**9]


def _family(service: Service) -> tuple[str, str, str]:
    """A token, one that was made with it and was to live longer, and another one of the account."""
    owner = make_principal(service, "ada")
    account = owner.account_id
    scopes: frozenset[TokenScope] = frozenset({"read"})

    def made(connection: Connection) -> tuple[str, str, str]:
        connection.execute(tables.tokens.delete())
        now_ns = service.clock.now_ns()
        parent = tokens.make(connection, now_ns, "client", account=account, scopes=scopes, label="the parent")
        child = tokens.make(connection, now_ns, "client", account=account, scopes=scopes, parent=1, days=365)
        return parent, child, tokens.make(connection, now_ns, "client", account=account, scopes=scopes, days=365)

    return service.database.write(made).result()


def _authenticated(service: Service, secret: str) -> Principal | None:
    with service.database.read() as connection:
        return tokens.authenticate(connection, secret, service.clock.now_ns())
