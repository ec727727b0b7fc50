"""The result of one check of the doctor."""

from __future__ import annotations

from typing import Literal, NamedTuple

Status = Literal["ok", "warn", "fail"]


class Diagnostic(NamedTuple):
    """The result of one check; `blocks` says that no grading can run while it fails.

    What is well shares a line with the other parts of what it is `part_of`.
    """

    status: Status
    check: str
    text: str
    remedy: str = ""
    blocks: bool = False
    part_of: str = ""
