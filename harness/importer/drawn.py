"""Draws a problem's inputs to find out whether seeds change them, and how large seeds may be. Untrusted."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any

import torch

from harness.importer.values import same_bits, tensors_in

_BITS = (62, 48, 31)  # numpy.random.seed accepts the last
_LIKELY = 0.9  # the least share of the distinct values that a small seed gives
_COUNTED = 1 << 20
InputGenerator = Callable[[int], Any]


@contextlib.contextmanager
def _filled_memory() -> Iterator[None]:
    """Make `torch.empty` return NaN or the dtype's largest number, not what was in that memory before.

    Generators allocate outputs that way; otherwise what is counted here would differ from one import to the next.
    """
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


@_filled_memory()
def fixed(draw: InputGenerator) -> bool:
    """Whether two seeds give the same tensors."""
    first, second = tensors_in(draw(1)), tensors_in(draw(2))
    return len(first) == len(second) and all(map(same_bits, first, second))


@_filled_memory()
def seed_bits(draw: InputGenerator) -> int | None:
    """How many bits a seed may have, so that there are as many distinct and finite values as with a small seed.

    Authors add numbers to their seeds, and use them as values. None if only small seeds work.
    """
    usual = [_values(tensor) for tensor in tensors_in(draw(1234))]
    for bits in _BITS:
        try:
            large = [_values(tensor) for tensor in tensors_in(draw((1 << bits) - 54321))]
        except Exception:  # noqa: BLE001  # untrusted code does not take such a seed
            continue
        if len(large) == len(usual) and all(map(_as_many, large, usual)):
            return bits
    return None


def _values(tensor: torch.Tensor) -> tuple[int, int]:
    """The numbers of distinct and of finite values among the first elements."""
    flat = tensor.detach().reshape(-1)[:_COUNTED]
    if flat.dtype.itemsize == 1:  # torch supports `unique` for few such dtypes
        flat = flat.view(torch.uint8)
    real = torch.view_as_real(flat) if flat.is_complex() else flat
    return len(torch.unique(flat)), int(real.isfinite().sum())


def _as_many(got: tuple[int, int], usual: tuple[int, int]) -> bool:
    return got[0] >= math.floor(_LIKELY * usual[0]) and got[1] >= math.ceil(_LIKELY * usual[1])
