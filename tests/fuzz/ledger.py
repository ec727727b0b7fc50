"""Fuzzes the ledger reader: `python tests/fuzz/ledger.py -runs=200000`, or `-max_total_time=60`.

The first byte chooses: the bytes of a whole file, edits to a valid one, or the document of a line that is chained
properly. Nothing but a `LedgerError` may leave; what is read from an edited file is what was written to the original,
whole line by whole line; a torn last line hides no other, and the next append puts it right. A last line that lacks its
newline alone gets it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import atheris

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

with atheris.instrument_imports(include=["leaderboard", "harness.verdict", "harness.errors", "harness.files.identity"]):
    from harness.errors import LedgerError
    from leaderboard.publishing.markdown import board
    from leaderboard.record.entry import Entry, decode, encode
    from leaderboard.record.ledger import JsonlLedger
    from leaderboard.standings.ranking import rank

from harness.verdict import Verdict
from tests.fuzz.campaign import run
from tests.verdicts import accepted, failed

MEMORY = Path("/dev/shm")


def _chained(documents: list[bytes]) -> list[tuple[Entry, bytes]]:
    found: list[tuple[Entry, bytes]] = []
    for document in documents:
        found.append(encode(found[-1][0] if found else None, document))
    return found


NEW = failed(run="f" * 16)
DOCUMENTS = [accepted(modes=("graphs",)).to_json().encode(), failed().to_json().encode()]
LINES = _chained([failed(run=f"{n:016x}").to_json().encode() for n in range(3)])
ORIGINAL = b"".join(line for _, line in LINES)


def ledger(data: bytes) -> None:
    choice, rest = data[:1], data[1:]
    if choice == b"f":
        _file(rest)
    elif choice == b"e" and len(rest) >= 4:
        _file(_edited(rest))
    elif choice == b"d":
        _document(rest)
    elif choice == b"v" and len(rest) >= 3:
        _document(_replaced(rest))


_BEGINS = re.compile(rb'<<<<<<< |\|\|\|\|\|\|\| |=======\n|>>>>>>> |.{0,248}"(prev|hash)":"', re.DOTALL)
"""A line of a ledger, even a damaged one, or one that a merge left there."""


def _edited(data: bytes) -> bytes:
    """The original with up to three pieces of it replaced: place, length of what goes, length of what comes, that."""
    content = ORIGINAL
    for _ in range(3):
        if len(data) < 4:
            break
        place, cut, come = int.from_bytes(data[:2]) % (len(content) + 1), data[2], data[3]
        if cut == 255:  # torn
            cut = len(content)
        content = content[:place] + data[4 : 4 + come] + content[place + cut :]
        data = data[4 + come :]
    return content


def _file(content: bytes) -> None:
    PATH.write_bytes(content)
    TORN.unlink(missing_ok=True)
    book, entries, broken = JsonlLedger(PATH), [], False
    try:
        entries += book.read()
        assert book.verify() >= len(entries)
    except LedgerError as error:
        broken = True
        message = str(error)
        assert "\n" not in message
    lines = [line + b"\n" for line in content.split(b"\n")[:-1]]
    garbage = bool(lines)
    while lines and not _BEGINS.match(lines[-1]):  # it is moved aside with what is unfinished
        lines.pop()
    whole = b"".join(lines)
    if not broken:
        hashes = _hashes(b"".join(line for line in lines if _BEGINS.match(line)))
        assert [entry.hash for entry in entries] == [digest for digest, kind in hashes if kind == b"verdict"]
        assert book.verify() == len(hashes)
    try:
        added = book.append(NEW)
    except LedgerError:
        assert broken or (garbage and not lines), "a file without a ledger line is left alone"
        assert PATH.read_bytes() == content, "what could not be appended to is left as it was"
        return
    after, rest = PATH.read_bytes(), content[len(whole) :]
    assert after.startswith(whole)
    if rest and after.startswith(content + b"\n"):
        finished = decode(rest + b"\n")
        assert b"\n" not in rest, "only the newline of one line was missing"
        assert decode(after[len(content) + 1 :]).prev == finished.hash
        entries += [finished] if finished.kind == "verdict" else []
        rest = b""
    else:
        assert decode(after[len(whole) :]).hash == added.hash
    assert (TORN.read_bytes() if TORN.exists() else b"\n") == rest + b"\n", "a torn line is kept"
    if not broken:
        assert [entry.hash for entry in book.read()] == [*(entry.hash for entry in entries), added.hash]


def _hashes(whole: bytes) -> list[tuple[str, bytes]]:
    """Each line's hash, worked out again, and its kind; a chain has no key, and libFuzzer learns hashes by itself."""
    found, prev = [], "0" * 64
    for number, line in enumerate(whole.split(b"\n")[:-1], 1):
        body = b"{" + line.partition(b'"kind":')[1] + line.partition(b'"kind":')[2]
        parts = (b"kernelmark ledger", b"%d" % number, prev.encode(), body)
        digest = hashlib.sha256(b"".join(len(part).to_bytes(8, "big") + part for part in parts)).hexdigest()
        head = b'{"seq":%d,"prev":"%s","hash":"%s",' % (number, prev.encode(), digest.encode())
        assert head + body[1:] == line, "a line that was changed passes for whole"
        found.append((digest, body.split(b'"')[3]))
        prev = digest
    return found


def _replaced(data: bytes) -> bytes:
    """A valid document with one value, somewhere in it, replaced by other JSON, or with one key more or less."""
    tree: Any = json.loads(DOCUMENTS[data[0] % 2])
    node, path = tree, list(data[1:9])
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            return DOCUMENTS[0]
        key = keys[(path.pop(0) if path else 0) % len(keys)]
        if not isinstance(node[key], dict | list) or (path and path[0] == 255):
            break
        node = node[key]
    try:
        node[key] = json.loads(data[9:])
    except (ValueError, RecursionError):
        del node[key]
    return json.dumps(tree, separators=(",", ":"), ensure_ascii=bool(data[0] & 2)).encode("utf-8", "surrogatepass")


def _document(document: bytes) -> None:
    if b"\n" in document:
        return
    [(one, line), (_, after)] = _chained([document, DOCUMENTS[0]])
    PATH.write_bytes(line + after)
    read = list(JsonlLedger(PATH).read())
    assert [entry.document for entry in read] == [document, DOCUMENTS[0]]
    assert decode(line) == one
    try:
        verdict = one.verdict
    except LedgerError as error:
        message = str(error)
        assert "\n" not in message
    else:
        assert Verdict.from_json(verdict.to_json()) == verdict
    try:
        board(rank(JsonlLedger(PATH)))
    except LedgerError as error:
        message = str(error)
        assert "\n" not in message


VALUES = (
    '"2026-01-01T00:00:00"', '"0001-01-01T00:00:00+14:00"', '"9999-12-31T23:59:59-12:00"', '"accepted"', '"\\ud800"',
    '""', "1e308", "1e19", "-1", "-0.0", "0", "9" * 23, "NaN", "null", "true", "[]", "{}",
)  # fmt: skip


def seeds() -> list[bytes]:
    found = [b"f" + ORIGINAL, b"f" + ORIGINAL[:-1], b"f", b"f\n", b"f" + ORIGINAL + b"{}\n"]
    places = [(0, 0, b" "), (7, 0, b"0"), (7, 1, b"2"), (500, 255, b""), (len(ORIGINAL), 0, b"torn"), (1200, 1, b"\n")]
    found += [b"e" + place.to_bytes(2) + bytes([cut, len(come)]) + come for place, cut, come in places]
    found += [b"d" + document for document in DOCUMENTS]
    found += [b"d" + b"[" * 5000, b"d", b"d\xff", b"dnull", b'd{"kind":"verdict"}']
    root = range(len(json.loads(DOCUMENTS[0])))
    return found + [b"v" + bytes([0, n, 255, *[0] * 6]) + value.encode() for n in root for value in VALUES]


WORDS = ('{"seq":', '"prev":"', '"hash":"', '"kind":"verdict",', '"verdict":', *VALUES)

if __name__ == "__main__":
    os.fsync = lambda _: None  # what is durable after a power cut is not asked here
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None, prefix="fuzz_") as scratch:
        PATH = Path(scratch) / "softmax.jsonl"
        TORN = PATH.with_name("softmax.jsonl.torn")
        run("ledger", ledger, seeds(), WORDS)
