"""Fuzzes the frame decoder: `python tests/fuzz/frames.py -runs=200000`, or `-max_total_time=60`.

Nothing but a `WireError` may leave it, and what it accepts is of the protocol: it survives encoding and decoding.
"""

from __future__ import annotations

import sys
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

with atheris.instrument_imports(include=["harness.wire", "json"]):
    from harness.wire import checks, commands, frame, replies

from tests.fuzz.campaign import run
from tests.unit.test_wire import COMMANDS, REPLIES


def frames(data: bytes) -> None:
    for kinds in (replies.REPLIES, commands.COMMANDS):
        try:
            token, message = frame.decode(data, kinds)
        except checks.WireError as error:
            said = str(error)
            assert said.replace("\n", "").isprintable(), "what it says of a hostile frame is safe to print"
            continue
        assert 0 <= token < 1 << 63
        try:
            again = frame.encode(token, message)
        except checks.WireError:  # what was made printable is longer
            assert kinds is commands.COMMANDS, "every reply that is accepted fits into a frame again"
            continue
        assert frame.decode(again, kinds) == (token, message)


def seeds() -> list[bytes]:
    long = [replies.Built(log="\t" * 8000, interpreted=True), replies.Built(log="\U0001f600" * 2000, interpreted=True)]
    found = [frame.encode(number, message) for number, message in enumerate([*REPLIES, *COMMANDS, *long])]
    found += [frame.encode(1, REPLIES[2]).replace(b'"log":""', b'"log":"' + text * 1000 + b'"') for text in ESCAPES]
    return [*found, b"[" * 4000, b'{"token":1,"kind":"Done","token":1}', b'{"a":' * 1200]


ESCAPES = (b"\\u001b", b"\\ud800", b"\\u202e", "\u00e9".encode(), "\U0001f600".encode())
NUMBERS = ("true", "null", "NaN", "-Infinity", "1e999", "-0")
WORDS = (*replies.REPLIES, *commands.COMMANDS, *NUMBERS, '"token":', '"kind":', "\\ud800")

if __name__ == "__main__":
    run("frames", frames, seeds(), WORDS)
