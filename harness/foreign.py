"""The forms in which others write problems, and what a reference in each of them is called. Both sides read this table.

A new form is a line here, its functions in `harness.runner.foreign`, and its importer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Foreign:
    """What a file in this form defines."""

    entry: str
    """The reference, called in the same style as a submission."""
    decides: bool
    """Whether it also has a function that decides whether an answer is right."""


FORMS: Mapping[str, Foreign] = {
    "gpu-mode": Foreign("ref_kernel", decides=True),
    "kernelbench": Foreign("Model", decides=False),
}
