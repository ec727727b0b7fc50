"""Who a request comes from, and what it may do. `tokens.authenticate` makes it; routes and the queue ask it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kernelmark.service.accounts import AccountRole

TokenScope = Literal["submit", "read", "batch", "assist", "organize", "work"]
"""What a token is for. `assist`: see others' sources and grade again; `work`: claim and answer, of workers alone."""

OWN_SCOPES: frozenset[TokenScope] = frozenset({"submit", "read", "batch"})
"""What concerns one's own submissions: all that a token may have that was made with another token."""
SCOPES: dict[AccountRole, frozenset[TokenScope]] = {
    "participant": OWN_SCOPES,
    "assistant": OWN_SCOPES | {"assist"},
    "organizer": OWN_SCOPES | {"assist", "organize"},
}
"""The most that a token of an account with this role may do."""


@dataclass(frozen=True)
class Principal:
    """The account or the worker that a token belongs to."""

    account_id: int | None
    """None: it is a worker."""
    name: str
    """The account's, which is the author of its submissions; or the worker's."""
    role: AccountRole | None
    team: str | None
    token: int
    """The token's id."""
    scopes: frozenset[TokenScope]
    """What the token is for, as far as the account's present role allows."""
    worker: str | None = None
    """The worker's name."""
    used_ns: int | None = None
    """When the token was last used, to a minute; None: never."""

    def has(self, scope: TokenScope) -> bool:
        """Whether it may do what the scope names."""
        return scope in self.scopes
