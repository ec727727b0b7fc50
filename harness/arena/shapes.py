"""Tensors of any shape and strides over memory, and the memory behind such a tensor. Both sides of the wire use it."""

from __future__ import annotations

import math

import torch


def spanned(shape: tuple[int, ...], strides: tuple[int, ...] = ()) -> int:
    """How many elements there are from the first to the last, with what is between them. No strides: contiguous."""
    if not strides or 0 in shape:
        return math.prod(shape)
    return 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))


def viewed(memory: torch.Tensor, shape: tuple[int, ...], strides: tuple[int, ...] = ()) -> torch.Tensor:
    """A tensor over `memory` [at least what it spans], without a copy."""
    if strides:
        return memory.as_strided(shape, strides)
    return memory[: math.prod(shape)].view(shape)


def memory_of(tensor: torch.Tensor) -> torch.Tensor:
    """The memory behind a tensor, with what is between its elements; if there are none, room for one where possible."""
    room = tensor.untyped_storage().nbytes() // tensor.element_size() - tensor.storage_offset()
    return tensor.as_strided((min(room, max(1, spanned(tensor.shape, tensor.stride()))),), (1,))


def address_of(tensor: torch.Tensor) -> int:
    """The address of the first element. Torch says 0 if there are none, although such a tensor has memory here."""
    return tensor.untyped_storage().data_ptr() + int(tensor.storage_offset()) * tensor.element_size()


def copied(tensor: torch.Tensor, device: str | None = None) -> torch.Tensor:
    """A copy with the same strides and what is between the elements, on the tensor's own device by default."""
    return viewed(memory_of(tensor).clone().to(device or tensor.device), tuple(tensor.shape), tensor.stride())
