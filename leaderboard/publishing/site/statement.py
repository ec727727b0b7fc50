"""The parts of a problem that the site shows in addition to its ledger; `kernelmark` reads the problem and makes them.

Trusted; `leaderboard` itself does not read problems.
"""

from __future__ import annotations

from typing import Literal

from harness.verdict import FrozenModel, Sha256
from leaderboard.standings.visibility import Rule


class StatedArgument(FrozenModel):
    """One argument of the entry function, or one tensor of a case; its shape has expressions or sizes, as text."""

    name: str
    role: str
    shape: str
    dtype: str
    memory: Literal["device", "host"] = "device"
    """Where it is on a GPU; on a CPU both are the same."""


class Shapes(FrozenModel):
    """One benchmark case with its tensors' sizes; the minimum bytes and FLOP are those of one call."""

    case: str
    devices: tuple[str, ...]
    params: dict[str, int | str]
    tensors: tuple[StatedArgument, ...]
    minimum_bytes: int
    minimum_flops: int


class Statement(FrozenModel):
    """A problem as its page shows it: Markdown, arguments, sizes, the reference, and when sources are published."""

    slug: str
    title: str
    tags: tuple[str, ...] = ()
    sha256: Sha256
    text: str = ""
    entry: str = ""
    arguments: tuple[StatedArgument, ...] = ()
    shapes: tuple[Shapes, ...] = ()
    tests: int = 0
    reference: str = ""
    rule: Rule
