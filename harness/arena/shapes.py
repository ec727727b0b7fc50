"""Views memory as tensors of any shape and strides, and finds the memory of such tensors. Judge and runner use it."""

from __future__ import annotations

import math

import torch


def spanned(shape: tuple[int, ...], strides: tuple[int, ...] = ()) -> int:
    """The number of elements from the first to the last, including gaps between them. No strides: contiguous."""
    if not strides or 0 in shape:
        return math.prod(shape)
    return 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))


def viewed(memory: torch.Tensor, shape: tuple[int, ...], strides: tuple[int, ...] = ()) -> torch.Tensor:
    """View one-dimensional `memory` as a tensor of this shape and these strides."""
    if strides:
        return memory.as_strided(shape, strides)
    return memory[: math.prod(shape)].view(shape)


def memory_of(tensor: torch.Tensor) -> torch.Tensor:
    """The memory of a tensor, including gaps between its elements; of an empty tensor, one element if possible."""
    room = tensor.untyped_storage().nbytes() // tensor.element_size() - tensor.storage_offset()
    return tensor.as_strided((min(room, max(1, spanned(tensor.shape, tensor.stride()))),), (1,))


def address_of(tensor: torch.Tensor) -> int:
    """The address of the first element, even of an empty tensor, for which torch's `data_ptr` is 0."""
    return tensor.untyped_storage().data_ptr() + int(tensor.storage_offset()) * tensor.element_size()


def copied(tensor: torch.Tensor, device: str | None = None) -> torch.Tensor:
    """Copy a tensor with its strides and the gaps between its elements, by default to the same device."""
    return viewed(memory_of(tensor).clone().to(device or tensor.device), tuple(tensor.shape), tensor.stride())
