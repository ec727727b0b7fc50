"""The closed set of messages: what the judge may ask, what the runner may answer, and the bounds of every field."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from harness.call import MAX_ABSENT, STYLES, Forms
from harness.foreign import FORMS
from harness.languages import LANGUAGES
from harness.wire.checks import (
    Check,
    ascending,
    boolean,
    checked,
    choice,
    forms,
    integer,
    line,
    many,
    number,
    python_file,
    record,
    text,
)  # fmt: skip

PROTOCOL = 4
MAX_SAMPLES = 1000
MAX_SETS = 2048
MAX_DECLARED = 128  # tensors in one frame: it holds as many with names of 64 letters and strides
MAX_FUNCTIONS = 512  # launched by one recording
MAX_ARTEFACTS = 16  # of a profile
MAX_TOLD_NODES = 1024  # whose times fit in one frame
ARTEFACTS = (
    "trace 0", "trace 1", "trace 2", "trace 3", "operators", "shapes", "by stack", "autograd table", "cpu stacks",
    "device stacks", "modules", "code",
    "memory snapshot", "tool output", "tool report", "tool details", "tool table", "tool version",
)  # fmt: skip
"""The documents of a profile, and of a tool that watched the runner."""
ProfilePart = Literal["torch", "stacks", "memory"]
_NANOSECONDS = 1 << 53  # a hundred days; the largest integer that every JSON reader represents exactly
_SHORT, _LONG = line(500), text(8_000)
_SIZE = integer(0, 1 << 50)


# ---- commands: judge → runner -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Welcome:
    """Descriptor: the pipe that becomes stdout and stderr. Answered by `Ready` once torch and the device are up."""


@dataclass(frozen=True)
class Build:
    """Descriptor: the source. Import it, or compile it and look up the symbols. Answered by `Built` or `Failed`."""

    language: str = checked(choice(*LANGUAGES))
    symbols: tuple[str, ...] = checked(many(text(200), 64, 1))
    architecture: str = checked(text(20))
    line_info: bool = checked(boolean, default=False)  # for tools: with line numbers, and telling what each kernel uses
    style: str = checked(choice(*STYLES), default="writes")  # of Python; what is compiled always writes its outputs
    signature: str = checked(_SHORT, default="")  # how Python is called, for messages
    converts: bool = checked(boolean, default=False)  # what is returned may have another dtype: of a foreign reference


@dataclass(frozen=True)
class Place:
    """Descriptor: a file, to be put beside the submission, which can import it. Before `Build`."""

    name: str = checked(python_file)


@dataclass(frozen=True)
class Argument:
    """One tensor of a call: for set k it is at `offset + k * stride` in its arena."""

    name: str = checked(_SHORT)
    dtype: str = checked(text(20))
    shape: tuple[int, ...] = checked(many(_SIZE, 8))
    writable: bool = checked(boolean)
    offset: int = checked(_SIZE)
    group: str = checked(_SHORT)  # the list of tensors that it belongs to, or ""
    strides: tuple[int, ...] = checked(many(_SIZE, 8), default=())  # in elements; none: contiguous


@dataclass(frozen=True)
class Scalar:
    dtype: str = checked(choice("int64", "float64"))
    value: int | float = checked(number)


@dataclass(frozen=True)
class Declare:
    """Tensors of the next `Bind`, in order: its first ones, or those following what was already declared."""

    arguments: tuple[Argument, ...] = checked(many(record(Argument), MAX_DECLARED, 1))


@dataclass(frozen=True)
class Bind:
    """Descriptors: input arena, output arena. Reserve addresses, map both, and make the arguments of every call.

    Its tensors are those declared since the last `Bind`.
    """

    symbol: str = checked(text(200))
    scalars: tuple[Scalar, ...] = checked(many(record(Scalar), 64))
    sizes: tuple[int, ...] = checked(many(_SIZE, 64))
    sets: int = checked(integer(1, MAX_SETS))
    input_bytes: int = checked(_SIZE)
    input_stride: int = checked(_SIZE)
    output_bytes: int = checked(_SIZE)
    output_stride: int = checked(_SIZE)
    inputs_writable: bool = checked(boolean)  # true only to find out afterwards which input was written to
    forms: Forms = checked(forms)
    seed: int = checked(integer(0, (1 << 63) - 1))  # of the weights that a module draws
    absent: tuple[int, ...] = checked(
        ascending(1 << 14, MAX_ABSENT), default=()
    )  # places of tensors that the case lacks


@dataclass(frozen=True)
class Call:
    """Call the kernel plainly on these sets, then synchronize the device."""

    sets: tuple[int, ...] = checked(many(integer(0, MAX_SETS - 1), MAX_SETS))


@dataclass(frozen=True)
class Sample:
    """Time single cold calls by the event/sync protocol. Answered by `Sampled`."""

    samples: int = checked(integer(1, MAX_SAMPLES))
    budget_ns: int = checked(integer(1, _NANOSECONDS))


@dataclass(frozen=True)
class Capture:
    """Capture the call on every set as its own graph. Answered by `Captured`."""


@dataclass(frozen=True)
class Assemble:
    """Descriptor: output arena. Map it, and make one parent graph of the drawn calls in the drawn order.

    With graphs, nothing of the submission runs after this.
    """

    order: tuple[int, ...] = checked(many(integer(0, MAX_SETS - 1), MAX_SETS))


@dataclass(frozen=True)
class Round:
    """Descriptor: input arena. Map it at the reserved addresses, launch, synchronize. Answered by `Timed`."""


@dataclass(frozen=True)
class Unmap:
    """The round is over: unmap both arenas, so that their memory is free when the judge gives it back."""


@dataclass(frozen=True)
class Release:
    """Unmap the arenas and forget the calls."""


@dataclass(frozen=True)
class Record:
    """Capture the call on set 0 and describe it as data (`harness.recording`). Answered by `Recorded`."""


@dataclass(frozen=True)
class Deliver:
    """Descriptors: a memory file of the size in `Recorded`, and an arena for the scratch, if there is any.

    Write the recording into the file and copy the scratch into the arena.
    """


@dataclass(frozen=True)
class Profile:
    """Profile `repeats` times `active` calls, with some before that are not recorded. Answered by `Profiled`."""

    active: int = checked(integer(1, 32))
    repeats: int = checked(integer(1, 4))
    parts: tuple[ProfilePart, ...] = checked(many(choice(*get_args(ProfilePart)), 3, 1))


@dataclass(frozen=True)
class Draw:
    """To a foreign reference: make the inputs of set 0. `options` is a JSON object of what it gets by name."""

    form: str = checked(choice(*FORMS))
    seed: int = checked(integer(0, (1 << 63) - 1))
    options: str = checked(text(20_000))


@dataclass(frozen=True)
class Verify:
    """To a foreign reference: let its own check judge what is in the outputs of set 0. Answered by `Said`."""


@dataclass(frozen=True)
class CompileOnly:
    """From now on compile Triton's kernels for this architecture, and launch none: there is no such device."""

    architecture: str = checked(text(20))


@dataclass(frozen=True)
class Inspect:
    """Collect the code that was compiled by now. Answered by `Profiled`."""


@dataclass(frozen=True)
class Fetch:
    """Descriptor: a memory file of the size that `Profiled` told. Write the artefact of this name into it."""

    name: str = checked(choice(*ARTEFACTS))


# ---- commands: judge → launcher -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Load:
    """Descriptors: a recording, and the arena with its scratch, if there is any. Load it in place of the last one.

    Answered by `Loaded`.
    """

    input_bytes: int = checked(_SIZE)
    output_bytes: int = checked(_SIZE)


@dataclass(frozen=True)
class Replay:
    """Descriptors: input arena, output arena; or none, for those of the previous call. Map them, evict the cache, call.

    The first one builds the graph, which needs its memory to be mapped. Answered by `Replayed`.
    """


# ---- replies: runner → judge --------------------------------------------------------------------------------------


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
    log: str = checked(_LONG)
    interpreted: bool = checked(boolean)


@dataclass(frozen=True)
class Failed:
    """The submission raised, did not compile, or cannot run on a CPU. Unless `fatal`, the runner may be asked again."""

    outcome: str = checked(choice("compile_error", "runtime_error", "memory_limit", "unsupported"))
    message: str = checked(_SHORT)
    traceback: str = checked(_LONG)
    fatal: bool = checked(boolean)  # the device's context is lost


@dataclass(frozen=True)
class Done:
    pass


@dataclass(frozen=True)
class Said:
    """Why an answer is wrong, or nothing."""

    text: str = checked(_SHORT)


@dataclass(frozen=True)
class Sampled:
    """Each sample by the device's events, and by the host from releasing the stream until the device is idle.

    `hold` says how the stream was held until the call was enqueued.
    """

    claimed_ns: tuple[int, ...] = checked(many(integer(0, _NANOSECONDS), MAX_SAMPLES, 1))
    span_ns: tuple[int, ...] = checked(many(integer(0, _NANOSECONDS), MAX_SAMPLES, 1))
    hold: Literal["memory", "spin", "none"] = checked(choice("memory", "spin", "none"))


@dataclass(frozen=True)
class Captured:
    graphs: bool = checked(boolean)
    reason: str = checked(_SHORT)


@dataclass(frozen=True)
class Timed:
    """The batch by the device's events, and by the host from releasing the stream until the device is idle."""

    claimed_ns: int = checked(integer(0, _NANOSECONDS))
    span_ns: int = checked(integer(0, _NANOSECONDS))


@dataclass(frozen=True)
class Artefact:
    """One of the documents of a profile."""

    name: str = checked(choice(*ARTEFACTS))
    file_bytes: int = checked(_SIZE)


@dataclass(frozen=True)
class Profiled:
    """What can be fetched. All of it is the runner's own word.

    It is also the first frame of a collector, which offers what a tool wrote about the runner.
    """

    artefacts: tuple[Artefact, ...] = checked(many(record(Artefact), MAX_ARTEFACTS))


@dataclass(frozen=True)
class Recorded:
    """How large the recording and its scratch are; or both 0, and why the call cannot be replayed."""

    file_bytes: int = checked(_SIZE)
    scratch_bytes: int = checked(_SIZE)
    reason: str = checked(_SHORT)


# ---- replies: launcher → judge ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Function:
    """What a launch of a function uses: registers and local memory per thread, static shared memory per block."""

    registers: int = checked(integer(0, 1 << 16))
    local_bytes: int = checked(integer(0, 1 << 30))
    shared_bytes: int = checked(integer(0, 1 << 20))


@dataclass(frozen=True)
class Loaded:
    """The functions that the recording launches, in order of first launch.

    Also how far the launcher's clocks differ for our own kernel: events beyond CUPTI, the host beyond events.
    """

    functions: tuple[Function, ...] = checked(many(record(Function), MAX_FUNCTIONS))
    event_extra_ns: int = checked(integer(0, _NANOSECONDS))
    span_extra_ns: int = checked(integer(0, _NANOSECONDS))


@dataclass(frozen=True)
class Replayed:
    """One call by three clocks: CUPTI's from the first node's start to the last one's end, the device's events around
    the graph, and the host's from releasing the stream until the device is idle.
    """

    device_ns: int = checked(integer(0, _NANOSECONDS))
    event_ns: int = checked(integer(0, _NANOSECONDS))
    span_ns: int = checked(integer(0, _NANOSECONDS))
    nodes_ns: tuple[int, ...] = checked(many(integer(0, _NANOSECONDS), MAX_TOLD_NODES))  # of the first to start


@dataclass(frozen=True)
class Broken:
    """The launcher itself failed. From a runner this is not a valid reply."""

    message: str = checked(_SHORT)
    traceback: str = checked(_LONG)


Command = (
    Welcome
    | Place
    | Build
    | Declare
    | Bind
    | Call
    | Sample
    | Capture
    | Assemble
    | Round
    | Unmap
    | Release
    | Record
    | Deliver
    | Profile
    | Draw
    | Verify
    | CompileOnly
    | Inspect
    | Fetch
    | Load
    | Replay
)
Reply = (
    Hello
    | Ready
    | Built
    | Failed
    | Done
    | Said
    | Sampled
    | Captured
    | Timed
    | Recorded
    | Profiled
    | Loaded
    | Replayed
    | Broken
)
Kinds = Mapping[str, Check]


def _kinds(classes: Iterable[type[Any]]) -> Kinds:
    return {cls.__name__: record(cls) for cls in classes}


COMMANDS = _kinds([*get_args(Command)])
REPLIES = _kinds([*get_args(Reply)])
