"""The hashes that identify problems, submissions and ledger lines. Pure; uses only the standard library."""

from __future__ import annotations

import hashlib


def with_private_cases(problem_sha256: str, private_sha256: str) -> str:
    """The hash of a problem with private cases, from the hashes of its public part and of the private file.

    So even without the private file, one can tell whether a verdict is for the current public part.
    """
    return length_prefixed_sha256(problem_sha256.encode(), private_sha256.encode())


def length_prefixed_sha256(*parts: bytes) -> str:
    """The SHA-256 of parts, each prefixed by its length in 8 bytes, so that no two lists of parts are hashed alike."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.hexdigest()
