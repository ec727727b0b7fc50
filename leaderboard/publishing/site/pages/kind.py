"""What a kind of page is: who makes its pages, what their documents are, and its place in the menu. Trusted; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from harness.verdict import Record
from leaderboard.publishing.site.folder import Page
from leaderboard.publishing.site.inputs import Link, Site


class Kind(NamedTuple):
    """One module of pages."""

    pages: Callable[[Site], Iterator[Page]]
    documents: tuple[type[Record], ...]
    """The data of its pages, whose JSON schemas are published."""
    menu: tuple[Link, ...] = ()
    """Its links at the top of every page."""
