"""The formats in which other projects write problems, and their names for a reference and a submission.

Both sides of the trust line read it. A new format is a name and a line here, its functions in `harness.runner.foreign`,
and its importer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

ForeignForm = Literal["gpu-mode", "kernelbench"]


@dataclass(frozen=True)
class ForeignConventions:
    """The names that files in this format define."""

    entry: str
    """The reference, called in the same style as a submission."""
    submission: str
    """The name of a submission's function or class."""
    decides: bool
    """Whether there is also a function that decides whether an answer is right."""
    setting: str
    """The setting that names a checkout of that project."""


FORMS: Mapping[ForeignForm, ForeignConventions] = {
    "gpu-mode": ForeignConventions("ref_kernel", "custom_kernel", decides=True, setting="gpu_mode_checkout"),
    "kernelbench": ForeignConventions("Model", "ModelNew", decides=False, setting="kernelbench_checkout"),
}
