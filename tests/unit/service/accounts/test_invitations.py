"""Ways in: the first link, invitations of organizers, and which names and scopes they give."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import NamedTuple

import pytest
from sqlalchemy import select, update

from kernelmark.server.accounts import invitations, names, tokens
from kernelmark.server.accounts.names import TakenNames
from kernelmark.server.accounts.principal import OWN_SCOPES, SCOPES, Principal
from kernelmark.server.database import tables
from kernelmark.server.service import Service
from kernelmark.service.accounts import AccountRole, InvitationAcceptance
from kernelmark.service.organizing import InvitationOrder
from kernelmark.service.refusal import Refusal
from leaderboard.record.ledger import JsonlLedger
from leaderboard.record.teams import Teams
from tests.service_fixtures import FakeClock, make_principal, make_project, principal_of
from tests.verdicts import accepted

LEDGER = TakenNames(authors=frozenset({"Grace.Hopper"}), others=frozenset({"eager", "Red_Team"}))


def test_the_first_link_makes_an_organizer_and_then_there_is_none(service: Service) -> None:
    accepted = _accept(service, _first(service), "grace")
    found = principal_of(service, accepted.secret)
    assert (found.name, found.role, found.scopes) == ("grace", "organizer", SCOPES["organizer"])
    tokens.note_use(service, found)
    now_ns = service.clock.now_ns()
    assert service.database.write(lambda c: invitations.first(c, now_ns)).result() is None
    link = service.database.write(lambda c: invitations.first(c, now_ns, lost=True)).result()
    assert link is not None, "if whoever starts the server says that the token is lost"
    again = principal_of(service, _accept(service, link, "grace").secret)
    assert (again.name, again.role) == ("grace", "organizer")


def test_each_start_makes_another_first_link_and_ends_the_one_before(service: Service, clock: FakeClock) -> None:
    before = _first(service)
    link = _first(service)
    _refused(service, before, "mallory", "invitation-ended")
    clock.pass_s(86_400)
    _refused(service, link, "late", "invitation-ended")


def test_whoever_lost_the_answer_to_the_first_link_comes_back_by_the_next(service: Service, clock: FakeClock) -> None:
    lost = _accept(service, _first(service), "grace")
    again = _accept(service, _first(service), "grace")
    assert again.account == lost.account
    tokens.note_use(service, principal_of(service, again.secret))
    clock.pass_s(90 * 86_400)
    assert _accept(service, _first(service), "Grace").account == lost.account, "when all tokens have ended, too"


def test_the_first_link_does_not_take_over_a_participant(service: Service) -> None:
    make_principal(service, "ada")
    _refused(service, _first(service), "ada", "name-taken")


def test_an_invitation_is_used_once(service: Service) -> None:
    link = _invite(service)
    accepted = _accept(service, link, "ada")
    assert principal_of(service, accepted.secret).scopes == OWN_SCOPES
    assert (accepted.role, accepted.team) == ("participant", None)
    _refused(service, link, "bob", "invitation-used")
    _refused(service, link, "ada", "invitation-used")


def test_an_invitation_is_used_once_by_many_at_the_same_time(service: Service) -> None:
    link, now_ns = _invite(service), service.clock.now_ns()
    asked = [
        service.database.write(lambda c, name=name: invitations.accept(c, now_ns, _acceptance(link, name), LEDGER))
        for name in ("ada", "bob", "eve")
    ]
    assert [getattr(one.exception(), "code", None) for one in asked] == [None, "invitation-used", "invitation-used"]


def test_an_invitation_that_was_refused_can_still_be_used(service: Service) -> None:
    link = _invite(service)
    _refused(service, link, None, "name-needed")
    _refused(service, link, "no name", "bad-name")
    _refused(service, link, "eager", "name-taken")
    assert _accept(service, link, "ada").name == "ada"


def test_an_invitation_gives_its_role_team_and_name(service: Service) -> None:
    link = _invite(service, role="organizer", team="blue", name="linus")
    _refused(service, link, "mallory", "other-name")
    accepted = _accept(service, link, None)
    assert (accepted.name, accepted.role, accepted.team) == ("linus", "organizer", "blue")
    assert principal_of(service, accepted.secret).has("organize")


@pytest.mark.parametrize(("asked", "team"), [({}, "red"), ({"team": "blue"}, "blue")])
def test_a_member_of_a_team_of_the_settings_has_an_account_in_it(
    asked: dict[str, str], team: str, service: Service
) -> None:
    taken = TakenNames(frozenset({"linus"}), frozenset({"red"}), Teams({"red": ("linus",)}))
    link, now_ns = _invite(service, name="linus", **asked), service.clock.now_ns()
    secret = service.database.write(lambda c: invitations.accept(c, now_ns, _acceptance(link, None), taken)).result()
    assert principal_of(service, secret).team == team


def test_only_an_invitation_that_says_so_gives_the_scopes_of_an_organizer(service: Service) -> None:
    """A participant's invitation gives none, even if the account has become an organizer's meanwhile."""
    make_principal(service, "ada")
    back = _invite(service, account="ada")
    service.database.write(
        lambda c: c.execute(update(tables.accounts).where(tables.accounts.c.name == "ada").values(role="organizer"))
    ).result()
    assert principal_of(service, _accept(service, back, None).secret).scopes == OWN_SCOPES
    assert principal_of(service, _accept(service, _invite(service, account="ada"), None).secret).has("organize")


def test_an_invitation_ends(service: Service, clock: FakeClock) -> None:
    link = _invite(service)
    clock.pass_s(14 * 86_400)
    _refused(service, link, "ada", "invitation-ended")


def _revoked(service: Service) -> None:
    service.database.write(lambda c: tokens.revoke(c, 1, tables.tokens.c.kind == "client")).result()


def _organizer_becomes(**values: str) -> Callable[[Service], None]:
    changed = update(tables.accounts).where(tables.accounts.c.name == "org").values(**values)
    return lambda service: service.database.write(lambda c: c.execute(changed).rowcount == 1).result() or None


@pytest.mark.parametrize("how", [_revoked, _organizer_becomes(state="banned"), _organizer_becomes(role="participant")])
def test_an_invitation_ends_with_its_makers_token_and_office(how: Callable[[Service], None], service: Service) -> None:
    used, link = _invite(service, role="organizer"), _invite(service, role="organizer")
    assert _accept(service, used, "twin").role == "organizer"
    how(service)
    _refused(service, link, "mallory", "invitation-ended")


def test_who_is_banned_does_not_come_back_by_an_invitation(service: Service) -> None:
    make_principal(service, "ada")
    link = _invite(service, account="ada")
    service.database.write(
        lambda c: c.execute(update(tables.accounts).where(tables.accounts.c.name == "ada").values(state="banned"))
    ).result()
    _refused(service, link, None, "banned")


@pytest.mark.parametrize(
    "name", ["ada", "ADA", "a.d-a_", "Red-Team", "red_team", "eager", "Ea.ger", "Grace-Hopper", "blue"]
)
def test_nobody_takes_a_name_that_looks_like_anothers(name: str, service: Service) -> None:
    make_principal(service, "Ada", team="Blue")
    _refused(service, _invite(service), name, "name-taken")


@pytest.mark.parametrize("name", ["", "a b", "-a", "a" * 65, "../x", "a\n", "ａda", "a/b", "\x1b[31m"])
def test_a_malformed_name_is_refused(name: str, service: Service) -> None:
    _refused(service, _invite(service), name, "bad-name")


def test_an_organizer_gives_a_name_that_the_ledger_has(service: Service) -> None:
    """The honest twin: who has recorded runs already keeps the name, by an invitation to just that person."""
    assert _accept(service, _invite(service, name="Grace.Hopper"), None).name == "Grace.Hopper"


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"name": "eager"}, "name-taken"),
        ({"name": "a b"}, "bad-name"),
        ({"name": "bob", "count": 2}, "one-account"),
        ({"account": "nobody"}, "no-such-account"),
        ({"account": "org", "role": "assistant"}, "account-exists"),
        ({"account": "org", "team": "red"}, "account-exists"),
        ({"team": "org"}, "name-taken"),
        ({"team": "red team"}, "bad-name"),
        ({"team": "GraceHopper"}, "name-taken"),
    ],
)
def test_an_invitation_that_could_not_be_used_is_not_made(
    asked: dict[str, object], code: str, service: Service
) -> None:
    with pytest.raises(Refusal) as refused:
        _invite(service, **asked)
    assert refused.value.code == code


def test_the_names_of_a_project_are_those_of_its_ledgers_teams_and_kernels(service: Service) -> None:
    root = service.project.root
    JsonlLedger(root / "leaderboard/results/twice.jsonl").append(accepted(author="linus", problem="twice"))
    (root / "reference/twice").mkdir(parents=True)
    (root / "reference/twice/compiled.py").touch()
    project = make_project(root.parent / "other", 'teams = { red = ["ada", "bob"] }')
    assert names.taken_names(service.project) == TakenNames(frozenset({"linus"}), frozenset({"compiled"}))
    found = names.taken_names(project)
    assert found[:2] == (frozenset({"ada", "bob"}), frozenset({"red"}))
    assert found.teams.name_of("ada") == "red"


def test_what_invitations_did_is_audited_without_their_secrets(service: Service) -> None:
    link = _invite(service, role="assistant")
    accepted = _accept(service, link, "ada")
    with service.database.read() as connection:
        rows = connection.execute(select(tables.audit)).all()
    assert [(row.account, row.action, row.subject) for row in rows] == [
        ("org", "invitations make", ""),
        (None, "invitations accept", "ada"),
    ]
    assert json.loads(rows[0].details)["role"] == "assistant"
    assert not any(secret in str(rows) for secret in (link, accepted.secret))


def _organizer(service: Service) -> Principal:
    return make_principal(service, "org", "organizer")


def _first(service: Service) -> str:
    made = service.database.write(lambda c: invitations.first(c, service.clock.now_ns())).result()
    assert made is not None
    return made


def _invite(service: Service, **asked: object) -> str:
    by, now_ns, order = _organizer(service), service.clock.now_ns(), InvitationOrder.model_validate(asked)
    made = service.database.write(lambda c: invitations.make(c, now_ns, by, LEDGER, order)).result()
    return made[0][0]


class Accepted(NamedTuple):
    account: int | None
    name: str
    role: AccountRole | None
    team: str | None
    secret: str


def _accept(service: Service, link: str, name: str | None) -> Accepted:
    now_ns, acceptance = service.clock.now_ns(), _acceptance(link, name)
    secret = service.database.write(lambda c: invitations.accept(c, now_ns, acceptance, LEDGER)).result()
    account = principal_of(service, secret)
    return Accepted(account.account_id, account.name, account.role, account.team, secret)


def _acceptance(link: str, name: str | None) -> InvitationAcceptance:
    # The routes refuse a name that is too long before; so does what is tested here.
    return InvitationAcceptance.model_construct(secret=link, name=name, label="laptop")


def _refused(service: Service, link: str, name: str | None, code: str) -> None:
    with pytest.raises(Refusal) as refused:
        _accept(service, link, name)
    assert refused.value.code == code
