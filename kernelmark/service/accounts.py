"""The documents of accounts: accepting an invitation, whose a token is, and one's own tokens."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AwareDatetime, Field

from kernelmark.service.submissions import ServiceDocument

AccountRole = Literal["participant", "assistant", "organizer"]


class InvitationAcceptance(ServiceDocument):
    """Sent to `POST /api/v1/invitations/accept`, without a token."""

    secret: Annotated[str, Field(max_length=200)]
    name: Annotated[str, Field(max_length=64)] | None = None
    """The account's name, by which runs are recorded for ever; None: that of the invitation."""
    label: Annotated[str, Field(max_length=128)] = ""
    """The label of the new token in lists: the machine's name."""


class Me(ServiceDocument):
    """The account of a token. `GET /api/v1/me`."""

    name: str
    role: AccountRole
    team: str | None = None
    scopes: tuple[str, ...]
    ends: AwareDatetime
    """When the token ends."""


class SignedIn(ServiceDocument):
    """The answer to an acceptance. The token's secret is shown only here."""

    token: str
    me: Me


class TokenOrder(ServiceDocument):
    """Sent to `POST /api/v1/me/tokens`: a token with fewer rights than the one that makes it."""

    scopes: Annotated[tuple[Literal["submit", "read", "batch"], ...], Field(min_length=1, max_length=3)] = (
        "submit",
        "read",
    )
    label: Annotated[str, Field(max_length=128)] = ""
    days: Annotated[float, Field(gt=0, le=365)] = 90
    """How long it is valid; it also ends with the token that makes it."""


class NewToken(ServiceDocument):
    """A token that was made. Its secret is shown only here."""

    token: str
    ends: AwareDatetime


class TokenRow(ServiceDocument):
    """A token of one's own, without its secret."""

    id: int
    label: str
    scopes: tuple[str, ...]
    created: AwareDatetime
    ends: AwareDatetime
    last_used: AwareDatetime | None = None
    parent: int | None = None
    """The token that made it; it ends with that one."""
    current: bool
    """Whether it is the token of this request."""


class Tokens(ServiceDocument):
    """One's own valid tokens. `GET /api/v1/me/tokens`."""

    items: tuple[TokenRow, ...]
