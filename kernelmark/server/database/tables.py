"""The tables. Times are nanoseconds since 1970 (UTC) unless a column says otherwise; documents are JSON.

A new database is made of them. A change needs a step in `migrations`, too, which changes the databases that exist;
within a minor version, steps only add.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    false,
)

metadata = MetaData()

accounts = Table(
    "accounts", metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(64), nullable=False, unique=True),
    Column("folded", String(64), nullable=False, unique=True),  # case-folded, without `.`, `_` and `-`
    Column("role", String(16), nullable=False),  # participant, assistant, organizer
    Column("state", String(16), nullable=False),  # active, banned
    Column("team", String(64)),
    Column("created_ns", BigInteger, nullable=False),
)  # fmt: skip

memberships = Table(
    "memberships", metadata,  # that have ended
    Column("account", ForeignKey("accounts.id"), primary_key=True),
    Column("team", String(64), primary_key=True),
    Column("left_ns", BigInteger, nullable=False),
)  # fmt: skip

tokens = Table(
    "tokens", metadata,
    Column("id", Integer, primary_key=True),
    Column("sha256", String(64), nullable=False, unique=True),  # of the secret, which is not kept
    Column("kind", String(16), nullable=False),  # client, worker, invitation
    Column("account", ForeignKey("accounts.id")),
    Column("worker", String(64)),  # its name, of kind `worker`
    Column("scopes", Text, nullable=False),  # separated by spaces
    Column("label", String(128), nullable=False),
    Column("details", Text),  # of an invitation: the name, team and role of the account that it makes
    Column("uses_left", Integer),  # none: any number
    Column("parent", ForeignKey("tokens.id")),  # what it was made with; it ends with that
    Column("created_ns", BigInteger, nullable=False),
    Column("ends_ns", BigInteger, nullable=False),
    Column("last_used_ns", BigInteger),
    Column("revoked_ns", BigInteger),
)  # fmt: skip

sources = Table(
    "sources", metadata,
    Column("sha256", String(64), primary_key=True),  # the submission's hash, of language and files
    Column("language", String(16), nullable=False),
    Column("source", LargeBinary, nullable=False),
    Column("beside", Text, nullable=False),  # a list of names and contents in base64
    Column("bytes", Integer, nullable=False),
    Column("last_needed_ns", BigInteger, nullable=False),
)  # fmt: skip

submissions = Table(
    "submissions", metadata,
    Column("run", String(16), primary_key=True),  # of its first grading
    Column("account", ForeignKey("accounts.id"), nullable=False),
    Column("idempotency_key", String(128), nullable=False),
    Column("request_sha256", String(64), nullable=False),  # of the whole request
    Column("owner", String(70), nullable=False),  # `team:NAME` or `account:NAME`
    Column("author", String(64), nullable=False),
    Column("name", String(255), nullable=False),
    Column("problem", String(64), nullable=False),
    Column("source", ForeignKey("sources.sha256"), nullable=False),
    Column("mode", String(16), nullable=False),
    Column("effort", String(16), nullable=False),
    Column("pool", String(128), nullable=False),
    Column("job_class", String(16), nullable=False),  # people, batch, regrade
    Column("batch", String(128)),
    Column("received_ns", BigInteger, nullable=False),
    Column("on_time", Boolean, nullable=False),
    Column("remark", Text),  # a moderation event that is recorded with the verdict
    UniqueConstraint("account", "idempotency_key"),
    Index("submissions_source", "account", "source", "received_ns"),
)  # fmt: skip

gradings = Table(
    "gradings", metadata,
    Column("run", String(16), primary_key=True),
    Column("submission", ForeignKey("submissions.run"), nullable=False),
    Column("state", String(16), nullable=False),
    Column("version", Integer, nullable=False),  # grows with each change that its owner may see
    Column("account", ForeignKey("accounts.id"), nullable=False),
    Column("owner", String(70), nullable=False),
    Column("problem", String(64), nullable=False),
    Column("problem_sha256", String(64), nullable=False),  # the public hash that it is to be graded with
    Column("final", Boolean, nullable=False),
    Column("mode", String(16), nullable=False),
    Column("pool", String(128), nullable=False),
    Column("job_class", String(16), nullable=False),
    Column("share", String(70), nullable=False),  # who is charged for it in the queue: the owner, or `newcomers`
    Column("position", BigInteger, nullable=False),  # the order within its share; it stays when a job is requeued
    Column("expected_ns", BigInteger, nullable=False),  # reserved of the limits until it has ended
    Column("device_ns", BigInteger),  # what it took, or is charged
    Column("charged", Boolean, nullable=False, server_default=false()),  # whether an ended one counts as a grading
    Column("queued_ns", BigInteger, nullable=False),
    Column("tries", Integer, nullable=False),  # judges that ended while they graded it
    Column("leases", Integer, nullable=False),  # how often it was leased
    Column("alone", Boolean, nullable=False, server_default=false()),
    Column("lease", String(32), unique=True),  # the current one
    Column("last_lease", String(32), index=True),  # the one before; its answer counts while it is queued or failed
    Column("claim", String(32)),
    Column("worker", String(64)),
    Column("instance", String(32)),
    Column("leased_ns", BigInteger),
    Column("granted_ns", BigInteger),  # the same moment by the server's monotonic clock
    Column("started_ns", BigInteger),  # of its first progress, by the server's monotonic clock
    Column("leased_until_ns", BigInteger),  # by the server's monotonic clock
    Column("hard_end_ns", BigInteger),  # by the server's monotonic clock
    Column("progress", Text),
    Column("progress_ns", BigInteger),  # by the server's monotonic clock
    Column("workers_failed", Text, nullable=False, server_default="[]"),  # names, of harness errors
    Column("refused_by", Text, nullable=False, server_default="[]"),  # names of workers that cannot grade it
    Column("choosy", Boolean, nullable=False, server_default=false()),  # whether either of the two lists has a name
    Column("moved", Boolean, nullable=False, server_default=false()),  # whether its problem changed while it waited
    Column("answer", Text),  # the verdict or check
    Column("outcome", String(32)),
    Column("score_s", String(32)),
    Column("error", Text),  # for the organizers
    Column("error_class", String(64)),  # for the participant
    Column("stuck", Text),  # why it could not be recorded
    Column("ended_ns", BigInteger),
    Column("visible_ns", BigInteger, index=True),  # from when on its end is shown
    Column("cursor", BigInteger, unique=True),  # the order in which gradings ended
    Index(
        "gradings_queue",
        "state", "pool", "choosy", "job_class", "share", "problem", "problem_sha256", "final", "position",
    ),
    Index("gradings_held", "worker", "state"),
    Index("gradings_open", "owner", "state"),
    Index("gradings_used", "owner", "queued_ns"),
    Index("gradings_of_account", "account", "queued_ns"),
    Index("gradings_of_day", "queued_ns"),
    Index("gradings_usual", "problem", "pool", "mode", "ended_ns"),
)  # fmt: skip

shares = Table(
    "shares", metadata,
    Column("pool", String(128), primary_key=True),
    Column("job_class", String(16), primary_key=True),
    Column("owner", String(70), primary_key=True),  # empty: the whole class; of no class: the pool
    Column("virtual_ns", BigInteger, nullable=False),  # of the pool: 1 if people who wait are next
    Column("present_ns", BigInteger, nullable=False, server_default="0"),
)  # fmt: skip

workers = Table(
    "workers", metadata,
    Column("name", String(64), primary_key=True),
    Column("instance", String(32)),
    Column("version", String(64)),
    Column("pool", String(128)),
    Column("device", String(8)),
    Column("sandbox", String(16)),
    Column("devices", Integer),
    Column("slots", Integer),
    Column("problems", Text, nullable=False, server_default="{}"),  # hashes by slug
    Column("seen_ns", BigInteger),
    Column("alive_ns", BigInteger),  # the same by the server's monotonic clock; none: not since it started
    Column("paused", Text, nullable=False, server_default=""),  # why it may claim nothing
    Column("faults", Text, nullable=False, server_default="[]"),  # owners of the harness errors since it last graded
)  # fmt: skip

pins = Table(
    "pins", metadata,  # the private hashes that an organizer has confirmed
    Column("problem", String(64), primary_key=True),
    Column("final", Boolean, primary_key=True),
    Column("private_sha256", String(64)),  # none: without private cases
)  # fmt: skip

heads = Table(
    "heads", metadata,  # how far each ledger went when the server last appended to it
    Column("problem", String(64), primary_key=True),
    Column("bytes", BigInteger, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("sha256", String(64), nullable=False),  # of the last line's entry, as the chain has it
)  # fmt: skip

differing_answers = Table(
    "aside", metadata,  # answers that differ from the ledger's verdict of the run
    Column("id", Integer, primary_key=True),
    Column("run", String(16), nullable=False),
    Column("at_ns", BigInteger, nullable=False),
    Column("why", Text, nullable=False),
    Column("answer", Text, nullable=False),
)  # fmt: skip

audit = Table(
    "audit", metadata,
    Column("id", Integer, primary_key=True),
    Column("at_ns", BigInteger, nullable=False),
    Column("account", String(64)),
    Column("token", Integer),
    Column("action", String(64), nullable=False),
    Column("subject", String(128), nullable=False),
    Column("details", Text, nullable=False),
)  # fmt: skip

pauses = Table(
    "brakes", metadata,
    Column("subject", String(64), primary_key=True),  # an account's name; empty: everything
    Column("by", String(64), nullable=False),
    Column("why", Text, nullable=False),
    Column("at_ns", BigInteger, nullable=False),
)  # fmt: skip

facts = Table(
    "facts", metadata,  # single values, such as the newest receipt
    Column("key", String(32), primary_key=True),
    Column("value", Text, nullable=False),
)  # fmt: skip
