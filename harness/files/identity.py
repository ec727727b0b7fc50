"""The hash that identifies problems, submissions and ledger lines. Pure, standard library only."""

from __future__ import annotations

import hashlib


def with_private_cases(problem_sha256: str, private_sha256: str) -> str:
    """The hash of a problem with private cases, from the hashes of its public part and of the private file.

    So without the private file one can still tell from a verdict whether it is for the current public part.
    """
    return length_prefixed_sha256(problem_sha256.encode(), private_sha256.encode())


def length_prefixed_sha256(*parts: bytes) -> str:
    """SHA-256 over parts, each prefixed with its length in 8 bytes, so no two lists of parts give the same input."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.hexdigest()
