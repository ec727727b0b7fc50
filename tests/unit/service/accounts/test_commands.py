"""The commands of organizers and of tokens, against a server of this machine."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernelmark.client import servers
from kernelmark.server.accounts import invitations
from kernelmark.server.service import Service
from tests.service_fixtures import serving
from tests.unit.conftest import Command, Said

As = Callable[..., Said]


@pytest.fixture
def origin(service: Service, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.chdir(service.project.root)
    with serving(service) as served:
        yield served.url


@pytest.fixture
def as_(origin: str, no_settings: None, invoke: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> As:
    """`kernelmark` as a person of this name, whose configuration is nobody else's; it must succeed."""

    def command(who: str, *arguments: str, status: int = 0) -> Said:
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / who))
        result = invoke(*arguments)
        assert result.code == status, result.err
        return result

    return command


@pytest.fixture
def organizer(service: Service, origin: str, as_: As) -> str:
    """The first organizer, who is signed in."""
    secret = service.database.write(lambda c: invitations.first(c, service.clock.now_ns())).result()
    as_("grace", "login", f"{origin}/join#{secret}", "--name", "grace")
    return "grace"


def test_a_class_comes_in_and_an_organizer_sees_and_changes_it(as_: As, organizer: str) -> None:
    sheet = as_(organizer, "invitations", "make", "--count", "3", "--team", "red", "--csv").out
    rows = list(csv.DictReader(sheet.splitlines()))
    assert [(row["role"], row["name"], row["team"]) for row in rows] == [("participant", "", "red")] * 3
    as_("ada", "login", rows[0]["link"], "--name", "ada")
    assert "was used already" in as_("eve", "login", rows[0]["link"], "--name", "eve", status=2).err
    assert "needs" not in as_("ada", "tokens", "list").out
    refused = as_("ada", "accounts", "list", status=2).err
    assert "does not have the scope `organize`" in refused
    listed = as_(organizer, "accounts", "list").out.splitlines()
    assert [line.split()[:3] for line in listed[1:]] == [
        ["ada", "participant", "red"],
        ["grace", "organizer", "active"],
    ]
    assert "assistant" in as_(organizer, "accounts", "change", "ada", "--role", "assistant", "--no-team").out
    as_(organizer, "accounts", "ban", "ada")
    assert "unknown, has ended or was revoked" in as_("ada", "tokens", "list", status=2).err
    as_(organizer, "accounts", "unban", "ada")
    as_("ada", "tokens", "list")
    as_(organizer, "accounts", "sign-out", "ada")
    as_("ada", "tokens", "list", status=2)
    back = as_(organizer, "invitations", "make", "--account", "ada").out.strip()
    assert "you are signed in there as ada" in as_("ada", "login", back, status=2).err
    as_("ada", "login", back, "--as", servers.name_for(back.partition("/join")[0]))
    as_("ada", "tokens", "list")
    acts = json.loads(as_(organizer, "accounts", "acts", "--last", "3", "--format", "json").out)["items"]
    assert [act["action"] for act in acts] == ["invitations accept", "invitations make", "accounts sign-out"]
    assert "old: red" in as_(organizer, "accounts", "acts").out


def test_invitations_are_listed_and_revoked(as_: As, organizer: str) -> None:
    link = as_(organizer, "invitations", "make", "--role", "assistant", "--name", "tina").out.strip()
    rows = json.loads(as_(organizer, "invitations", "list", "--format", "json").out)["items"]
    assert (rows[0]["name"], rows[0]["role"], rows[0]["made_by"]) == ("tina", "assistant", "grace")
    as_(organizer, "invitations", "revoke", str(rows[0]["id"]))
    assert "has ended, or was revoked" in as_("tina", "login", link, status=2).err
    assert "revoked" in as_(organizer, "invitations", "list").out
    assert "is none that can still be used" in as_(organizer, "invitations", "revoke", "1", status=2).err


def test_a_token_for_a_script_is_made_listed_and_revoked(
    as_: As, organizer: str, origin: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = as_(organizer, "tokens", "make", "--label", "loop", "--scope", "read").out.strip()
    assert secret.startswith("kmt_")
    monkeypatch.setattr("sys.stdin", _Typed(secret))
    as_("script", "login", origin)
    rows = json.loads(as_("script", "tokens", "list", "--format", "json").out)["items"]
    assert [(row["label"], row["scopes"], row["current"]) for row in rows][1:] == [("loop", ["read"], True)]
    assert "makes none" in as_("script", "tokens", "make", status=2).err
    as_(organizer, "tokens", "revoke", str(rows[1]["id"]))
    as_("script", "tokens", "list", status=2)
    assert "loop" not in as_(organizer, "tokens", "list").out


def test_a_workers_token_is_printed_alone_and_revoked(as_: As, organizer: str) -> None:
    result = as_(organizer, "workers", "add", "gpu1", "--days", "30")
    assert result.out.startswith("kmw_")
    assert result.out.count("\n") == 1
    assert "it is not shown again" in result.err
    assert "never connected" in as_(organizer, "workers", "list").out
    as_(organizer, "workers", "resume", "gpu1")
    as_(organizer, "workers", "revoke", "gpu1")
    assert json.loads(as_(organizer, "workers", "list", "--format", "json").out)["items"][0]["tokens"] == 0
    assert "there is no worker" in as_(organizer, "workers", "resume", "gpu2", status=2).err
    assert "is not a valid name" in as_(organizer, "workers", "revoke", "../accounts/ada", status=2).err


def test_private_cases_are_confirmed_from_ones_own_checkout(
    as_: As, organizer: str, tmp_path: Path, service: Service
) -> None:
    assert "this machine has no private cases" in as_(organizer, "workers", "pin", status=2).err
    assert "none" in as_(organizer, "workers", "pin", "--none").out
    (tmp_path / "private").mkdir()
    (tmp_path / "private/twice.toml").write_text(
        f'salt = "{"0123456789abcdef" * 2}"\ntests = [{{ name = "secret", params = {{ n = 5 }} }}]\n'
    )
    (service.project.root / "kernelmark.toml").write_text(f'private_cases = "{tmp_path / "private"}"\n')
    rows = json.loads(as_(organizer, "workers", "pin", "twice", "--format", "json").out)["items"]
    hashes = {row["private_sha256"] for row in rows}
    assert [(row["final"], row["pinned"]) for row in rows] == [(False, True), (True, True)]
    assert len(hashes) == 1
    assert hashes != {None}
    assert next(iter(hashes))[:16] in as_(organizer, "workers", "pins").out


def test_the_queue_is_paused_and_resumed(as_: As, organizer: str) -> None:
    assert "everything" in as_(organizer, "queue", "pause", "--why", "a leak").out
    assert "grace" in as_(organizer, "queue", "pause", "--account", "grace", "--why", "hot").out
    assert "ask another organizer" in as_(organizer, "queue", "resume", "--account", "grace", status=2).err
    assert "everything" not in as_(organizer, "queue", "resume").out
    assert "is not paused" in as_(organizer, "queue", "resume", status=2).err


def test_grading_again_is_asked_of_the_server(as_: As, organizer: str) -> None:
    assert "does not exist" in as_(organizer, "queue", "again", "0123456789abcdef", status=2).err


class _Typed:
    """What is typed into a command that reads its standard input."""

    def __init__(self, text: str) -> None:
        self._text = text

    def isatty(self) -> bool:
        return False

    def read(self, _most: int) -> str:
        return self._text
