"""The file of servers and tokens, and the commands that sign in and out."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.errors import UsageError
from kernelmark.client import servers
from kernelmark.client.servers import KnownServer
from kernelmark.service.accounts import Me, SignedIn
from kernelmark.service.origin import origin_of
from kernelmark.service.refusal import Refusal
from tests.documents import items
from tests.unit.conftest import Command
from tests.unit.service.client.conftest import ENDS, TOKEN
from tests.unit.service.client.fake import Fake

ME = Me(name="ada", role="participant", scopes=("submit", "read"), ends=ENDS)
SIGNED_IN = SignedIn(token=TOKEN, me=ME)
HOME = "/home/ada"


def server(origin: str, token: str = TOKEN) -> KnownServer:
    return KnownServer(origin=origin, token=token, account="ada", ends=ENDS)


@pytest.mark.parametrize(
    ("platform", "environment", "home", "folder"),
    [
        ("linux", {}, HOME, "/home/ada/.config/kernelmark"),
        ("linux", {"XDG_CONFIG_HOME": "/x"}, HOME, "/x/kernelmark"),
        ("linux", {"XDG_CONFIG_HOME": "not/absolute"}, HOME, "/home/ada/.config/kernelmark"),
        ("darwin", {}, "/Users/ada", "/Users/ada/Library/Application Support/kernelmark"),
        ("win32", {"APPDATA": r"C:\Users\ada\Roaming"}, r"C:\Users\ada", r"C:\Users\ada\Roaming\kernelmark"),
        ("win32", {}, r"C:\Users\ada", r"C:\Users\ada\AppData\Roaming\kernelmark"),
    ],
)
def test_the_folder_is_that_of_the_platform(platform: str, environment: dict[str, str], home: str, folder: str) -> None:
    assert str(servers.folder(platform, environment, home)) == folder


def test_a_server_is_kept_where_only_its_user_reads(own_configuration: Path) -> None:
    assert servers.known() == {}
    servers.keep("bench", kept := server("https://bench.example.org"))
    file = own_configuration / "servers.toml"
    assert (file.stat().st_mode & 0o777, own_configuration.stat().st_mode & 0o777) == (0o600, 0o700)
    assert servers.known() == {"bench": kept}
    file.chmod(0o644)
    assert servers.known() == {"bench": kept}
    assert file.stat().st_mode & 0o777 == 0o600, "what others could read they no longer can"
    assert [path.name for path in own_configuration.iterdir()] == ["servers.toml"]


def test_a_token_is_for_one_exact_origin() -> None:
    servers.keep("bench", server("https://bench.example.org"))
    assert servers.find("bench") == servers.find("https://bench.example.org/")
    for other in ("https://bench.example.org:8443", "https://evil.bench.example.org", "http://localhost:80", "bensh"):
        with pytest.raises(UsageError):
            servers.find(other)


def test_a_name_is_one_server_and_a_server_may_have_several() -> None:
    servers.keep("bench", server("https://bench.example.org"))
    with pytest.raises(UsageError, match="is the name of https://bench"):
        servers.keep("bench", server("https://other.example.org"))
    for name in ("", "a.b", "-x", "a" * 65, "[x]"):
        with pytest.raises(UsageError, match="is not valid"):
            servers.keep(name, server("https://bench.example.org"))
    servers.keep("course", server("https://bench.example.org", "kmt_new"))
    assert servers.known().keys() == {"bench", "course"}
    assert servers.known()["course"].token == "kmt_new"
    with pytest.raises(UsageError, match="you have several accounts there; name one: bench, course"):
        servers.find("https://bench.example.org")
    with pytest.raises(UsageError, match="you have several accounts there; name one: bench, course"):
        servers.at("https://bench.example.org", servers.known())


@pytest.mark.parametrize(
    ("origin", "name"),
    [("https://bench.example.org", "bench"), ("http://127.0.0.1:8080", "local-8080"), ("http://[::1]:1", "local-1")],
)
def test_a_server_is_named_for_its_host(origin: str, name: str) -> None:
    assert servers.name_for(origin_of(origin)) == name


@pytest.mark.parametrize("content", ["x = [", "x = 1", "[a]\norigin = 1", '[a]\norigin = "http://e.org"\ntoken = "x"'])
def test_a_broken_file_is_said_and_not_replaced(content: str, own_configuration: Path) -> None:
    own_configuration.mkdir(parents=True)
    file = own_configuration / "servers.toml"
    file.write_text(content)
    for use in (servers.known, lambda: servers.keep("bench", server("https://bench.example.org"))):
        with pytest.raises(UsageError, match="cannot be read"):
            use()
    assert file.read_text() == content


def test_which_server_a_command_means(signed_in: Fake) -> None:
    origin = signed_in.origin
    for given, project in (("bench", None), (origin, None), (None, origin), (None, None), ("bench", "https://x.org")):
        with servers.chosen(given, project) as chosen:
            assert chosen.origin == origin
    with pytest.raises(UsageError, match=r"`kernelmark login https://x\.org` signs in"):
        servers.chosen(None, "https://x.org")
    servers.keep("other", server("https://x.org"))
    with pytest.raises(UsageError, match="you are signed in to several; name one: bench, other"):
        servers.chosen(None, None)


def test_a_link_signs_in_once(fake: Fake, run: Command, own_configuration: Path) -> None:
    fake.answers("POST invitations/accept", SIGNED_IN, Refusal(410, "used", "the invitation", "was used", "ask"))
    result = run("login", f"{fake.origin}/join#kmi_secret", "--name", "ada", "--as", "bench")
    assert (result.code, result.out) == (0, "")
    assert result.err.startswith("signed in to bench as ada; the token is in ")
    assert result.err.endswith("and expires on 2030-01-01\n")
    [asked] = fake.asked
    assert (asked.document["secret"], asked.document["name"]) == ("kmi_secret", "ada")
    assert "authorization" not in asked.headers
    assert TOKEN not in result.err
    assert servers.known()["bench"].token == TOKEN
    another = run("login", f"{fake.origin}/join#kmi_other", "--name", "bob")
    assert (another.code, "you are signed in there as ada" in another.err) == (2, True), "and ada's token stays"
    again = run("login", f"{fake.origin}/join#kmi_secret", "--as", "bench")
    assert (again.code, again.err) == (2, "kernelmark: error: the invitation was used; ask\n")
    assert servers.known()["bench"].token == TOKEN


def test_an_invitation_is_not_used_up_if_its_token_could_not_be_kept(
    fake: Fake, run: Command, own_configuration: Path
) -> None:
    servers.keep("bench", server("https://bench.example.org"))
    assert run("login", f"{fake.origin}/join#kmi_x", "--as", "bench").code == 2
    own_configuration.rename(own_configuration.parent / "before")
    own_configuration.write_text("a file, where the folder should be")
    assert run("login", f"{fake.origin}/join#kmi_x").code in (2, 7)
    assert fake.asked == []


@pytest.mark.parametrize("name", ["x" * 65, "a b", "", "\x1b[2J"])
def test_a_name_that_nobody_can_have_uses_no_invitation_up(name: str, fake: Fake, run: Command) -> None:
    result = run("login", f"{fake.origin}/join#kmi_x", "--name", name)
    assert (result.code, "is not valid" in result.err, fake.asked) == (2, True, [])


def test_a_name_is_asked_for_if_one_is_needed(fake: Fake, run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    needed = Refusal(422, "name-needed", "name", "is missing", "choose a name")
    fake.answers("POST invitations/accept", needed, needed, SIGNED_IN)
    without = run("login", f"{fake.origin}/join#kmi_x")
    assert (without.code, "--name is missing; choose a name" in without.err) == (2, True)
    monkeypatch.setattr("sys.stdin", Terminal("grace\n"))
    assert run("login", f"{fake.origin}/join#kmi_x").code == 0
    assert [asked.document.get("name") for asked in fake.asked] == [None, None, "grace"]


def test_a_token_is_read_from_stdin_and_tried(fake: Fake, run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    fake.answers("GET me", ME, Refusal(401, "token", "Authorization", "names an unknown token", "sign in again"))
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{TOKEN}\n"))
    assert run("login", fake.origin, "--as", "bench").code == 0
    assert (fake.asked[0].headers["authorization"], servers.known()["bench"].account) == (f"Bearer {TOKEN}", "ada")
    for typed in ("", "kmt_\x1b[31m", "x" * 201, "kmt_unknown"):
        monkeypatch.setattr("sys.stdin", io.StringIO(typed))
        assert run("login", fake.origin, "--as", "bench").code == 2
    assert servers.known()["bench"].token == TOKEN


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("https://bench.example.org/join",),
        ("http://bench.example.org/join#kmi_x",),
        ("https://bench.example.org/join#\x1b[31m",),
        ("https://bench.example.org", "--name", "ada"),
    ],
)
def test_what_is_no_sign_in(arguments: tuple[str, ...], run: Command) -> None:
    result = run("login", *arguments)
    assert (result.code, result.out, "\x1b" in result.err) == (2, "", False)


def test_logout_revokes_the_token_and_forgets_it_whatever_the_server_says(signed_in: Fake, run: Command) -> None:
    signed_in.answers("DELETE me/tokens/current", b"")
    assert run("logout", "bench").err == "signed out of bench\n"
    assert signed_in.asked[0].headers["authorization"] == f"Bearer {TOKEN}"
    servers.keep("bench", server(signed_in.origin))
    signed_in.answers("DELETE me/tokens/current", Refusal(401, "token", "Authorization", "is unknown", "sign in"))
    run("logout", "bench")
    result = run("logout", "bench")
    assert result.code == 2, "there is no such server any more"
    assert servers.known() == {}


def test_servers_are_listed_without_their_tokens(signed_in: Fake, run: Command) -> None:
    result, document = run("servers"), run("servers", "--format", "json")
    assert "bench" in result.out
    assert [(item["name"], item["origin"]) for item in items(document.out)] == [("bench", signed_in.origin)]
    assert TOKEN not in result.out + document.out


class Terminal(io.StringIO):
    """Somebody who types this."""

    def isatty(self) -> bool:
        return True

    def fileno(self) -> Any:
        return sys.__stdin__.fileno() if sys.__stdin__ else 0
