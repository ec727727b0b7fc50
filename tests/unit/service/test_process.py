"""Where a server listens."""

from __future__ import annotations

import socket

from kernelmark.server.process import Listening, _bound


def test_answers_are_sent_at_once() -> None:
    """Of a connection whose protocol asyncio does not know, it leaves Nagle's algorithm on: each answer took 40 ms."""
    with _bound(Listening("127.0.0.1", 0)) as listener:
        listener.listen()
        with socket.create_connection(listener.getsockname()[:2]), listener.accept()[0] as accepted:
            assert accepted.proto == socket.IPPROTO_TCP
