"""Exemptions: which runs do not count towards their authors' limits a day, since an organizer asked for them.

The ledger stores one just before its verdict, and `standings.usage` reads it. Trusted. A version from before exemptions
skips them.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AwareDatetime, StringConstraints

from harness.verdict import RUN_ID, Record, Verdict


class Exemption(Record):
    """Says that one run does not count; `created_at` is that of its verdict."""

    run: Annotated[str, StringConstraints(pattern=RUN_ID)]
    created_at: AwareDatetime

    @classmethod
    def of(cls, verdict: Verdict) -> Exemption:
        return cls(run=verdict.run, created_at=verdict.created_at)
