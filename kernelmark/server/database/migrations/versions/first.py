"""The first schema: where the steps begin. Nothing runs this one, as a new database is made of the present tables."""

from __future__ import annotations

revision, down_revision = "0001", None


def upgrade() -> None:
    """Nothing comes before it."""
