"""Fetches the documents that a runner or a collector offers, into memory files of the announced sizes. Trusted."""

from __future__ import annotations

import os
from collections.abc import Iterator

from harness.judge.session.conversation import Session
from harness.judge.session.memory_file import content_of, memory_file
from harness.judge.session.time_limit import TimeLimit
from harness.wire import commands, replies

MAX_BYTES = 32 << 20


def documents(
    session: Session, offer: replies.Profiled, limit: TimeLimit, doing: str, too_large: list[str]
) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of the offered documents.

    Documents larger than `MAX_BYTES` are not fetched; a line about each is appended to `too_large`.

    Raises:
        SubmissionFault: as for `Session.ask`.
    """
    for name, nbytes in {artefact.name: artefact.file_bytes for artefact in offer.artefacts}.items():
        if nbytes > MAX_BYTES:
            too_large.append(f"{name}: {nbytes:,} bytes, more than {MAX_BYTES:,}")
            continue
        with memory_file() as file:
            os.ftruncate(file, nbytes)
            session.ask(commands.Fetch(name=name), replies.Done, limit=limit, doing=doing, descriptors=[file])
            # The runner may have made the file larger than announced.
            yield name, content_of(file, nbytes)
