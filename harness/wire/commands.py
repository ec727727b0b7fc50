"""The closed set of commands that the judge sends to a runner or a launcher, with the limits of every field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from harness.languages import LANGUAGES
from harness.shared.call import MAX_ABSENT, STYLES, Forms
from harness.shared.foreign import FORMS
from harness.shared.layouts import OTHER_LAYOUTS
from harness.wire.checks import (
    ascending,
    boolean,
    checked,
    choice,
    extra_file,
    forms,
    integer,
    kinds,
    many,
    number,
    record,
    text,
)  # fmt: skip
from harness.wire.protocol import ARTEFACTS, SHORT, SIZE

MAX_SETS = 2048
MILLISECONDS = integer(0, 1 << 40)
MAX_DECLARED = 128  # tensors in one frame, which fit even with strides and names of 64 letters
ProfilePart = Literal["torch", "stacks", "memory"]
Converts = Literal["never", "widening", "always"]


@dataclass(frozen=True)
class Welcome:
    """Descriptor: the pipe that becomes stdout and stderr. Answered by `Ready` once torch and the device are up."""


@dataclass(frozen=True)
class Build:
    """Descriptor: the source. Import it, or compile it and look up the symbols. Answered by `Built` or `Failed`."""

    language: str = checked(choice(*LANGUAGES))
    symbols: tuple[str, ...] = checked(many(text(200), 64, 1))
    architecture: str = checked(text(20))
    line_info: bool = checked(boolean, default=False)  # for tools: also logs what every kernel uses
    style: str = checked(choice(*STYLES), default="writes")  # for Python; compiled code always writes its outputs
    signature: str = checked(SHORT, default="")  # how Python is called, for messages
    converts: Converts = checked(choice(*get_args(Converts)), default="never")  # results of another dtype


@dataclass(frozen=True)
class Place:
    """Descriptor: a file that the submission includes or imports. Put it into its folder. Comes before `Build`."""

    name: str = checked(extra_file)


@dataclass(frozen=True)
class Pack:
    """To a build sandbox: pack the results of the build. Answered by `Profiled`."""


@dataclass(frozen=True)
class Unpack:
    """Descriptor: what a build sandbox packed for the same submission. Unpack it. Comes before `Build`."""


@dataclass(frozen=True)
class TensorArgument:
    """One tensor of a call; that of set k is at `offset + k * stride` in its arena."""

    name: str = checked(SHORT)
    dtype: str = checked(text(20))
    shape: tuple[int, ...] = checked(many(SIZE, 8))
    writable: bool = checked(boolean)
    offset: int = checked(SIZE)
    group: str = checked(SHORT)  # the list of tensors that it belongs to, or ""
    strides: tuple[int, ...] = checked(many(SIZE, 8), default=())  # in elements; none: contiguous
    host: bool = checked(boolean, default=False)  # in the arena of the host's memory
    layouts: tuple[str, ...] = checked(many(choice(*OTHER_LAYOUTS), 4), default=())  # of a result; none: it is copied


@dataclass(frozen=True)
class Scalar:
    dtype: str = checked(choice("int64", "float64"))
    value: int | float = checked(number)


@dataclass(frozen=True)
class Declare:
    """Tensors of the next `Bind`, in order, following those that were already declared for it."""

    arguments: tuple[TensorArgument, ...] = checked(many(record(TensorArgument), MAX_DECLARED, 1))


@dataclass(frozen=True)
class Bind:
    """Descriptors: the input arena, the output arena, and the arena in the host's memory, if there is one. Reserve
    addresses, map the arenas, and make the arguments of every call.

    The tensors are those declared since the last `Bind`.
    """

    symbol: str = checked(text(200))
    scalars: tuple[Scalar, ...] = checked(many(record(Scalar), 64))
    sizes: tuple[int, ...] = checked(many(integer(-(1 << 63), (1 << 63) - 1), 64))  # int64_t in C
    sets: int = checked(integer(1, MAX_SETS))
    input_bytes: int = checked(SIZE)
    input_stride: int = checked(SIZE)
    output_bytes: int = checked(SIZE)
    output_stride: int = checked(SIZE)
    inputs_writable: bool = checked(boolean)  # true only to find out which input was written to
    forms: Forms = checked(forms)
    seed: int = checked(integer(0, (1 << 63) - 1))  # of the weights that a module draws
    host_stride: int = checked(SIZE, default=0)  # 0: there is no arena in the host's memory
    absent: tuple[int, ...] = checked(ascending(1 << 14, MAX_ABSENT), default=())  # indices of absent tensors


@dataclass(frozen=True)
class Ahead:
    """Let helpers compile what Triton launches in a call of this kind, which will follow later. This binds nothing.

    The tensors are those declared since the last `Bind` or `Ahead`.
    """

    bind: Bind = checked(record(Bind))
    at_most: int = checked(integer(1, 256))  # helpers at a time


@dataclass(frozen=True)
class Count:
    """Say how many kernels the helpers had compiled when they were needed. Answered by `Counted`."""


@dataclass(frozen=True)
class Call:
    """Call the kernel plainly on these sets, then synchronize the device."""

    sets: tuple[int, ...] = checked(many(integer(0, MAX_SETS - 1), MAX_SETS))
    within_ms: int = checked(MILLISECONDS, default=0)  # until the judge gives up; 0: unknown
    begins: bool = checked(boolean, default=False)  # whether this begins a benchmark, whose outputs are not checked


@dataclass(frozen=True)
class MapOutputs:
    """Descriptor: the output arena. Map it at the reserved addresses, for the next round."""


@dataclass(frozen=True)
class Round:
    """Descriptors: the input arena, and the arena in the host's memory, if there is one. Map them at the reserved
    addresses, call the kernel on the first `calls` sets, and synchronize.
    """

    calls: int = checked(integer(1, MAX_SETS))
    within_ms: int = checked(MILLISECONDS, default=0)  # as in `Call`


@dataclass(frozen=True)
class Unmap:
    """The round is over: unmap all arenas, so that the judge can free their memory."""


@dataclass(frozen=True)
class Release:
    """Unmap the arenas and forget the calls; in a launcher, unload the recording."""


@dataclass(frozen=True)
class Record:
    """Capture the call on set 0 and describe it as data (`harness.recording`). Answered by `Recorded`."""


@dataclass(frozen=True)
class Deliver:
    """Descriptors: a memory file of the size in `Recorded`, and an arena for the scratch memory, if there is any.

    Write the recording into the file, and copy the scratch memory into the arena.
    """


# Names of columns in torch.profiler's tables.
SORTS = (
    *(f"{own}{where}_time_total" for own in ("", "self_") for where in ("cpu", "cuda")),
    *(f"{own}{where}_memory_usage" for own in ("", "self_") for where in ("cpu", "cuda")),
    "cpu_time", "cuda_time", "count",
)  # fmt: skip


@dataclass(frozen=True)
class Profile:
    """Profile `repeats` times `active` calls, after some that are not recorded. Answered by `Profiled`."""

    active: int = checked(integer(1, 32))
    repeats: int = checked(integer(1, 4))
    parts: tuple[ProfilePart, ...] = checked(many(choice(*get_args(ProfilePart)), 3, 1))
    wait: int = checked(integer(0, 32), default=1)
    warmup: int = checked(integer(0, 32), default=2)
    sort_by: str = checked(choice("", *SORTS), default="")  # "": own time on the device
    rows: int = checked(integer(1, 10_000), default=60)  # of each table


@dataclass(frozen=True)
class Draw:
    """To a foreign reference: make the inputs of set 0. `options` is a JSON object of its arguments by name."""

    form: str = checked(choice(*FORMS))
    seed: int = checked(integer(0, (1 << 63) - 1))
    options: str = checked(text(20_000))


@dataclass(frozen=True)
class Verify:
    """To a foreign reference: let its own check judge the outputs of set 0. Answered by `Said`."""


@dataclass(frozen=True)
class CompileOnly:
    """From now on compile Triton's kernels for this architecture, but launch none, since there is no such device."""

    architecture: str = checked(text(20))


@dataclass(frozen=True)
class Report:
    """Say whether Triton's kernels could be compiled so far. Answered by `Compiled`."""


@dataclass(frozen=True)
class Inspect:
    """Collect the code that was compiled so far. Answered by `Profiled`."""


@dataclass(frozen=True)
class Fetch:
    """Descriptor: a memory file of the size given in `Profiled`. Write the artefact of this name into it."""

    name: str = checked(choice(*ARTEFACTS))


# ---- commands: judge → launcher -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Load:
    """Descriptors: a recording, and the arena with its scratch memory, if there is any. Load it in place of the last
    one.

    Answered by `Loaded`.
    """

    input_bytes: int = checked(SIZE)
    output_bytes: int = checked(SIZE)
    host_bytes: int = checked(SIZE, default=0)
    scratch_bytes: int = checked(SIZE, default=0)


@dataclass(frozen=True)
class Replay:
    """Descriptors: the arenas as in `Bind`, or none to use those of the previous call. Map them, evict the cache, and
    make the call.

    The first `Replay` builds the graph, whose memory must be mapped. Answered by `Replayed`.
    """


Command = (
    Welcome | Place | Build | Pack | Unpack | Declare | Bind | Ahead | Count | Call | MapOutputs | Round | Unmap
    | Release | Record | Deliver | Profile | Draw | Verify | CompileOnly | Report | Inspect | Fetch | Load | Replay
)  # fmt: skip
COMMANDS = kinds(*get_args(Command))
