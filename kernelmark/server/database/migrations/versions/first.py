"""The first schema, as it was released: `tables` may go on from it, by further steps."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision, down_revision = "0001", None


def upgrade() -> None:
    op.create_table(
        "accounts",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("folded", sa.String(length=64), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("team", sa.String(length=64), nullable=True),
        sa.Column("created_ns", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("folded"),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "aside",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("run", sa.String(length=16), nullable=False),
        sa.Column("at_ns", sa.BigInteger(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "audit",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("at_ns", sa.BigInteger(), nullable=False),
        sa.Column("account", sa.String(length=64), nullable=True),
        sa.Column("token", sa.Integer(), nullable=True),
        sa.Column("action", sa.String(length=64), nullable=False),
        sa.Column("subject", sa.String(length=128), nullable=False),
        sa.Column("details", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "brakes",
        sa.Column("subject", sa.String(length=64), nullable=False),
        sa.Column("by", sa.String(length=64), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("at_ns", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("subject"),
    )
    op.create_table(
        "facts",
        sa.Column("key", sa.String(length=32), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("key"),
    )
    op.create_table(
        "heads",
        sa.Column("problem", sa.String(length=64), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("problem"),
    )
    op.create_table(
        "pins",
        sa.Column("problem", sa.String(length=64), nullable=False),
        sa.Column("final", sa.Boolean(), nullable=False),
        sa.Column("private_sha256", sa.String(length=64), nullable=True),
        sa.PrimaryKeyConstraint("problem", "final"),
    )
    op.create_table(
        "shares",
        sa.Column("pool", sa.String(length=128), nullable=False),
        sa.Column("job_class", sa.String(length=16), nullable=False),
        sa.Column("owner", sa.String(length=70), nullable=False),
        sa.Column("virtual_ns", sa.BigInteger(), nullable=False),
        sa.Column("present_ns", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("pool", "job_class", "owner"),
    )
    op.create_table(
        "sources",
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("language", sa.String(length=16), nullable=False),
        sa.Column("source", sa.LargeBinary(), nullable=False),
        sa.Column("beside", sa.Text(), nullable=False),
        sa.Column("bytes", sa.Integer(), nullable=False),
        sa.Column("last_needed_ns", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("sha256"),
    )
    op.create_table(
        "workers",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("instance", sa.String(length=32), nullable=True),
        sa.Column("version", sa.String(length=64), nullable=True),
        sa.Column("pool", sa.String(length=128), nullable=True),
        sa.Column("device", sa.String(length=8), nullable=True),
        sa.Column("sandbox", sa.String(length=16), nullable=True),
        sa.Column("devices", sa.Integer(), nullable=True),
        sa.Column("slots", sa.Integer(), nullable=True),
        sa.Column("problems", sa.Text(), server_default="{}", nullable=False),
        sa.Column("seen_ns", sa.BigInteger(), nullable=True),
        sa.Column("alive_ns", sa.BigInteger(), nullable=True),
        sa.Column("paused", sa.Text(), server_default="", nullable=False),
        sa.Column("faults", sa.Text(), server_default="[]", nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "memberships",
        sa.Column("account", sa.Integer(), nullable=False),
        sa.Column("team", sa.String(length=64), nullable=False),
        sa.Column("left_ns", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account"],
            ["accounts.id"],
        ),
        sa.PrimaryKeyConstraint("account", "team"),
    )
    op.create_table(
        "submissions",
        sa.Column("run", sa.String(length=16), nullable=False),
        sa.Column("account", sa.Integer(), nullable=False),
        sa.Column("idempotency_key", sa.String(length=128), nullable=False),
        sa.Column("request_sha256", sa.String(length=64), nullable=False),
        sa.Column("owner", sa.String(length=70), nullable=False),
        sa.Column("author", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("problem", sa.String(length=64), nullable=False),
        sa.Column("source", sa.String(length=64), nullable=False),
        sa.Column("mode", sa.String(length=16), nullable=False),
        sa.Column("effort", sa.String(length=16), nullable=False),
        sa.Column("pool", sa.String(length=128), nullable=False),
        sa.Column("job_class", sa.String(length=16), nullable=False),
        sa.Column("batch", sa.String(length=128), nullable=True),
        sa.Column("received_ns", sa.BigInteger(), nullable=False),
        sa.Column("on_time", sa.Boolean(), nullable=False),
        sa.Column("remark", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["account"],
            ["accounts.id"],
        ),
        sa.ForeignKeyConstraint(
            ["source"],
            ["sources.sha256"],
        ),
        sa.PrimaryKeyConstraint("run"),
        sa.UniqueConstraint("account", "idempotency_key"),
    )
    op.create_index("submissions_source", "submissions", ["account", "source", "received_ns"], unique=False)
    op.create_table(
        "tokens",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("account", sa.Integer(), nullable=True),
        sa.Column("worker", sa.String(length=64), nullable=True),
        sa.Column("scopes", sa.Text(), nullable=False),
        sa.Column("label", sa.String(length=128), nullable=False),
        sa.Column("details", sa.Text(), nullable=True),
        sa.Column("uses_left", sa.Integer(), nullable=True),
        sa.Column("parent", sa.Integer(), nullable=True),
        sa.Column("created_ns", sa.BigInteger(), nullable=False),
        sa.Column("ends_ns", sa.BigInteger(), nullable=False),
        sa.Column("last_used_ns", sa.BigInteger(), nullable=True),
        sa.Column("revoked_ns", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["account"],
            ["accounts.id"],
        ),
        sa.ForeignKeyConstraint(
            ["parent"],
            ["tokens.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("sha256"),
    )
    op.create_table(
        "gradings",
        sa.Column("run", sa.String(length=16), nullable=False),
        sa.Column("submission", sa.String(length=16), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("account", sa.Integer(), nullable=False),
        sa.Column("owner", sa.String(length=70), nullable=False),
        sa.Column("problem", sa.String(length=64), nullable=False),
        sa.Column("problem_sha256", sa.String(length=64), nullable=False),
        sa.Column("final", sa.Boolean(), nullable=False),
        sa.Column("mode", sa.String(length=16), nullable=False),
        sa.Column("pool", sa.String(length=128), nullable=False),
        sa.Column("job_class", sa.String(length=16), nullable=False),
        sa.Column("share", sa.String(length=70), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("expected_ns", sa.BigInteger(), nullable=False),
        sa.Column("device_ns", sa.BigInteger(), nullable=True),
        sa.Column("charged", sa.Boolean(), server_default=sa.text("0"), nullable=False),
        sa.Column("queued_ns", sa.BigInteger(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("leases", sa.Integer(), nullable=False),
        sa.Column("alone", sa.Boolean(), server_default=sa.text("0"), nullable=False),
        sa.Column("lease", sa.String(length=32), nullable=True),
        sa.Column("last_lease", sa.String(length=32), nullable=True),
        sa.Column("claim", sa.String(length=32), nullable=True),
        sa.Column("worker", sa.String(length=64), nullable=True),
        sa.Column("instance", sa.String(length=32), nullable=True),
        sa.Column("leased_ns", sa.BigInteger(), nullable=True),
        sa.Column("granted_ns", sa.BigInteger(), nullable=True),
        sa.Column("started_ns", sa.BigInteger(), nullable=True),
        sa.Column("leased_until_ns", sa.BigInteger(), nullable=True),
        sa.Column("hard_end_ns", sa.BigInteger(), nullable=True),
        sa.Column("progress", sa.Text(), nullable=True),
        sa.Column("progress_ns", sa.BigInteger(), nullable=True),
        sa.Column("workers_failed", sa.Text(), server_default="[]", nullable=False),
        sa.Column("refused_by", sa.Text(), server_default="[]", nullable=False),
        sa.Column("choosy", sa.Boolean(), server_default=sa.text("0"), nullable=False),
        sa.Column("moved", sa.Boolean(), server_default=sa.text("0"), nullable=False),
        sa.Column("answer", sa.Text(), nullable=True),
        sa.Column("outcome", sa.String(length=32), nullable=True),
        sa.Column("score_s", sa.String(length=32), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("error_class", sa.String(length=64), nullable=True),
        sa.Column("stuck", sa.Text(), nullable=True),
        sa.Column("ended_ns", sa.BigInteger(), nullable=True),
        sa.Column("visible_ns", sa.BigInteger(), nullable=True),
        sa.Column("cursor", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["account"],
            ["accounts.id"],
        ),
        sa.ForeignKeyConstraint(
            ["submission"],
            ["submissions.run"],
        ),
        sa.PrimaryKeyConstraint("run"),
        sa.UniqueConstraint("cursor"),
        sa.UniqueConstraint("lease"),
    )
    op.create_index("gradings_held", "gradings", ["worker", "state"], unique=False)
    op.create_index("gradings_of_account", "gradings", ["account", "queued_ns"], unique=False)
    op.create_index("gradings_of_day", "gradings", ["queued_ns"], unique=False)
    op.create_index("gradings_open", "gradings", ["owner", "state"], unique=False)
    op.create_index(
        "gradings_queue",
        "gradings",
        ["state", "pool", "choosy", "job_class", "share", "problem", "problem_sha256", "final", "position"],
        unique=False,
    )
    op.create_index("gradings_used", "gradings", ["owner", "queued_ns"], unique=False)
    op.create_index("gradings_usual", "gradings", ["problem", "pool", "mode", "ended_ns"], unique=False)
    op.create_index(op.f("ix_gradings_last_lease"), "gradings", ["last_lease"], unique=False)
    op.create_index(op.f("ix_gradings_visible_ns"), "gradings", ["visible_ns"], unique=False)
