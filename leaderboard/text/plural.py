"""A number with its noun, for everything that is written for people. Standard library only."""

from __future__ import annotations


def counted(number: int, one: str, many: str = "") -> str:
    """`1 test`, `1,200 tests`; `many` is the plural if it is not formed with `s`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
