"""What the site knows of a problem besides its ledger: the front door reads the problem and hands this over.

Trusted; the board itself knows no problems.
"""

from __future__ import annotations

from harness.verdict import Record, Sha256
from leaderboard.standings.visibility import Rule


class Argument(Record):
    """One argument of the entry function; the shape is an expression over the parameters."""

    name: str
    role: str
    shape: str
    dtype: str


class Shapes(Record):
    """One benchmark case with its tensors' sizes worked out; bytes and operations are the least for one call."""

    case: str
    devices: tuple[str, ...]
    params: dict[str, int | str]
    tensors: tuple[Argument, ...]
    minimum_bytes: int
    minimum_flops: int


class Statement(Record):
    """A problem as its page tells it: Markdown, arguments, sizes, the reference's source, and when sources appear."""

    slug: str
    title: str
    sha256: Sha256
    text: str = ""
    entry: str = ""
    arguments: tuple[Argument, ...] = ()
    shapes: tuple[Shapes, ...] = ()
    tests: int = 0
    reference: str = ""
    rule: Rule
