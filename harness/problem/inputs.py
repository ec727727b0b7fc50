"""Draws the inputs of one call in this process's own memory, for the lint and for tests. Trusted; imports torch."""

from __future__ import annotations

import torch
from torch import Tensor

from harness.problem.fill import fill
from harness.problem.reference import Reference
from harness.problem.resolve import ResolvedCase
from harness.shared.carrier import assign


def draw(case: ResolvedCase, reference: Reference, generator: torch.Generator) -> dict[str, Tensor]:
    """Inputs and inouts by name, contiguous, on the generator's device: from `generate`, or from their fills.

    A grading draws the same kinds of tensors, but not the same ones for the same seed.

    Raises:
        ProblemError: `generate` fails.
    """
    generated = reference.generate(case, generator) if reference.generates else {}
    drawn = {}
    for tensor in case.tensors:
        if tensor.role == "output":
            continue
        made = torch.empty(tensor.shape, dtype=getattr(torch, tensor.dtype), device=generator.device)
        if tensor.name in generated:
            assign(made, generated[tensor.name])
        else:
            fill(made, tensor.fill, generator)
        drawn[tensor.name] = made
    return drawn
