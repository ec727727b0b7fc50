"""Refuses a reference that draws random numbers while it computes, as dropout does in training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from harness.importer.values import Refusal


class Repeatable(TorchDispatchMode):
    """A block in which no operator that uses a random number generator may run, on any device.

    Raises:
        Refusal: one was called. Two right kernels would disagree about such a result.
    """

    def __torch_dispatch__(
        self,
        operator: Any,
        types: tuple[type, ...],
        arguments: tuple[Any, ...] = (),
        named: Mapping[str, Any] | None = None,
    ) -> Any:
        if torch.Tag.nondeterministic_seeded in operator.tags:
            raise Refusal(f"its result is random: forward() calls {operator.name()}")
        return operator(*arguments, **(named or {}))
