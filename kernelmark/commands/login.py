"""The commands that sign in to servers and out of them: `login`, `logout` and `servers`. Trusted."""

from __future__ import annotations

import platform
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
from typing_extensions import TypedDict

from harness.errors import KernelmarkError, UsageError
from kernelmark.commands.options import form_option
from kernelmark.project.documents import print_as
from kernelmark.text.terminal import say, visible

if TYPE_CHECKING:
    from kernelmark.client.connection import Connection
    from kernelmark.service.accounts import SignedIn

_TOKEN_CHARACTERS = 200


@click.command()
@click.argument("address")
@click.option("--name", help="The name of the new account: your results are recorded under it, for ever.")
@click.option("--as", "short", metavar="NAME", help="What you call the server. [default: from its address]")
@click.option(
    "--ca",
    type=click.Path(path_type=Path, exists=True, dir_okay=False, resolve_path=True),
    metavar="FILE",
    help="Trust the certificates in this PEM file for this server, in place of the usual ones.",
)
def login(address: str, name: str | None, short: str | None, ca: Path | None) -> None:
    """Sign in to the server at ADDRESS: by the link of an invitation, or with a token, for which it asks.

    A link can be used once. Quote it, since it has a `#` in it. Without a terminal, the token is read from stdin.
    """
    from harness.submission import AUTHOR
    from kernelmark.client import servers
    from kernelmark.client.connection import Connection
    from kernelmark.service.accounts import Me

    origin, secret = servers.origin_of_link(address)
    if name is not None and secret is None:
        raise UsageError("--name", "is for an invitation", "leave it out: a token has its account")
    if name is not None and not AUTHOR.fullmatch(name):
        raise UsageError(
            "--name", f"{visible(name)[:80]} is not valid", "use up to 64 letters, digits, '.', '_' and '-'"
        )
    signed_in_as = servers.at(origin, servers.known()) if short is None else None
    if signed_in_as is not None and signed_in_as[1].ends > datetime.now(UTC):
        called, server = signed_in_as
        what = f"you are signed in there as {visible(server.account)}"
        remedy = f"`kernelmark logout {called}` first, or give this account a name here: --as NAME"
        raise UsageError(f"server {origin}", what, remedy)
    called = short or servers.name_for(origin)
    servers.refuse_unusable(called, origin)
    if secret is not None:
        with Connection(origin, ca=ca, tolerant=True) as connection:
            signed_in = _accepted(connection, secret, name)
        token, me = signed_in.token, signed_in.me
    else:
        token = _token(origin)
        with Connection(origin, token, ca=ca, tolerant=True) as connection:
            me = connection.get("me", Me)
    servers.keep(called, servers.KnownServer(origin=origin, token=token, account=me.name, ends=me.ends, ca=ca))
    valid = f"the token is in {servers.file()}, and expires on {me.ends:%Y-%m-%d}"
    say(f"signed in to {called} as {visible(me.name)}; {valid}")


def _accepted(connection: Connection, secret: str, name: str | None) -> SignedIn:
    """Use the invitation; ask for a name if it needs one, and somebody is there to answer."""
    from kernelmark.client.connection import Refused
    from kernelmark.service.accounts import InvitationAcceptance, SignedIn

    acceptance = InvitationAcceptance(secret=secret, name=name, label=platform.node()[:128])
    try:
        return connection.post("invitations/accept", acceptance, SignedIn)
    except Refused as error:
        if error.code != "name-needed":
            raise
        if not sys.stdin.isatty():
            raise UsageError("--name", "is missing", "choose a name: your results are recorded under it") from None
    typed = click.prompt("Name of your account; your results are recorded under it, for ever", err=True)
    named = InvitationAcceptance(secret=secret, name=typed, label=acceptance.label)
    return connection.post("invitations/accept", named, SignedIn)


def _token(origin: str) -> str:
    """Ask for a token, without showing it."""
    if sys.stdin.isatty():
        typed = click.prompt(f"Token for {origin} (an invitation makes one)", hide_input=True, err=True)
    else:
        typed = sys.stdin.read(_TOKEN_CHARACTERS + 1)
    token = str(typed).strip()
    if not token or len(token) > _TOKEN_CHARACTERS or not token.isascii() or not token.isprintable():
        raise UsageError("token", "is not one", "give the whole token, or the link of an invitation")
    return token


@click.command()
@click.argument("server")
def logout(server: str) -> None:
    """Sign out of SERVER, by its name or address: its token is revoked there, and removed here."""
    from kernelmark.client import servers

    name, found = servers.find(server)
    try:
        with found.connection() as connection:
            connection.delete("me/tokens/current")
    except KernelmarkError as error:
        say(f"kernelmark: warning: the token is not revoked: {error}")
    servers.forget(name)
    say(f"signed out of {name}")


class ServerDocument(TypedDict):
    """A server that the user is signed in to."""

    name: str
    origin: str
    account: str
    ends: datetime


@click.command("servers")
@form_option
def list_servers(form: str) -> None:
    """List the servers that you are signed in to."""
    from kernelmark.client import lines, servers

    known = servers.known()
    documents: list[ServerDocument] = [
        {"name": name, "origin": server.origin, "account": server.account, "ends": server.ends}
        for name, server in known.items()
    ]
    print_as(form, "servers", documents, lines.servers(known))
