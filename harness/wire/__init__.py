"""The protocol between judge and runner: a closed set of frames over a Unix SOCK_SEQPACKET socket.

A frame is one packet of at most `MAX_FRAME_BYTES`, with a JSON object `{"token", "kind", ...fields}`. The judge sends a
command with a new random token and, for some commands, file descriptors. The runner answers with exactly one reply that
echoes the token. A reply that is early, late, repeated or meant for another command has the wrong token, and the judge
ends the conversation. Both sides decode with the same strict code, but only the judge depends on it: every byte from
the runner is untrusted. Only the judge sends descriptors; it never receives any.

This package uses only the standard library, since the runner's sandbox contains it.
"""
