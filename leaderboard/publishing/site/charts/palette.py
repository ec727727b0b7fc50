"""Which colour each author and which shape each case has, the same in all plots of a board. Trusted; pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from leaderboard.publishing.site.charts.plot import SHAPES

COLOURS = 8  # the classes by1 to by8 of the stylesheet; further authors are grey


class LegendKey(NamedTuple):
    """One entry of a legend: a picture and what it stands for."""

    picture: Markup
    name: str


class Palette:
    """The colours of a board's authors, in the order of their rows, and the shapes of its cases, which repeat."""

    def __init__(self, authors: Sequence[str], cases: Sequence[str]) -> None:
        coloured = list(dict.fromkeys(authors))[:COLOURS]
        self._styles = {author: f"by{number}" for number, author in enumerate(coloured, start=1)}
        self._cases = {name: number for number, name in enumerate(dict.fromkeys(cases))}

    def style(self, author: str) -> str:
        """A class of the stylesheet."""
        return self._styles.get(author, "faint")

    def case(self, name: str) -> int | None:
        """The number of a case, which is also that of its shape; None if it is not drawn."""
        return self._cases.get(name)

    def authors(self) -> list[LegendKey]:
        return [LegendKey(_picture(style, "m-5-2.5h10v5h-10z"), author) for author, style in self._styles.items()]

    def cases(self) -> list[LegendKey]:
        return [
            LegendKey(_picture("faint", SHAPES[number % len(SHAPES)]), name) for name, number in self._cases.items()
        ]


def _picture(style: str, path: str) -> Markup:
    return Markup(f'<svg class="key {style}" viewBox="-5 -5 10 10" aria-hidden="true"><path d="M0 0{path}"/></svg>')
