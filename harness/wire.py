"""The line between judge and runner: a closed set of frames over a unix SOCK_SEQPACKET socket.

One frame is one packet of at most `MAX_FRAME_BYTES`, a JSON object `{"token", "kind", ...fields}`. The judge sends a
command with a fresh random token and, for some commands, file descriptors; the runner answers with exactly one reply
that echoes the token. A reply that comes early, late, twice or to another command therefore has the wrong token, and
the judge ends the conversation. Both sides decode with the same strict code, but only the judge needs it: every byte
from the runner is hostile. Descriptors travel one way; one sent by the runner is never received.

Standard library only: the runner's sandbox holds this file.
"""

from __future__ import annotations

import dataclasses
import json
import math
import select
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

PROTOCOL = 3
MAX_FRAME_BYTES = 64 * 1024
MAX_SAMPLES = 1000
MAX_SETS = 2048
MAX_DECLARED = 256  # tensors in one frame
_NANOSECONDS = 1 << 53  # a hundred days; the largest integer that every JSON reader keeps


class WireError(Exception):
    """A frame that is not of the protocol; `str()` says what was wrong with it, in words safe to print."""


class Closed(WireError):
    """The other side has gone."""


Check = Callable[[Any], Any]


def printable(text: str) -> str:
    """Make a hostile text safe to store and to print: control characters and lone surrogates become visible escapes."""
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return "".join(c if c in "\n\t" or c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def text(limit: int) -> Check:
    """A string of at most `limit` characters, made printable and cut to `limit` again: escapes are longer."""

    def check(value: Any) -> str:
        if not isinstance(value, str) or len(value) > limit:
            raise WireError(f"expected a text of at most {limit} characters")
        return printable(value)[:limit]

    return check


def line(limit: int) -> Check:
    """The same in one line: whatever breaks a line or aligns in one is shown as it would be written in source."""

    def check(value: Any) -> str:
        if not isinstance(value, str) or len(value) > limit:
            raise WireError(f"expected a text of at most {limit} characters")
        return printable(value).replace("\n", "\\n").replace("\t", "\\t")[:limit]

    return check


def integer(low: int, high: int) -> Check:
    """An integer in [low, high]; true and false are not integers."""

    def check(value: Any) -> int:
        if type(value) is not int or not low <= value <= high:
            raise WireError(f"expected an integer in [{low}, {high}]")
        return value

    return check


def boolean(value: Any) -> bool:
    if type(value) is not bool:
        raise WireError("expected true or false")
    return value


def number(value: Any) -> int | float:
    if type(value) not in (int, float) or value in (math.inf, -math.inf):  # what JSON's 1e999 is read as
        raise WireError("expected a finite number")
    return value  # type: ignore[no-any-return]  # the type was just checked


def many(item: Check, limit: int, at_least: int = 0) -> Check:
    """A list of `at_least` to `limit` items, as a tuple."""

    def check(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list) or not at_least <= len(value) <= limit:
            raise WireError(f"expected a list of {at_least} to {limit} items")
        return tuple(item(v) for v in value)

    return check


def choice(*options: str) -> Check:
    def check(value: Any) -> str:
        if value not in options or not isinstance(value, str):
            raise WireError(f"expected one of {', '.join(options)}")
        return value

    return check


def record(cls: type[Any]) -> Check:
    """An object with exactly the fields of a message class."""
    fields = {f.name: f.metadata["check"] for f in dataclasses.fields(cls)}

    def check(value: Any) -> Any:
        if not isinstance(value, dict) or value.keys() != fields.keys():
            raise WireError(f"expected the fields {sorted(fields)}")
        return cls(**{name: verify(value[name]) for name, verify in fields.items()})

    return check


def checked(check: Check) -> Any:
    return field(metadata={"check": check})


_SHORT, _LONG = line(500), text(8_000)
_SIZE = integer(0, 1 << 50)


# ---- commands: judge → runner -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Welcome:
    """Descriptor: the pipe that becomes stdout and stderr. Answered by `Ready` once torch and the device are up."""


@dataclass(frozen=True)
class Build:
    """Descriptor: the source. Import it, or compile it and look the symbols up. Answered by `Built` or `Failed`."""

    language: str = checked(choice("py", "cu", "cpp"))
    symbols: tuple[str, ...] = checked(many(text(200), 64, 1))
    architecture: str = checked(text(20))


@dataclass(frozen=True)
class Argument:
    """One tensor of a call: set k of it lies at `offset + k * stride` of its arena."""

    name: str = checked(_SHORT)
    dtype: str = checked(text(20))
    shape: tuple[int, ...] = checked(many(_SIZE, 8, 1))
    writable: bool = checked(boolean)
    offset: int = checked(_SIZE)
    group: str = checked(_SHORT)  # the list of tensors that it belongs to, or ""


@dataclass(frozen=True)
class Scalar:
    dtype: str = checked(choice("int64", "float64"))
    value: int | float = checked(number)


@dataclass(frozen=True)
class Declare:
    """Tensors of the next `Bind`, in their order: its first ones, or those that come after what was declared before."""

    arguments: tuple[Argument, ...] = checked(many(record(Argument), MAX_DECLARED, 1))


@dataclass(frozen=True)
class Bind:
    """Descriptors: input arena, output arena. Reserve addresses, map both, and make the arguments of every call.

    The tensors are those that were declared since the last one.
    """

    symbol: str = checked(text(200))
    scalars: tuple[Scalar, ...] = checked(many(record(Scalar), 64))
    sizes: tuple[int, ...] = checked(many(_SIZE, 64))
    sets: int = checked(integer(1, MAX_SETS))
    input_bytes: int = checked(_SIZE)
    input_stride: int = checked(_SIZE)
    output_bytes: int = checked(_SIZE)
    output_stride: int = checked(_SIZE)
    inputs_writable: bool = checked(boolean)  # true only to find out afterwards who wrote to an input


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
    """Capture the call on every set as a graph of its own. Answered by `Captured`."""


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
    """The submission raised, or did not compile. Unless `fatal`, the runner may be asked again."""

    outcome: str = checked(choice("compile_error", "runtime_error", "memory_limit"))
    message: str = checked(_SHORT)
    traceback: str = checked(_LONG)
    fatal: bool = checked(boolean)  # the device's context is lost


@dataclass(frozen=True)
class Done:
    pass


@dataclass(frozen=True)
class Sampled:
    """Each sample by the device's events and by the host, from the release of the stream to the device's end.

    `hold` says what kept the stream until the call was enqueued.
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
    """The batch by the device's events, and by the host from the release of the stream to the device's end."""

    claimed_ns: int = checked(integer(0, _NANOSECONDS))
    span_ns: int = checked(integer(0, _NANOSECONDS))


Command = Welcome | Build | Declare | Bind | Call | Sample | Capture | Assemble | Round | Unmap | Release
Reply = Hello | Ready | Built | Failed | Done | Sampled | Captured | Timed
Kinds = Mapping[str, Check]


def _kinds(classes: Iterable[type[Any]]) -> Kinds:
    return {cls.__name__: record(cls) for cls in classes}


COMMANDS = _kinds([Welcome, Build, Declare, Bind, Call, Sample, Capture, Assemble, Round, Unmap, Release])
REPLIES = _kinds([Hello, Ready, Built, Failed, Done, Sampled, Captured, Timed])


def encode(token: int, message: Command | Reply) -> bytes:
    """Make the packet for one message.

    Raises:
        WireError: it would be larger than `MAX_FRAME_BYTES`.
    """
    body = {"token": token, "kind": type(message).__name__, **dataclasses.asdict(message)}
    # Characters stand as themselves, so that the longest texts fit; a lone surrogate becomes \udXXX, which is JSON too.
    text = json.dumps(body, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    frame = text.encode("utf-8", "backslashreplace")
    if len(frame) > MAX_FRAME_BYTES:
        raise WireError(f"a {type(message).__name__} frame of {len(frame):,} bytes is larger than {MAX_FRAME_BYTES:,}")
    return frame


def _refuse_constant(name: str) -> Any:
    raise WireError(f"{name} is not a number of the protocol")


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise WireError("a field stands twice")
    return found


def decode(frame: bytes, kinds: Kinds) -> tuple[int, Any]:
    """Read one packet as one of `kinds`; returns its token and the message.

    Raises:
        WireError: anything at all is wrong with it. No other exception leaves this function, whatever the bytes.
    """
    if len(frame) > MAX_FRAME_BYTES:
        raise WireError(f"a frame larger than {MAX_FRAME_BYTES:,} bytes")
    try:
        body = json.loads(frame.decode("utf-8"), parse_constant=_refuse_constant, object_pairs_hook=_refuse_duplicates)
    except (ValueError, RecursionError) as error:  # ValueError: bad UTF-8, bad JSON, an integer of 5,000 digits
        raise WireError(f"a frame that is not JSON ({type(error).__name__})") from None
    if not isinstance(body, dict) or not isinstance(body.get("kind"), str) or "token" not in body:
        raise WireError("a frame without token and kind")
    kind = body.pop("kind")
    token = integer(0, (1 << 63) - 1)(body.pop("token"))
    if kind not in kinds:
        raise WireError(f"an unknown kind of frame {printable(kind[:40])!r}")
    try:
        return token, kinds[kind](body)
    except WireError as error:
        raise WireError(f"a bad {kind} frame: {error}") from None


def send(sock: socket.socket, token: int, message: Command | Reply, descriptors: Iterable[int] = ()) -> None:
    """Send one frame and, from the judge, descriptors with it.

    Raises:
        Closed: the other side has gone.
    """
    try:
        socket.send_fds(sock, [encode(token, message)], list(descriptors))
    except (BrokenPipeError, ConnectionResetError) as error:
        raise Closed("the connection is closed") from error


def receive_frame(sock: socket.socket, flags: int = 0) -> bytes:
    """Receive one packet and no descriptors: the kernel drops those that the other side attached, and we object.

    Raises:
        Closed: the other side has gone.
        WireError: the packet was larger than the protocol allows, or carried descriptors.
    """
    try:
        frame, _, flags, _ = sock.recvmsg(MAX_FRAME_BYTES, 0, flags)
    except ConnectionResetError as error:
        raise Closed("the connection is closed") from error
    if flags & socket.MSG_CTRUNC:
        raise WireError("a frame with descriptors attached")
    if flags & socket.MSG_TRUNC:
        raise WireError(f"a frame larger than {MAX_FRAME_BYTES:,} bytes")
    if not frame:
        raise Closed("the connection is closed")
    return frame


def await_readable(sock: socket.socket, seconds: float) -> None:
    """Look at a socket again and again until something is there, at most `seconds`: waking up takes 50 µs and more."""
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    deadline = time.monotonic() + seconds
    while not poll.poll(0) and time.monotonic() < deadline:
        pass


def receive_command(sock: socket.socket) -> tuple[int, Any, list[int]]:
    """The runner's side: one command with its descriptors (at most two)."""
    frame, descriptors, flags, _ = socket.recv_fds(sock, MAX_FRAME_BYTES, 2)
    if not frame:
        raise Closed("the connection is closed")
    if flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
        raise WireError("a truncated command")
    token, message = decode(frame, COMMANDS)
    return token, message, list(descriptors)
