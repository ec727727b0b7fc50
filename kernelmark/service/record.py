"""The document of a ledger's head. Who keeps a copy can tell later whether the ledger was rewritten."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from harness.verdict import Sha256
from kernelmark.service.submissions import ServiceDocument, Slug


class LedgerHead(ServiceDocument):
    """The last line of a problem's ledger; of one without lines the number 0 and a hash of zeros."""

    problem: Slug
    seq: Annotated[int, Field(ge=0)]
    """The line's number, counted from 1."""
    sha256: Sha256
