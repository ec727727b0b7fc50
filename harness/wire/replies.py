"""The closed set of replies of a runner, a collector or a launcher, with the limits of every field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from harness.shared.layouts import MAX_RESULTS, OTHER_LAYOUTS, ROW_MAJOR
from harness.wire.checks import boolean, checked, choice, integer, kinds, many, record, text
from harness.wire.protocol import ARTEFACTS, LONG, NANOSECONDS, REASON, SHORT, SIZE

MAX_FUNCTIONS = 512  # that one recording launches
MAX_ARTEFACTS = 16  # of a profile
MAX_TIMED_NODES = 1024  # their times fit into one frame
ReturnedKind = Literal["nothing", "a tensor", "a value"]


@dataclass(frozen=True)
class Hello:
    """The first frame, before the submission has arrived."""

    protocol: int = checked(integer(0, 1 << 20))
    python: str = checked(text(50))


@dataclass(frozen=True)
class Ready:
    torch: str = checked(text(50))
    triton: str = checked(text(50))


@dataclass(frozen=True)
class Built:
    log: str = checked(LONG)
    interpreted: bool = checked(boolean)


@dataclass(frozen=True)
class Failed:
    """The submission raised, did not compile, or cannot run on a CPU. Unless `fatal`, the runner can go on."""

    outcome: str = checked(choice("compile_error", "runtime_error", "memory_limit", "unsupported"))
    message: str = checked(REASON)
    traceback: str = checked(LONG)
    fatal: bool = checked(boolean)  # the device's context is lost


@dataclass(frozen=True)
class Done:
    pass


@dataclass(frozen=True)
class Called(Done):
    """A call of a Python submission is done.

    Attributes:
        returned: what a function returned that should write into its outputs instead, for a hint.
        interpreted: whether Triton's interpreter has run a kernel so far.
        layouts: of each result that may have several, in the order of the arguments; a claim of the runner.
    """

    returned: ReturnedKind = checked(choice(*get_args(ReturnedKind)))
    interpreted: bool = checked(boolean)
    layouts: tuple[str, ...] = checked(many(choice(ROW_MAJOR, *OTHER_LAYOUTS), MAX_RESULTS), default=())


@dataclass(frozen=True)
class Said:
    """Why a foreign reference rejects an answer; empty if the answer is right."""

    text: str = checked(SHORT)


@dataclass(frozen=True)
class Artefact:
    """One of the documents of a profile."""

    name: str = checked(choice(*ARTEFACTS))
    file_bytes: int = checked(SIZE)


@dataclass(frozen=True)
class Profiled:
    """The artefacts that can be fetched. Their content is a claim of the runner.

    This is also the first frame of a collector, which offers the output of a tool that watched the runner.
    """

    artefacts: tuple[Artefact, ...] = checked(many(record(Artefact), MAX_ARTEFACTS))


@dataclass(frozen=True)
class Compiled:
    """How many Triton kernels were compiled, and why the first launch that failed to compile failed, if any did."""

    kernels: int = checked(integer(0, 1 << 20))
    refused: str = checked(SHORT)


@dataclass(frozen=True)
class Counted:
    """How many Triton kernels were already compiled at their first launch, and how many were not."""

    found: int = checked(integer(0, 1 << 20))
    compiled: int = checked(integer(0, 1 << 20))


@dataclass(frozen=True)
class Recorded:
    """The sizes of the recording and its scratch memory; both 0 if the call cannot be replayed, with the `reason`.

    `note`: what may make a replay fail. `host_ns`: the host's time to launch the call, which is only shown.
    """

    file_bytes: int = checked(SIZE)
    scratch_bytes: int = checked(SIZE)
    reason: str = checked(SHORT)
    note: str = checked(SHORT)
    host_ns: int = checked(integer(0, NANOSECONDS), default=0)


# ---- replies: launcher → judge ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Function:
    """The resources of a function: registers and local memory per thread, static shared memory per block."""

    registers: int = checked(integer(0, 1 << 16))
    local_bytes: int = checked(integer(0, 1 << 30))
    shared_bytes: int = checked(integer(0, 1 << 20))


@dataclass(frozen=True)
class Loaded:
    """The functions that the recording launches, in order of first launch.

    The other fields are the differences between the launcher's clocks for our own kernel: of the events to CUPTI, and
    of the host to the events.
    """

    functions: tuple[Function, ...] = checked(many(record(Function), MAX_FUNCTIONS))
    event_extra_ns: int = checked(integer(0, NANOSECONDS))
    span_extra_ns: int = checked(integer(0, NANOSECONDS))


@dataclass(frozen=True)
class Replayed:
    """The time of one call by three clocks: CUPTI's from the start of the first node to the end of the last, the
    device's events around the graph, and the host's from releasing the stream until the device is idle.
    """

    device_ns: int = checked(integer(0, NANOSECONDS))
    event_ns: int = checked(integer(0, NANOSECONDS))
    span_ns: int = checked(integer(0, NANOSECONDS))
    nodes_ns: tuple[int, ...] = checked(many(integer(0, NANOSECONDS), MAX_TIMED_NODES))  # of the first nodes


@dataclass(frozen=True)
class Broken:
    """The launcher itself failed. From a runner this is not a valid reply."""

    message: str = checked(SHORT)
    traceback: str = checked(LONG)


Reply = (
    Hello | Ready | Built | Failed | Done | Called | Said | Recorded | Profiled | Compiled | Counted | Loaded
    | Replayed | Broken
)  # fmt: skip
REPLIES = kinds(*get_args(Reply))
