"""What the tests of the queue do over and over: submit, say hello, claim, and answer."""

from __future__ import annotations

import hashlib
import itertools
from base64 import b64encode
from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection, Row, select

from harness.verdict import Stage
from kernelmark import __version__
from kernelmark.server.accounts.principal import Principal
from kernelmark.server.database.tables import gradings
from kernelmark.server.queue import endings, leases, status, workers
from kernelmark.server.queue.admission import admit
from kernelmark.server.service import Service
from kernelmark.service.submissions import StageProgress, SubmissionRequest, SubmissionStatus
from kernelmark.service.work import (
    WORK_PROTOCOL,
    Claim,
    Heartbeat,
    HeartbeatResponse,
    HeldLease,
    Lease,
    ProblemHashes,
    TaskError,
    WorkerHello,
)

T = TypeVar("T")
POOL = "NVIDIA H100"
KERNEL = b"def twice(x, out): out.copy_(x + x)\n"
_numbers = itertools.count()


def change(service: Service, made: Callable[[Connection], T]) -> T:
    return service.database.write(made).result(10)


def read(service: Service, made: Callable[[Connection], T]) -> T:
    with service.database.read() as connection:
        return made(connection)


def secret(*arguments: object) -> str:
    """An id of 128 bits that follows from these."""
    return hashlib.sha256(repr(arguments).encode()).hexdigest()[:32]


def request(source: bytes | None = None, **fields: object) -> SubmissionRequest:
    """A submission; without a source one that nobody has submitted before."""
    text = KERNEL + b"# %d\n" % next(_numbers) if source is None else source
    given = {"problem": "twice", "language": "py", "pool": POOL, **fields}
    return SubmissionRequest.model_validate(given | {"source": b64encode(text)})


def submit(service: Service, principal: Principal, asked: SubmissionRequest | None = None, key: str = "") -> str:
    """The run of a submission that is admitted."""
    return submitted(service, principal, asked, key)[0]


def submitted(
    service: Service, principal: Principal, asked: SubmissionRequest | None = None, key: str = ""
) -> tuple[str, bool]:
    asked = asked or request()
    key = key or secret(next(_numbers))
    sha256 = hashlib.sha256(asked.model_dump_json().encode()).hexdigest()
    return change(service, lambda c: admit(c, service, principal, asked, "kernel.py", key, sha256))


class Worker:
    """One start of a worker."""

    def __init__(self, service: Service, name: str = "gpu1", *, slots: int = 1, devices: int = 1) -> None:
        self.service, self.name, self.instance = service, name, secret("instance", next(_numbers))
        self.slots, self.devices = slots, devices
        self.held: dict[str, StageProgress | None] = {}

    def hello(self, *, pool: str = POOL, problems: dict[str, ProblemHashes] | None = None, unfit: str = "") -> str:
        """Say hello, and return why it is paused."""
        known = self.service.files.snapshot.problems
        hashes = {slug: ProblemHashes(public=p.sha256, final_public=p.sha256) for slug, p in known.items()}
        said = WorkerHello(
            instance=self.instance, version=__version__, protocol=WORK_PROTOCOL, pool=pool, device="cuda",
            sandbox="docker", devices=self.devices, slots=self.slots, unfit=unfit,
            problems=hashes if problems is None else problems,
        )  # fmt: skip
        return change(self.service, lambda c: workers.hello(c, self.service, self.name, said)).paused

    def claim(self, free: int = 1, claim: str = "") -> list[Lease]:
        asked = Claim(instance=self.instance, claim=claim or secret("claim", next(_numbers)), free=free)
        got = change(self.service, lambda c: leases.claim(c, self.service, self.name, asked)).leases
        self.held |= {lease.lease: None for lease in got}
        return list(got)

    def beat(self, *, forget: bool = False) -> HeartbeatResponse:
        held = () if forget else tuple(HeldLease(lease=name, progress=at) for name, at in self.held.items())
        beat = Heartbeat(instance=self.instance, held=held)
        told = change(self.service, lambda c: leases.heartbeat(c, self.service, self.name, beat))
        for lease in told.end:
            del self.held[lease]
        return told

    def progress(self, lease: Lease, done: int = 0) -> HeartbeatResponse:
        self.held[lease.lease] = StageProgress(stage=Stage.TEST, done=done, total=9, label="small")
        return self.beat()

    def accept(self, lease: Lease | str, seconds: float | None = 1.0) -> str:
        """Answer a lease with a verdict, and return the run."""
        name = lease if isinstance(lease, str) else lease.lease

        def made(connection: Connection) -> str:
            row = endings.find_answered(connection, self.name, name)
            took = None if seconds is None else round(seconds * 1e9)
            endings.finish(connection, self.service, row, answer="{}", outcome="accepted", score_s=1e-6, device_ns=took)
            return str(row.run)

        self.held.pop(name, None)
        return change(self.service, made)

    def error(self, lease: Lease, fault: str = "harness") -> None:
        """Answer a lease with an error."""
        said = TaskError.model_validate({"fault": fault, "error_class": "DeviceError", "what": "the device failed"})

        def made(connection: Connection) -> None:
            endings.fail(connection, self.service, endings.find_answered(connection, self.name, lease.lease), said)

        self.held.pop(lease.lease, None)
        change(self.service, made)


def row(service: Service, run: str) -> Row[tuple[object, ...]]:
    return read(service, lambda c: c.execute(select(gradings).where(gradings.c.run == run)).one())


def state(service: Service, run: str) -> str:
    return str(row(service, run).state)


def status_of(service: Service, run: str) -> SubmissionStatus:
    return read(service, lambda c: status.status(c, service, run))
