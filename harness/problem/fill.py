"""Fills tensors with the inputs of a case. Called by the judge on its own memory. Trusted; imports torch.

The same seed on the same kind of device gives the same elements. Temporaries do not grow with the tensor: if torch
cannot draw in place, the tensor is filled in pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

from harness.errors import HarnessError
from harness.problem.elements import EIGHT_BITS, FLOAT4, SCALE, info, pack_float4, parts
from harness.problem.fill_spec import Fill
from harness.shared.carrier import assign

_PIECE = 1 << 22
_DRAWN_IN = {
    torch.uint16: torch.int32,
    torch.uint32: torch.int64,
    **dict.fromkeys((*EIGHT_BITS, SCALE, FLOAT4), torch.float32),
}


def fill(tensor: torch.Tensor, fill: Fill, generator: torch.Generator) -> None:
    """Fill a contiguous tensor of any shape and any problem dtype in place.

    `generator` must be of the tensor's device. Elements are drawn in the tensor's dtype; if torch does not support
    that, in a wider dtype, and rounded. The parts of complex and packed numbers are drawn like elements.
    """
    flat = tensor.detach().view(-1)
    if flat.is_complex():
        flat = torch.view_as_real(flat).view(-1)
    draw = _drawing(fill, generator)
    wide = _DRAWN_IN.get(flat.dtype)
    if wide is None:
        draw(flat)
        for piece in _pieces(flat) if fill.neg_inf else ():
            _mask(piece, fill.neg_inf, generator)
        return
    for piece in _pieces(flat):
        drawn = torch.empty(len(piece) * parts(flat.dtype), dtype=wide, device=flat.device)
        draw(drawn)
        if wide is torch.float32:  # the conversion would turn values out of range into NaN or infinity
            drawn.clamp_(info(flat.dtype).low, info(flat.dtype).high)
        if fill.neg_inf:
            _mask(drawn, fill.neg_inf, generator)
        assign(piece, pack_float4(drawn) if flat.dtype is FLOAT4 else drawn.to(flat.dtype))


def _mask(flat: torch.Tensor, share: float, generator: torch.Generator) -> None:
    drawn = torch.rand(flat.shape, dtype=torch.float32, device=flat.device, generator=generator)
    flat.masked_fill_(drawn < share, float("-inf"))


def _drawing(fill: Fill, generator: torch.Generator) -> Callable[[torch.Tensor], object]:
    match fill.kind:
        case "normal":
            return lambda t: t.normal_(fill.mean, fill.scale, generator=generator)
        case "uniform":
            low, high = fill.bounds
            return lambda t: t.uniform_(low, high, generator=generator)
        case "integers":
            least, greatest = (int(bound) for bound in fill.bounds)
            return lambda t: t.random_(least, greatest + 1, generator=generator)
        case "choice":
            return lambda t: _choose(t, fill.values, generator)
        case "powers":
            least, greatest = (int(bound) for bound in fill.bounds)
            powers = tuple(2.0**exponent for exponent in range(least, greatest + 1))
            return lambda t: _choose(t, powers, generator)
        case "zeros":
            return lambda t: t.zero_()
        case "generated":
            raise HarnessError("a tensor that `generate` makes cannot be filled without it")


def _choose(tensor: torch.Tensor, values: tuple[int | float, ...], generator: torch.Generator) -> None:
    table = torch.tensor(values, dtype=tensor.dtype, device=tensor.device)
    for piece in _pieces(tensor):
        drawn = torch.randint(len(values), piece.shape, device=piece.device, generator=generator)
        torch.index_select(table, 0, drawn, out=piece)


def _pieces(flat: torch.Tensor) -> Iterator[torch.Tensor]:
    for start in range(0, flat.numel(), _PIECE):
        yield flat[start : start + _PIECE]
