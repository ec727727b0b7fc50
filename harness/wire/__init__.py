"""The line between judge and runner: a closed set of frames over a unix SOCK_SEQPACKET socket.

One frame is one packet of at most `MAX_FRAME_BYTES`, a JSON object `{"token", "kind", ...fields}`. The judge sends a
command with a fresh random token and, for some commands, file descriptors; the runner answers with exactly one reply
that echoes the token. A reply that comes early, late, twice or to another command therefore has the wrong token, and
the judge ends the conversation. Both sides decode with the same strict code, but only the judge needs it: every byte
from the runner is hostile. Descriptors travel one way; one sent by the runner is never received.

Standard library only: the runner's sandbox holds this package.
"""

from harness.wire.checks import WireError, printable
from harness.wire.frame import (
    MAX_FRAME_BYTES,
    Closed,
    await_readable,
    decode,
    encode,
    receive_command,
    receive_frame,
    send,
    unread_bytes,
)
from harness.wire.message import (
    COMMANDS,
    MAX_DECLARED,
    MAX_SETS,
    PROTOCOL,
    REPLIES,
    Argument,
    Assemble,
    Bind,
    Build,
    Built,
    Call,
    Capture,
    Captured,
    Command,
    Declare,
    Done,
    Failed,
    Hello,
    Ready,
    Release,
    Reply,
    Round,
    Sample,
    Sampled,
    Scalar,
    Timed,
    Unmap,
    Welcome,
)

__all__ = [
    "COMMANDS",
    "MAX_DECLARED",
    "MAX_FRAME_BYTES",
    "MAX_SETS",
    "PROTOCOL",
    "REPLIES",
    "Argument",
    "Assemble",
    "Bind",
    "Build",
    "Built",
    "Call",
    "Capture",
    "Captured",
    "Closed",
    "Command",
    "Declare",
    "Done",
    "Failed",
    "Hello",
    "Ready",
    "Release",
    "Reply",
    "Round",
    "Sample",
    "Sampled",
    "Scalar",
    "Timed",
    "Unmap",
    "Welcome",
    "WireError",
    "await_readable",
    "decode",
    "encode",
    "printable",
    "receive_command",
    "receive_frame",
    "send",
    "unread_bytes",
]
