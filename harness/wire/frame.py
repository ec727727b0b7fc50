"""Encodes, sends, receives and decodes frames; decoding is safe whatever the bytes."""

from __future__ import annotations

import array
import contextlib
import dataclasses
import fcntl
import json
import select
import socket
import termios
import time
from collections.abc import Iterable, Iterator
from typing import Any

from harness.wire.checks import Kinds, WireError, integer, printable, strict_json
from harness.wire.commands import COMMANDS, Command
from harness.wire.replies import Reply

MAX_FRAME_BYTES = 64 * 1024


class Closed(WireError):
    """The other side is gone."""


def encode(token: int, message: Command | Reply) -> bytes:
    """Encode one message as a packet.

    Raises:
        WireError: the packet would be larger than `MAX_FRAME_BYTES`.
    """
    body = {"token": token, "kind": type(message).__name__, **dataclasses.asdict(message)}
    # Characters are not escaped, so that the longest texts fit. A lone surrogate becomes \udXXX, which is valid JSON.
    text = json.dumps(body, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    frame = text.encode("utf-8", "backslashreplace")
    if len(frame) > MAX_FRAME_BYTES:
        raise WireError(f"a {type(message).__name__} frame of {len(frame):,} bytes is larger than {MAX_FRAME_BYTES:,}")
    return frame


def decode(frame: bytes, kinds: Kinds) -> tuple[int, Any]:
    """Decode one packet as one of `kinds`; returns its token and the message.

    Raises:
        WireError: anything is wrong with the packet. This function raises nothing else, whatever the bytes.
    """
    if len(frame) > MAX_FRAME_BYTES:
        raise WireError(f"a frame larger than {MAX_FRAME_BYTES:,} bytes")
    body = strict_json(frame)
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
        Closed: the other side is gone.
        TimeoutError: the other side left no room in the socket within the timeout.
        WireError: the kernel refused the frame, for example because too many descriptors are in flight (ETOOMANYREFS).
    """
    with _translated("sent"):
        socket.send_fds(sock, [encode(token, message)], list(descriptors))


@contextlib.contextmanager
def _translated(done: str) -> Iterator[None]:
    """Turn every socket error into a `WireError`, except a timeout."""
    try:
        yield
    except TimeoutError:
        raise
    except ConnectionError as error:
        raise Closed("the connection is closed") from error
    except OSError as error:
        raise WireError(f"a frame that cannot be {done} ({error.strerror})") from error


def receive_frame(sock: socket.socket) -> bytes:
    """Receive one packet. If the other side attached descriptors, the kernel drops them, and the packet is refused.

    Raises:
        Closed: the other side is gone.
        TimeoutError: nothing came within the socket's timeout.
        WireError: the packet was larger than the protocol allows, carried descriptors, or could not be received.
    """
    with _translated("received"):
        frame, _, flags, _ = sock.recvmsg(MAX_FRAME_BYTES)
    if flags & socket.MSG_CTRUNC:
        raise WireError("a frame with descriptors attached")
    if flags & socket.MSG_TRUNC:
        raise WireError(f"a frame larger than {MAX_FRAME_BYTES:,} bytes")
    if not frame:
        raise Closed("the connection is closed")
    return frame


def unread_bytes(sock: socket.socket) -> int:
    """The size of the kernel's buffers for frames that the other side has not received yet; 0 if there are none.

    A frame that was only peeked at (MSG_PEEK) counts, and so do its descriptors.
    """
    count = array.array("i", [0])
    fcntl.ioctl(sock, termios.TIOCOUTQ, count)
    return count[0]


def await_readable(sock: socket.socket, seconds: float) -> None:
    """Busy-wait until something arrives at a socket, at most `seconds`: waking up from sleep takes 50 µs and more."""
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    deadline = time.monotonic() + seconds
    while not poll.poll(0) and time.monotonic() < deadline:
        pass


def receive_command(sock: socket.socket) -> tuple[int, Any, list[int]]:
    """Receive one command with its descriptors (at most three); called by the runner's side."""
    frame, descriptors, flags, _ = socket.recv_fds(sock, MAX_FRAME_BYTES, 3)
    if not frame:
        raise Closed("the connection is closed")
    if flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
        raise WireError("a truncated command")
    token, message = decode(frame, COMMANDS)
    return token, message, list(descriptors)
