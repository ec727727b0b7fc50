"""The first schema."""

from __future__ import annotations

from alembic import op

from kernelmark.server.database.tables import metadata

revision, down_revision = "0001", None


def upgrade() -> None:
    metadata.create_all(op.get_bind())
