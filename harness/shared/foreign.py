"""The formats in which other projects write problems, and the names that their files define. Judge and runner use it.

A new format needs a name and a line here, functions in `harness.runner.foreign`, and an importer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

ForeignForm = Literal["gpu-mode", "kernelbench"]


@dataclass(frozen=True)
class ForeignConventions:
    """The names that files of a format define."""

    entry: str
    """The reference, which is called in the same style as a submission."""
    submission: str
    """The function or class of a submission."""
    decides: bool
    """Whether the format has a function that decides whether an answer is right."""
    setting: str
    """The setting for the path of a checkout of the project."""


FORMS: Mapping[ForeignForm, ForeignConventions] = {
    "gpu-mode": ForeignConventions("ref_kernel", "custom_kernel", decides=True, setting="gpu_mode_checkout"),
    "kernelbench": ForeignConventions("Model", "ModelNew", decides=False, setting="kernelbench_checkout"),
}
