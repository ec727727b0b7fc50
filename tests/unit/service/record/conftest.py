"""A service whose gradings are put into its database row by row, without admission and without workers."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Row, insert, select

from harness.submission import Submission
from harness.verdict import Verdict
from harness.wire.protocol import PROTOCOL
from kernelmark.project.problems import identity
from kernelmark.project.project import Project
from kernelmark.record.records import ledger, whole
from kernelmark.server.clock import Clock
from kernelmark.server.database import migrations
from kernelmark.server.database.database import Database
from kernelmark.server.database.tables import accounts, gradings, sources, submissions, workers
from kernelmark.server.lock import DATABASE, FOLDER
from kernelmark.server.record.recorder import Recorder
from kernelmark.server.record.sources import as_stored
from kernelmark.server.service import Service
from leaderboard.record.ledger import JsonlLedger
from tests.unit.conftest import ROOT
from tests.verdicts import accepted

NOW_NS = 1_790_000_000_000_000_000
SECOND_NS = 1_000_000_000
POOL = "NVIDIA H200"


class StillClock(Clock):
    """Both clocks stand until a test moves them."""

    at_ns = NOW_NS

    def now_ns(self) -> int:
        return self.at_ns

    def monotonic_ns(self) -> int:
        return self.at_ns - NOW_NS


class Stored:
    """A service on a temporary project, and its database to put rows into."""

    def __init__(
        self,
        root: Path,
        settings: str = "",
        problems: tuple[str, ...] = ("vector_add", "softmax"),
    ) -> None:
        self.root, self.clock = root, StillClock()
        for slug in problems:  # none: a copy of a project, which has them
            shutil.copytree(ROOT / "problems" / slug, root / "problems" / slug)
        root.mkdir(exist_ok=True)
        (root / "kernelmark.toml").write_text(settings)
        self.file = root / FOLDER / DATABASE
        self.file.parent.mkdir(parents=True)
        self.open()

    def open(self) -> None:
        """Begin as a server does, also after the files were exchanged."""
        migrations.upgrade(self.file)
        self.service = Service(Project(self.root), Database(self.file), clock=self.clock)
        self.service.files.refresh(self.service.database)
        self.settings = self.service.project.settings

    def close(self) -> None:
        self.service.database.close()

    def ledger(self, slug: str = "vector_add") -> JsonlLedger:
        return ledger(whole(self.settings), slug)

    def recorded(self, slug: str = "vector_add") -> list[str]:
        """The runs in a ledger, in order."""
        return [entry.verdict.run for entry in self.ledger(slug).read() if entry.kind == "verdict"]

    def record(self) -> Recorder:
        """What a recorder does once it starts, in this thread."""
        recorder = Recorder(self.service)
        recorder.compare_stores()
        recorder.record_due()
        return recorder

    def row(self, run: str) -> Row[Any]:
        with self.service.database.read() as connection:
            return connection.execute(select(gradings).where(gradings.c.run == run)).one()

    def rows(self, table: Any) -> list[Row[Any]]:
        with self.service.database.read() as connection:
            return [*connection.execute(select(table))]

    def put(self, *statements: Any) -> None:
        """Make changes in one transaction."""

        def change(connection: Any) -> None:
            for statement in statements:
                connection.execute(statement)

        self.service.database.write(change).result()

    def submission(self, author: str = "ada", number: int = 0, name: str = "kernel.py") -> Submission:
        """A source of its own for each number."""
        return Submission(name=name, author=author, language="py", source=f"# {number}\n".encode(), beside=())

    def verdict(self, submitted: Submission, run: str, slug: str = "vector_add", **other: Any) -> Verdict:
        """What an honest worker answers."""
        sha256 = identity(self.settings, self.root / "problems" / slug, datetime.now(UTC))
        at = datetime.fromtimestamp(self.clock.at_ns / 1e9, UTC)
        fields = {"problem": slug, "problem_sha256": sha256, "created_at": at, "protocol": PROTOCOL, **other}
        made = accepted(submission=submitted, run=run, modes=("replayed",), **fields)
        return made.model_copy(update={"requested_baselines": (), "duration_ns": 2 * SECOND_NS})

    def add(self, run: str, state: str, submitted: Submission, answer: str | None = None, **values: Any) -> None:
        """A grading in this state, with all that it refers to; leased 10 s ago by the worker gpu1 if ever."""
        slug = values.get("problem", "vector_add")
        sha256 = identity(self.settings, self.root / "problems" / slug, datetime.now(UTC))
        row = {
            "run": run, "submission": run, "state": state, "version": 1, "owner": f"account:{submitted.author}",
            "problem": slug, "problem_sha256": sha256, "final": False, "mode": "submit", "pool": POOL,
            "job_class": "people", "position": 1, "expected_ns": SECOND_NS, "queued_ns": self.clock.at_ns,
            "tries": 0, "leases": 0, "answer": answer, "worker": None, "share": f"account:{submitted.author}",
        }  # fmt: skip
        if state in ("leased", "graded", "recorded"):
            row |= {"lease": run * 2, "worker": "gpu1", "leased_ns": self.clock.at_ns - 10 * SECOND_NS, "leases": 1}
        row |= {name: value for name, value in values.items() if name in gradings.c}
        source = {
            "sha256": submitted.sha256, "language": submitted.language, "source": submitted.source,
            "beside": as_stored(submitted), "bytes": submitted.size_bytes, "last_needed_ns": self.clock.at_ns,
        }  # fmt: skip
        made = {
            "run": run, "idempotency_key": run, "request_sha256": "0" * 64, "owner": row["owner"],
            "author": submitted.author, "name": submitted.name, "problem": slug, "source": submitted.sha256,
            "mode": row["mode"], "effort": values.get("effort", "default"), "pool": row["pool"],
            "job_class": row["job_class"], "received_ns": self.clock.at_ns, "on_time": True,
            "remark": values.get("remark"),
        }  # fmt: skip

        def change(connection: Any) -> None:
            who = connection.scalar(select(accounts.c.id).where(accounts.c.name == submitted.author))
            if who is None:
                fields = {"name": submitted.author, "folded": submitted.author, "role": "participant"}
                values = insert(accounts).values(**fields, state="active", created_ns=self.clock.at_ns)
                who = connection.execute(values).inserted_primary_key[0]
            if connection.scalar(select(sources.c.sha256).where(sources.c.sha256 == submitted.sha256)) is None:
                connection.execute(insert(sources).values(**source))
            if connection.scalar(select(workers.c.name)) is None:
                connection.execute(insert(workers).values(name="gpu1", device="cuda", sandbox="docker", pool=POOL))
            connection.execute(insert(submissions).values(**made, account=who))
            connection.execute(insert(gradings).values(**row, account=who))

        self.service.database.write(change).result()

    def graded(
        self, number: int = 0, run: str | None = None, slug: str = "vector_add", author: str = "ada", **values: Any
    ) -> Verdict:
        """A graded submission that is not recorded yet; its verdict."""
        run, submitted = run or f"{number + 1:016x}", self.submission(author, number)
        verdict = self.verdict(submitted, run, slug)
        self.add(run, "graded", submitted, verdict.to_json(), problem=slug, **values)
        return verdict


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[Stored]:
    with closing(Stored(tmp_path / "project")) as made:
        yield made
