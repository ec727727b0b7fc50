"""Fills tensors with the inputs of a case; the judge calls it on memory that it owns. Trusted; imports torch.

The same seed on the same kind of device gives the same elements. Nothing is allocated in proportion to the tensor:
what torch cannot draw in place is drawn in pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

from harness.errors import HarnessError
from harness.problem.spec import Fill

_PIECE = 1 << 22


def fill(tensor: torch.Tensor, fill: Fill, generator: torch.Generator) -> None:
    """Overwrite a contiguous tensor of any shape and of any problem dtype, in place, on its own device.

    `generator` is one of the tensor's device. The draws are made in the tensor's dtype; float8 is drawn in float32 and
    rounded.
    """
    flat = tensor.detach().view(-1)
    draw = _drawing(fill, generator)
    if tensor.dtype is torch.float8_e4m3fn:
        for piece in _pieces(flat):
            wide = torch.empty(piece.shape, dtype=torch.float32, device=piece.device)
            draw(wide)
            # The cast turns values beyond ±448 into NaN.
            piece.copy_(wide.clamp_(-448.0, 448.0))
    else:
        draw(flat)
    if fill.neg_inf > 0:
        for piece in _pieces(flat):
            drawn = torch.rand(piece.shape, dtype=torch.float32, device=piece.device, generator=generator)
            piece.masked_fill_(drawn < fill.neg_inf, float("-inf"))


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
