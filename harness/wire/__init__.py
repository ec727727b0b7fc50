"""The line between judge and runner: a closed set of frames over a unix SOCK_SEQPACKET socket.

One frame is one packet of at most `MAX_FRAME_BYTES`, a JSON object `{"token", "kind", ...fields}`. The judge sends a
command with a fresh random token and, for some commands, file descriptors; the runner answers with exactly one reply
that echoes the token. A reply that comes early, late, twice or to another command therefore has the wrong token, and
the judge ends the conversation. Both sides decode with the same strict code, but only the judge needs it: every byte
from the runner is untrusted. Descriptors go one way only; one sent by the runner is never received.

Standard library only: the runner's sandbox contains this package.
"""
