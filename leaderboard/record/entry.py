"""One line of the ledger: its bytes, and the hash that chains it to the line before it.

    {"seq":7,"prev":"<hash of line 6>","hash":"<64 hex digits>","kind":"verdict","verdict":{...}}

The other kinds are "moderation", "exempt" (an exemption from the daily limits) and "selection" (an author's choice of
the sources that count at the end); the kind is also the key of the document. A reader skips unknown kinds: they are
part of the chain and have no other effect. `seq` is the line's number, counted from 1, and `prev` of the first line is
64 zeros. The *body* is the line's object without `seq`, `prev` and `hash`, byte for byte as in the line, so a reader in
any language can check the chain whatever its JSON formatting.
`hash` is `length_prefixed_sha256` over the text "kernelmark ledger", `seq` in decimal, `prev` and the body. The ledger
writes lines; the ranking reads them. Trusted.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from pydantic import ValidationError

from harness.errors import LedgerError
from harness.files.identity import length_prefixed_sha256
from harness.verdict import Verdict
from leaderboard.record.moderation import Exemption, Moderation
from leaderboard.record.selection import Selection

P = TypeVar("P")

NO_HASH = "0" * 64
VERDICT = "verdict"
MODERATION = "moderation"
EXEMPT = "exempt"
SELECTION = "selection"
EVENTS = frozenset({MODERATION, EXEMPT, SELECTION})
KINDS = EVENTS | {VERDICT}
_HEAD = re.compile(rb'\{"seq":([1-9]\d{0,14}),"prev":"([0-9a-f]{64})","hash":"([0-9a-f]{64})",')
_HEAD_BYTES = 256  # more than the head has
_KIND = re.compile(rb'\{"kind":"([a-z_]{1,32})",("([a-z_]{1,32})":)?')


@dataclass(frozen=True, slots=True)
class Entry:
    """One recorded line: `document` is its JSON, and `warnings` say what had to be repaired to record it."""

    seq: int
    prev: str
    hash: str
    kind: str
    document: bytes
    warnings: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The whole verdict, parsed and validated anew on each access.

        Raises:
            LedgerError: the entry is of another kind, or its verdict is of a version that this one cannot read.
        """
        return self._parsed(VERDICT, Verdict.from_json)

    @property
    def moderation(self) -> Moderation:
        """The moderation event, parsed anew on each access; raises as `verdict` does."""
        return self._parsed(MODERATION, Moderation.model_validate_json)

    @property
    def exemption(self) -> Exemption:
        """The exemption, parsed anew on each access; raises as `verdict` does."""
        return self._parsed(EXEMPT, Exemption.model_validate_json)

    @property
    def selection(self) -> Selection:
        """The selection, parsed anew on each access; raises as `verdict` does."""
        return self._parsed(SELECTION, Selection.model_validate_json)

    def _parsed(self, kind: str, parse: Callable[[bytes], P]) -> P:
        if self.kind != kind:
            raise LedgerError(f"ledger entry {self.seq} is of kind {self.kind!r}", f"it cannot be read as {kind}")
        try:
            return parse(self.document)
        except ValidationError as error:
            raise unreadable(self, error) from error


def unreadable(entry: Entry, error: ValidationError) -> LedgerError:
    """The error for an intact entry that does not match this version's schema of its kind."""
    first = error.errors(include_url=False)[0]
    key = ".".join(str(part) for part in first["loc"]) or entry.kind
    return LedgerError(f"ledger entry {entry.seq}: {key}: {first['msg']}", "read it with the version that wrote it")


def chain_hash(seq: int, prev: str, body: bytes) -> str:
    """The hash of a line, 64 hexadecimal digits."""
    return length_prefixed_sha256(b"kernelmark ledger", b"%d" % seq, prev.encode(), body)


def encode(
    last: Entry | None, document: bytes, warnings: tuple[str, ...] = (), kind: str = VERDICT
) -> tuple[Entry, bytes]:
    """Chain a document to the last entry; returns the new entry and its line, newline included."""
    seq, prev = (last.seq + 1, last.hash) if last else (1, NO_HASH)
    body = b'{"kind":"%s","%s":%s}' % (kind.encode(), kind.encode(), document)
    digest = chain_hash(seq, prev, body)
    head = b'{"seq":%d,"prev":"%s","hash":"%s",' % (seq, prev.encode(), digest.encode())
    return Entry(seq, prev, digest, kind, document, warnings), head + body[1:] + b"\n"


def resembles(line: bytes) -> bool:
    """Whether it looks like a ledger line, even a damaged one: it has a key of a hash near its beginning."""
    return any(name in line[:_HEAD_BYTES] for name in (b'"prev":"', b'"hash":"'))


def decode(line: bytes) -> Entry:
    """Read one line, newline included, and check its own hash; the caller checks its place in the chain.

    Raises:
        ValueError: it is not a ledger line, or its hash does not match.
    """
    head = _HEAD.match(line)
    if head is None or not line.endswith(b"}\n"):
        raise ValueError("is not a ledger line")
    seq, prev, digest = int(head[1]), head[2].decode(), head[3].decode()
    body = b"{" + line[head.end() : -1]
    if chain_hash(seq, prev, body) != digest:
        raise ValueError("was changed after it was written (its hash does not match)")
    kind = _KIND.match(body)
    if kind is None:
        raise ValueError("names no kind")
    return Entry(seq, prev, digest, kind[1].decode(), body[kind.end() : -1])
