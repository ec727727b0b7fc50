"""The result of one check of the doctor."""

from __future__ import annotations

from typing import Literal, NamedTuple

Status = Literal["ok", "warn", "fail"]


class Diagnostic(NamedTuple):
    """The result of one check; `blocks` says that no grading can run while it fails."""

    status: Status
    check: str
    text: str
    remedy: str = ""
    blocks: bool = False
