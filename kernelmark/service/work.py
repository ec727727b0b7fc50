"""The documents between the server and a worker, which sends all requests. They carry data, never code or paths.

A worker takes problems, references and private cases from its own checkout; both sides compare their hashes.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AwareDatetime, Base64Bytes, Field

from harness.kinds import DeviceKind, Effort, SandboxName
from harness.submission import MAX_BESIDE, LanguageName
from harness.verdict import Sha256
from kernelmark.service.submissions import Label, Mode, RunId, ServiceDocument, Slug, SourceFile, StageProgress

WORK_PROTOCOL = 1
"""Changes when these documents do; a worker of another one is refused."""

HEARTBEAT_S = 15.0
LEASE_S = 90.0
CLAIM_WAIT_S = 25.0
"""How long the server keeps a claim open while nothing is queued."""
HEARTBEAT_WAIT_S = 10.0
"""How long the server keeps a heartbeat open, so that a cancellation reaches the worker at once."""
ANSWER_BYTES = 2 << 20

Secret = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
"""128 random bits: the id of a lease, of a claim, or of a worker's start."""


class ProblemHashes(ServiceDocument):
    """The hashes of one problem as a worker has it: public and private, without and with the final tests."""

    public: Sha256
    """Without private cases, as a server has it."""
    private: Sha256 | None = None
    """As in a verdict; None: it has no private cases."""
    final_public: Sha256
    final_private: Sha256 | None = None


class WorkerHello(ServiceDocument):
    """A worker's first message after each start, and again whenever something of it changes."""

    instance: Secret
    """Drawn at each start. A second live instance of a name is refused."""
    version: Annotated[str, Field(max_length=64)]
    """Of kernelmark."""
    protocol: int
    """`WORK_PROTOCOL`."""
    pool: Annotated[Label, Field(min_length=1)]
    """The name of its devices, as verdicts have it."""
    device: DeviceKind
    sandbox: SandboxName
    devices: Annotated[int, Field(ge=1, le=4096)]
    slots: Annotated[int, Field(ge=1, le=4096)]
    """How many jobs it grades at the same time, on all devices together."""
    problems: dict[Slug, ProblemHashes]
    unfit: Annotated[str, Field(max_length=500)] = ""
    """Why it cannot grade: after three harness errors of different authors in a row, its own known-good kernel failed,
    too. It claims nothing until that kernel succeeds, and says hello without this then.
    """


class WorkerWelcome(ServiceDocument):
    """The answer to a hello."""

    name: str
    """The worker's, as its token says."""
    paused: str = ""
    """Why it may claim nothing at present; empty if it may."""


class Task(ServiceDocument):
    """One grading, as a server requests it. Sandbox, device, image and baselines are the worker's own."""

    run: RunId
    problem: Slug
    problem_sha256: Sha256
    """The public hash, as in a hello. The verdict's own hash is of the private cases, too."""
    final: bool
    mode: Mode
    effort: Effort
    name: Annotated[str, Field(max_length=255)]
    author: Annotated[str, Field(max_length=64)]
    language: LanguageName
    source: Base64Bytes
    beside: Annotated[tuple[SourceFile, ...], Field(max_length=MAX_BESIDE)] = ()
    alone: bool = False
    """Whether nothing else may be graded on its device at the same time: its judge has ended once before."""


class Lease(ServiceDocument):
    """A task, and the right to answer it."""

    lease: Secret
    task: Task


class Claim(ServiceDocument):
    """A request for work. The same claim again gets the same leases."""

    instance: Secret
    claim: Secret
    free: Annotated[int, Field(ge=1, le=4096)]
    """How many more jobs the worker takes."""
    wait_s: Annotated[float, Field(ge=0, le=CLAIM_WAIT_S)] = CLAIM_WAIT_S


class Leases(ServiceDocument):
    """What a claim gets; empty if nothing was queued for as long as it waited."""

    leases: tuple[Lease, ...]


class HeldLease(ServiceDocument):
    """A lease that a worker holds, and its latest progress."""

    lease: Secret
    progress: StageProgress | None = None


class Heartbeat(ServiceDocument):
    """All leases that a worker holds, sent every `HEARTBEAT_S`, and within half a second of a change."""

    instance: Secret
    held: Annotated[tuple[HeldLease, ...], Field(max_length=8192)]
    wait_s: Annotated[float, Field(ge=0, le=HEARTBEAT_WAIT_S)] = 0
    leaves: bool = False
    """Whether the worker ends now: it holds nothing any more, and its next instance may start at once."""


class HeartbeatResponse(ServiceDocument):
    """The answer to a heartbeat."""

    end: tuple[Secret, ...]
    """Leases that no longer count: cancelled, expired or unknown. The worker ends them and need not answer."""
    paused: str = ""


FaultKind = Literal["harness", "usage", "worker", "judge-lost"]
"""The cause of an error. `harness`: the grading itself failed. `usage`: the problem or submission cannot be graded.
`worker`: this worker cannot grade it, such as another problem's files; it costs no try. `judge-lost`: the process that
graded ended; it costs one."""


class TaskError(ServiceDocument):
    """Why there is no verdict."""

    fault: FaultKind
    error_class: Annotated[str, Field(max_length=64)]
    """The name of the class in `harness.errors`."""
    where: Annotated[str, Field(max_length=500)] = ""
    what: Annotated[str, Field(max_length=4000)]
    remedy: Annotated[str, Field(max_length=2000)] = ""


class Answer(ServiceDocument):
    """The end of a lease: exactly one of `verdict`, `check` and `error`."""

    instance: Secret
    lease: Secret
    verdict: str | None = None
    """The verdict's document, as `Verdict.to_json` writes it."""
    check: str | None = None
    """The check's document, of a task with the mode `check`."""
    error: TaskError | None = None
    answered_at: AwareDatetime
    """By the worker's clock."""


class Acknowledged(ServiceDocument):
    """The answer to an answer: it is on the server's disk."""

    run: RunId
