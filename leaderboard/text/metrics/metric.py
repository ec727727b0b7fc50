"""What a metric of a benchmark case is: one number or several that follow from how long a call took. Pure, trusted."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from harness.verdict import BenchmarkResult

Value = float | str


class Column(NamedTuple):
    """One value of a metric: a column of the exported tables, and of the site's tables."""

    key: str
    """The column's name in exports; readers depend on it."""
    heading: str
    type: type[float] | type[str]
    about: str
    value: Callable[[BenchmarkResult], Value | None]
    """None where the case does not have it."""
    text: Callable[[BenchmarkResult], str]
    """The value for people; empty where the case does not have it."""

    @property
    def is_number(self) -> bool:
        """Whether a table flushes it right and sorts by it."""
        return self.type is float


class Metric(NamedTuple):
    """What is shown of a case beside its time."""

    name: str
    heading: str
    """Over a column that holds all of its values."""
    title: str
    """Over a table that has nothing else."""
    in_tables: bool
    """Whether tables of all cases have a column for it; the others are shown with a single case, and exported."""
    columns: tuple[Column, ...]
    sentence: Callable[[BenchmarkResult], str]
    """Everything about it, where one case is shown in full; empty where the case does not have it."""

    def cell(self, case: BenchmarkResult) -> str:
        """All of its values as one cell."""
        return " ".join(text for column in self.columns if (text := column.text(case)))
