"""The forms in which others write problems, and what each calls a reference and a submission. Both sides read it.

A new form is a name and a line here, its functions in `harness.runner.foreign`, and its importer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

ForeignForm = Literal["gpu-mode", "kernelbench"]


@dataclass(frozen=True)
class Foreign:
    """What files in this form define."""

    entry: str
    """The reference, called in the same style as a submission."""
    submission: str
    """What a submission is called."""
    decides: bool
    """Whether there is also a function that decides whether an answer is right."""
    setting: str
    """What names a checkout of that project, in the settings."""


FORMS: Mapping[ForeignForm, Foreign] = {
    "gpu-mode": Foreign("ref_kernel", "custom_kernel", decides=True, setting="gpu_mode_checkout"),
    "kernelbench": Foreign("Model", "ModelNew", decides=False, setting="kernelbench_checkout"),
}
