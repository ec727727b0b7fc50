"""What organizers do to accounts, and that nobody does it to themselves or their team."""

from __future__ import annotations

import json

import pytest
from sqlalchemy import Connection, select

from kernelmark.server.accounts import accounts, operating
from kernelmark.server.accounts.names import TakenNames
from kernelmark.server.database import tables
from kernelmark.server.service import Service
from kernelmark.service.organizing import AccountChange
from kernelmark.service.refusal import Refusal
from tests.service_fixtures import NO_NAMES, make_principal

TEAMS = {"mate": "red", "other": "blue", "alone": None}
LEDGER = TakenNames(authors=frozenset({"Grace.Hopper"}), others=frozenset())


def test_an_organizer_changes_an_account_and_the_old_values_are_noted(service: Service) -> None:
    by = make_principal(service, "org", "organizer")
    make_principal(service, "ada", team="red")
    change = {"role": "assistant", "state": "banned", "team": "blue"}
    service.database.write(
        lambda c: accounts.change(c, 5, by, "ADA", NO_NAMES, AccountChange.model_validate(change))
    ).result()
    with service.database.read() as connection:
        row = accounts.find(connection, "ada")
        noted = connection.execute(select(tables.audit)).all()
    assert (row.role, row.state, row.team) == ("assistant", "banned", "blue")
    assert [(one.account, one.token, one.action, one.subject, json.loads(one.details)) for one in noted] == [
        ("org", by.token, "accounts role", "ada", {"old": "participant", "new": "assistant"}),
        ("org", by.token, "accounts state", "ada", {"old": "active", "new": "banned"}),
        ("org", by.token, "accounts team", "ada", {"old": "red", "new": "blue"}),
    ]


@pytest.mark.parametrize("team", ["Red", "r.e.d", "ada", "GraceHopper", "a b"])
def test_a_team_has_a_name_of_its_own(team: str, service: Service) -> None:
    by = make_principal(service, "org", "organizer")
    make_principal(service, "ada")
    make_principal(service, "bob", team="red")
    with pytest.raises(Refusal) as refused:
        service.database.write(lambda c: accounts.change(c, 5, by, "ada", LEDGER, AccountChange(team=team))).result()
    assert refused.value.code in ("name-taken", "bad-name")
    service.database.write(lambda c: accounts.change(c, 5, by, "ada", LEDGER, AccountChange(team="red"))).result()


def test_an_organizer_does_not_change_their_own_account(service: Service) -> None:
    """So there is an organizer as long as there was one."""
    by = make_principal(service, "org", "organizer")
    for change in ({"role": "participant"}, {"state": "banned"}, {"team": "red"}):
        with pytest.raises(Refusal, match="your own account; ask another organizer"):
            service.database.write(
                lambda c, change=change: accounts.change(
                    c, 5, by, "org", NO_NAMES, AccountChange.model_validate(change)
                )
            ).result()
    with pytest.raises(Refusal, match="your own account"):
        service.database.write(lambda c: accounts.link(c, 5, by, "org", "Grace.Hopper", LEDGER)).result()
    with pytest.raises(Refusal, match="your own account"):
        service.database.write(lambda c: accounts.sign_out(c, 5, by, "org")).result()


def test_nobody_acts_on_runs_of_their_own_or_their_team(service: Service) -> None:
    by = make_principal(service, "org", "organizer", "red")
    ids = {name: make_principal(service, name, team=team).account_id for name, team in TEAMS.items()}
    with service.database.read() as connection:
        for account, owner in [
            (by.account_id, "account:org"),
            (ids["mate"], "team:red"),
            (ids["mate"], "account:mate"),  # who joined the team later
            (ids["other"], "team:red"),  # who has left it
        ]:
            with pytest.raises(Refusal, match="is your own, or your team's"):
                accounts.refuse_own_run(connection, by, account or 0, owner)
        accounts.refuse_own_run(connection, by, ids["other"] or 0, "team:blue")
        accounts.refuse_own_run(connection, by, ids["alone"] or 0, "account:alone")


def test_an_account_without_runs_is_linked_to_an_author_of_the_ledger(service: Service) -> None:
    by = make_principal(service, "org", "organizer")
    make_principal(service, "grace2")
    service.database.write(lambda c: operating.pause(c, 5, by, "grace2", "too hot")).result()
    service.database.write(lambda c: accounts.link(c, 5, by, "grace2", "Grace.Hopper", LEDGER)).result()
    assert make_principal(service, "Grace.Hopper").account_id == 2
    with service.database.read() as connection:
        assert [pause.account for pause in operating.pauses(connection).items] == ["Grace.Hopper"], "it stays paused"
    make_principal(service, "mallory")
    with pytest.raises(Refusal) as refused:
        service.database.write(lambda c: accounts.link(c, 5, by, "mallory", "Grace.Hopper", LEDGER)).result()
    assert refused.value.code == "name-taken"
    with pytest.raises(Refusal) as refused:
        service.database.write(lambda c: accounts.link(c, 5, by, "mallory", "grace.hopper", LEDGER)).result()
    assert refused.value.code == "no-such-author", "spelled as the ledger has it"


def test_an_account_with_runs_is_linked_to_nobody(service: Service) -> None:
    by, ada = make_principal(service, "org", "organizer"), make_principal(service, "ada")
    service.database.write(lambda c: _submit(c, ada.account_id)).result()
    with pytest.raises(Refusal) as refused:
        service.database.write(lambda c: accounts.link(c, 5, by, "ada", "Grace.Hopper", LEDGER)).result()
    assert refused.value.code == "account-has-runs"


def _submit(connection: Connection, account: int | None) -> None:
    connection.execute(
        tables.sources.insert().values(sha256="0", language="py", source=b"", beside="[]", bytes=0, last_needed_ns=0)
    )
    text = dict.fromkeys(
        ("run", "idempotency_key", "request_sha256", "owner", "author", "name", "problem", "mode", "effort", "pool"),
        "x",
    )
    connection.execute(
        tables.submissions.insert().values(
            **text, account=account, source="0", job_class="people", received_ns=0, on_time=True
        )
    )
