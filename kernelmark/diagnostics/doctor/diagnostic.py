"""The result of one check of the doctor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "warn", "fail"]


@dataclass(frozen=True)
class Diagnostic:
    """The result of one check; `blocks` says that no grading can run while it fails.

    Diagnostics without a fault share a line with the others of the group that they are `part_of`.
    """

    status: Status
    check: str
    text: str
    remedy: str = ""
    blocks: bool = False
    part_of: str = ""
