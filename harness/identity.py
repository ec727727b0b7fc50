"""The hash that identifies problems, submissions and ledger lines. Pure, standard library only."""

from __future__ import annotations

import hashlib


def length_prefixed_sha256(*parts: bytes) -> str:
    """SHA-256 over parts, each behind its length as 8 bytes, so that no two lists of parts share a hash by splicing."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.hexdigest()
