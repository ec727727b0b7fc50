"""The commands on a server's accounts, invitations and tokens, for organizers and for whoever owns a token.

`cli` adds them to `kernelmark`. Trusted; a server's text is not. Slow imports are inside the commands that need them.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import click

from harness.errors import UsageError
from kernelmark.commands.help import Group
from kernelmark.commands.options import connected, form_option, server_option
from kernelmark.project.documents import print_as, print_document
from kernelmark.text.terminal import columns, print_text, say, visible
from leaderboard.text.units import date, minute

if TYPE_CHECKING:
    from kernelmark.service.accounts import AccountRole
    from kernelmark.service.organizing import AccountChange, AccountRow, Accounts, AuditRow

_ROLES = click.Choice(["participant", "assistant", "organizer"])


@click.group(cls=Group)
def accounts() -> None:
    """See and change the accounts of a server, as an organizer. Each act is noted, with the values that it replaced."""


@accounts.command("list")
@server_option
@form_option
def list_accounts(server: str | None, form: str) -> None:
    """List all accounts, with their roles and teams."""
    from kernelmark.service.organizing import Accounts

    with connected(server) as connection:
        _print_accounts(form, connection.get("accounts", Accounts))


@accounts.command("change")
@click.argument("name")
@click.option("--role", type=_ROLES, help="What it may do.")
@click.option("--team", help="The team that its submissions count for, from now on.")
@click.option("--no-team", is_flag=True, help="Take it out of its team.")
@server_option
@form_option
def change_account(
    name: str, role: AccountRole | None, team: str | None, no_team: bool, server: str | None, form: str
) -> None:
    """Change the role or the team of the account NAME.

    A new role takes rights away at once, but gives none to tokens that exist: for that, make an invitation with
    `kernelmark invitations make --account NAME`.
    """
    from kernelmark.service.organizing import AccountChange

    if team is not None and no_team:
        raise UsageError("--team and --no-team", "cannot be given together", "give one of them")
    if role is None and team is None and not no_team:
        raise UsageError("change", "needs something to change", "give --role, --team or --no-team")
    _change(name, AccountChange(role=role, team=team, no_team=no_team), server, form)


@accounts.command()
@click.argument("name")
@server_option
@form_option
def ban(name: str, server: str | None, form: str) -> None:
    """Ban the account NAME: its tokens no longer count. Nothing that is recorded changes."""
    from kernelmark.service.organizing import AccountChange

    _change(name, AccountChange(state="banned"), server, form)


@accounts.command()
@click.argument("name")
@server_option
@form_option
def unban(name: str, server: str | None, form: str) -> None:
    """Let the banned account NAME in again; its tokens count again."""
    from kernelmark.service.organizing import AccountChange

    _change(name, AccountChange(state="active"), server, form)


@accounts.command()
@click.argument("name")
@click.argument("author")
@server_option
@form_option
def link(name: str, author: str, server: str | None, form: str) -> None:
    """Give the account NAME, which has no runs, the name of AUTHOR, who has runs in a ledger."""
    from kernelmark.service.organizing import AccountLink, Accounts

    with connected(server) as connection:
        found = connection.post(f"accounts/{name_part(name)}/link", AccountLink(author=author), Accounts)
    _print_accounts(form, found)


@accounts.command("sign-out")
@click.argument("name")
@server_option
def sign_out(name: str, server: str | None) -> None:
    """Revoke all tokens of the account NAME, such as after a theft; an invitation lets its owner back in."""
    with connected(server) as connection:
        connection.delete(f"accounts/{name_part(name)}/tokens")
    say(f"all tokens of {visible(name)} have ended; `kernelmark invitations make --account {visible(name)}`")


@accounts.command("acts")
@click.option("--last", type=click.IntRange(1, 1000), default=100, show_default=True, help="How many at most.")
@click.option("--before", type=click.IntRange(min=1), metavar="ID", help="Those before this one.")
@server_option
@form_option
def list_acts(last: int, before: int | None, server: str | None, form: str) -> None:
    """List what organizers and assistants did, newest first."""
    from kernelmark.service.organizing import Audit

    asked = {"last": last} if before is None else {"last": last, "before": before}
    with connected(server) as connection:
        found = connection.get("audit", Audit, parameters=asked)
    print_as(form, "acts", found, _acts(found.items))


@click.group(cls=Group)
def invitations() -> None:
    """Invite people to a server, as an organizer. Each link can be used once, and is shown once."""


@invitations.command("list")
@server_option
@form_option
def list_invitations(server: str | None, form: str) -> None:
    """List all invitations, without their links."""
    from kernelmark.service.organizing import Invitations

    with connected(server) as connection:
        found = connection.get("invitations", Invitations)
    rows = [
        (str(row.id), row.state, row.role, row.name or "", row.team or "", row.made_by or "the server", date(row.ends))
        for row in found.items
    ]
    print_as(form, "invitations", found, table(("id", "state", "role", "name", "team", "made by", "ends"), rows))


@invitations.command("make")
@click.option("--count", type=click.IntRange(1, 500), default=1, show_default=True, help="How many.")
@click.option("--role", type=_ROLES, default="participant", show_default=True, help="What the accounts may do.")
@click.option("--team", help="The team of the accounts.")
@click.option("--name", help="The account's name, which may be one that a ledger has; else its person chooses.")
@click.option("--account", metavar="NAME", help="Let the person of this account back in, who has lost the token.")
@click.option(
    "--days", type=click.FloatRange(0, 365, min_open=True), default=14, show_default=True, help="Days until it expires."
)
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV, for a mail merge.")
@server_option
@form_option
def make_invitations(
    count: int,
    role: AccountRole,
    team: str | None,
    name: str | None,
    account: str | None,
    days: float,
    as_csv: bool,
    server: str | None,
    form: str,
) -> None:
    """Make invitations, and print their links: anybody who has a link can use it.

    They expire with the token that made them, and so when you sign out.
    """
    from kernelmark.service.organizing import InvitationOrder, NewInvitations

    order = InvitationOrder(role=role, team=team, name=name, account=account, count=count, days=days)
    with connected(server) as connection:
        made = connection.post("invitations", order, NewInvitations)
    if as_csv and form != "json":
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(("link", "role", "name", "team", "ends"))
        writer.writerows((row.link, row.role, row.name, row.team, row.ends.isoformat()) for row in made.items)
        print_text("\n".join(map(visible, text.getvalue().splitlines())))
    else:
        print_as(form, "new-invitations", made, [visible(row.link) for row in made.items])


@invitations.command("revoke")
@click.argument("invitation", metavar="ID", type=click.IntRange(min=1))
@server_option
def revoke_invitation(invitation: int, server: str | None) -> None:
    """Revoke the invitation ID, which was not used."""
    with connected(server) as connection:
        connection.delete(f"invitations/{invitation}")
    say(f"invitation {invitation} is revoked")


@click.group(cls=Group)
def tokens() -> None:
    """See, make and revoke tokens of your own account, such as for a script."""


@tokens.command("list")
@server_option
@form_option
def list_tokens(server: str | None, form: str) -> None:
    """List your tokens that still count, without their secrets."""
    from kernelmark.service.accounts import Tokens

    with connected(server) as connection:
        found = connection.get("me/tokens", Tokens)
    rows = [
        (
            f"{row.id}{' (this one)' if row.current else ''}",
            row.label,
            " ".join(row.scopes),
            date(row.created),
            date(row.last_used) if row.last_used else "never",
            date(row.ends),
        )
        for row in found.items
    ]
    print_as(form, "tokens", found, table(("id", "label", "may", "made", "last used", "ends"), rows))


@tokens.command("make")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(["submit", "read", "batch"]),
    help="What it may do; repeatable. [default: submit and read]",
)
@click.option("--label", default="", help="What lists call it.")
@click.option(
    "--days", type=click.FloatRange(0, 365, min_open=True), default=90, show_default=True, help="Days until it expires."
)
@server_option
@form_option
def make_token(scopes: tuple[str, ...], label: str, days: float, server: str | None, form: str) -> None:
    """Make a token that may do less than yours, and print it, this once. It ends with yours."""
    from kernelmark.service.accounts import NewToken, TokenOrder

    order = TokenOrder.model_validate({"scopes": scopes or ("submit", "read"), "label": label, "days": days})
    with connected(server) as connection:
        made = connection.post("me/tokens", order, NewToken)
    print_token(form, made.token, made.ends, made)


@tokens.command("revoke")
@click.argument("token", metavar="ID", type=click.IntRange(min=1))
@server_option
def revoke_token(token: int, server: str | None) -> None:
    """Revoke your token ID, and those that were made with it."""
    with connected(server) as connection:
        connection.delete(f"me/tokens/{token}")
    say(f"token {token} is revoked")


def print_token(form: str, secret: str, ends: datetime, document: object) -> None:
    """Print a new token: for people alone on its line, and when it ends on stderr."""
    if form == "json":
        print_document("token", document)
    else:
        print_text(visible(secret))
        say(f"it expires on {date(ends)}; it is not shown again")


def _change(name: str, change: AccountChange, server: str | None, form: str) -> None:
    from kernelmark.service.organizing import Accounts

    with connected(server) as connection:
        found = connection.patch(f"accounts/{name_part(name)}", change, Accounts)
    _print_accounts(form, found)


def _print_accounts(form: str, found: Accounts) -> None:
    rows = [_account(row) for row in found.items]
    print_as(form, "accounts", found, table(("name", "role", "team", "state", "since", "last seen"), rows))


def _account(row: AccountRow) -> tuple[str, ...]:
    seen = date(row.last_used) if row.last_used else "never"
    return row.name, row.role, row.team or "", row.state, date(row.created), seen


def _acts(acts: Sequence[AuditRow]) -> Iterator[str]:
    rows = [
        (
            str(act.id),
            minute(act.at),
            act.account or "",
            act.action,
            act.subject,
            ", ".join(f"{key}: {value}" for key, value in act.details.items() if value not in (None, False)),
        )
        for act in acts
    ]
    return table(("id", "at (UTC)", "who", "did", "to", "details"), rows)


def table(head: Sequence[str], rows: Sequence[Sequence[str]], empty: str = "there is none") -> Iterator[str]:
    """Rows of a server's texts, or what is said instead if there are none."""
    from kernelmark.client.connection import shown

    return columns([[shown(cell) for cell in row] for row in rows], head=head) if rows else iter((empty,))


def name_part(name: str) -> str:
    """A name as a part of a path: one that is none would be another path."""
    from harness.submission import AUTHOR

    if not AUTHOR.fullmatch(name):
        raise UsageError("NAME", f"{name[:80]!r} is not a valid name", "give it as `kernelmark accounts list` shows it")
    return name
