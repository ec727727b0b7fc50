"""The documents of organizers: accounts, invitations, workers, pins, pauses and the audit."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, Field

from harness.verdict import Sha256
from kernelmark.service.accounts import AccountRole
from kernelmark.service.submissions import ServiceDocument, Slug

AccountState = Literal["active", "banned"]
Name = Annotated[str, Field(max_length=64)]
Days = Annotated[float, Field(gt=0, le=365)]


class AccountRow(ServiceDocument):
    """An account as organizers see it."""

    name: str
    role: AccountRole
    state: AccountState
    team: str | None = None
    created: AwareDatetime
    last_used: AwareDatetime | None = None
    """When a token of it was last used, to a minute."""


class Accounts(ServiceDocument):
    """All accounts, by name. `GET /api/v1/accounts`."""

    items: tuple[AccountRow, ...]


class AccountChange(ServiceDocument):
    """Sent to `PATCH /api/v1/accounts/{name}`; what is left out stays as it is."""

    role: AccountRole | None = None
    state: AccountState | None = None
    team: Name | None = None
    no_team: bool = False
    """Take it out of its team."""


class AccountLink(ServiceDocument):
    """Sent to `POST /api/v1/accounts/{name}/link`."""

    author: Name
    """An author in a ledger, whose name the account gets."""


class InvitationOrder(ServiceDocument):
    """Sent to `POST /api/v1/invitations`."""

    role: AccountRole = "participant"
    name: Name | None = None
    """The new account's; None: its person chooses one."""
    team: Name | None = None
    account: Name | None = None
    """An account that exists, which the invitation lets its person back into."""
    count: Annotated[int, Field(ge=1, le=500)] = 1
    days: Days = 14


class NewInvitation(ServiceDocument):
    """An invitation that was made. Its link is shown only here."""

    link: str
    role: AccountRole
    name: str | None = None
    team: str | None = None
    ends: AwareDatetime


class NewInvitations(ServiceDocument):
    """The answer to an order of invitations."""

    items: tuple[NewInvitation, ...]


class InvitationRow(ServiceDocument):
    """An invitation without its link."""

    id: int
    state: Literal["open", "used", "ended", "revoked"]
    role: AccountRole
    name: str | None = None
    team: str | None = None
    made_by: str | None = None
    """An organizer; None: the server, for the first one."""
    ends: AwareDatetime


class Invitations(ServiceDocument):
    """All invitations, newest first. `GET /api/v1/invitations`."""

    items: tuple[InvitationRow, ...]


class WorkerOrder(ServiceDocument):
    """Sent to `POST /api/v1/workers/{name}`: a token for a worker of that name, new or not."""

    days: Days = 90


class WorkerRow(ServiceDocument):
    """A worker: its valid tokens, and what it said when it last connected."""

    name: str
    tokens: int
    """How many of its tokens are valid."""
    pool: str | None = None
    version: str | None = None
    sandbox: str | None = None
    devices: int | None = None
    seen: AwareDatetime | None = None
    paused: str = ""
    """Why it may claim nothing; empty if it may."""


class Workers(ServiceDocument):
    """All workers, by name. `GET /api/v1/workers`."""

    items: tuple[WorkerRow, ...]


class Pin(ServiceDocument):
    """Sent to `PUT /api/v1/pins`: the hash that a problem's private cases must have on a worker that grades it."""

    problem: Slug
    final: bool
    """Whether it is the hash with the final tests."""
    private_sha256: Sha256 | None = None
    """None: without private cases."""


class PinRow(ServiceDocument):
    """The hash of a problem's private cases that an organizer has confirmed, and those that workers report."""

    problem: str
    final: bool
    pinned: bool
    private_sha256: str | None = None
    workers: dict[str, str | None]
    """By the worker's name."""


class Pins(ServiceDocument):
    """All hashes that are confirmed or reported by a worker. `GET /api/v1/pins`."""

    items: tuple[PinRow, ...]


class PauseOrder(ServiceDocument):
    """Sent to `PUT /api/v1/brakes`: nothing of an account, or of anybody, is graded until it is resumed."""

    account: Name | None = None
    """None: everybody."""
    why: Annotated[str, Field(min_length=1, max_length=500)]


class PauseRow(ServiceDocument):
    """What is paused."""

    account: str | None = None
    by: str
    why: str
    at: AwareDatetime


class Pauses(ServiceDocument):
    """Everything that is paused. `GET /api/v1/brakes`."""

    items: tuple[PauseRow, ...]


class AuditRow(ServiceDocument):
    """An entry of the audit: who did what to whom, with the values that were replaced."""

    id: int
    at: AwareDatetime
    account: str | None = None
    token: int | None = None
    action: str
    subject: str
    details: dict[str, Any]


class Audit(ServiceDocument):
    """Entries of the audit, newest first. `GET /api/v1/audit?before=ID&last=100`."""

    items: tuple[AuditRow, ...]
