"""Fetches the documents that a runner offers, each into a memory file of the size that it announced. Trusted."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from harness import wire
from harness.judge.session import Session
from harness.judge.session.memory_file import memory_file
from harness.judge.session.time_limit import TimeLimit
from harness.problem import Limits

MAX_BYTES = 32 << 20


def limit_s(limits: Limits) -> float:
    """Calls that are watched take longer, and the first may have to compile."""
    return limits.time_s + limits.build_s


def fetched(
    session: Session, told: Sequence[wire.Artefact], limit: TimeLimit, doing: str, too_large: list[str]
) -> Iterator[tuple[str, bytes]]:
    """Each document with its name; those that are too large are not fetched, and a line about each is added.

    Raises:
        SubmissionFault: the runner does not deliver.
    """
    for name, nbytes in {each.name: each.file_bytes for each in told}.items():
        if nbytes > MAX_BYTES:
            too_large.append(f"{name}: {nbytes:,} bytes, more than {MAX_BYTES:,}")
            continue
        with memory_file() as file:
            os.ftruncate(file, nbytes)
            session.ask(wire.Fetch(name=name), wire.Done, limit=limit, doing=doing, descriptors=[file])
            # As much as was told, however large the runner has made the file.
            yield name, os.pread(file, nbytes, 0)
