"""Submitted sources as the database has them."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import Row

from harness.submission import Submission
from kernelmark.service.submissions import SourceFile

_FILES = TypeAdapter(tuple[SourceFile, ...])


def stored_files(beside: str) -> tuple[SourceFile, ...]:
    """The additional files of a submission, from the column `beside`."""
    return _FILES.validate_json(beside)


def as_stored(submission: Submission) -> str:
    """The value of the column `beside`, in the order of the submission's hash."""
    return json.dumps([{"name": name, "content": b64encode(raw).decode()} for name, raw in submission.beside])


def submission(row: Row[Any]) -> Submission:
    """The submission in a row with `name`, `author`, `language`, `source` and `beside`."""
    return Submission(
        name=row.name,
        author=row.author,
        language=row.language,
        source=row.source,
        beside=tuple((file.name, file.content) for file in stored_files(row.beside)),
    )
