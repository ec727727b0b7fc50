"""The definition of dynamic quantization, with the product that follows it."""

import torch

EPS = 2.0**-10  # the machine epsilon of float16
TINY = 2.0**-14  # its smallest normal number: what is below has the spacing of what is above


def quantized(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """127 · x / peak before it is rounded, and the scales [m, 1] of the rows; float64, so a tie is exactly one."""
    wide = x.double()
    peak = wide.abs().amax(dim=1, keepdim=True)
    return torch.where(peak > 0, 127 * wide / peak, 0.0), peak / 127


def reference(x: torch.Tensor, w: torch.Tensor, w_scale: torch.Tensor) -> torch.Tensor:
    """[m, k] float16, [n, k] int8, [n] to [m, n]: rows to int8, an exact sum, scaled, rounded once."""
    quotient, scale = quantized(x)
    total = quotient.round() @ w.double().T  # ties to even; exact: |sum| <= 127 · 127 · k
    y = total * scale * w_scale.double()
    return y if x.dtype is torch.float64 else y.to(x.dtype)


def compare(
    got: dict[str, torch.Tensor], inputs: dict[str, torch.Tensor], truth: dict[str, torch.Tensor]
) -> str | None:
    """The usual budget of float16 (4 and 1 ulps), plus what a row's ties can change: each may be rounded either way.

    x and peak have 11 bits. So 127 · x / peak is a tie, or differs from one by at least one part in 254 · 2047, while
    float32 errs by less than one in 2²²: honest kernels disagree at ties only. x = peak / 2 is always one.
    """
    y, right = got["y"].double(), truth["y"]
    (quotient, scale), w = quantized(inputs["x"]), inputs["w"].double().T
    rounded = quotient.round() - quotient
    halves = torch.where(rounded.abs() == 0.5, rounded, 0.0)
    unit = scale * inputs["w_scale"].double()
    middle, room = right - (halves @ w) * unit, (halves.abs() @ w.abs()) * unit
    error = ((y - middle).abs() - room).clamp(min=0)  # NaN stays NaN, and is below no limit
    size = torch.maximum(right.abs(), right.square().mean(dim=1, keepdim=True).sqrt())
    size, own = (torch.where(each > 0, each.clamp(min=TINY), 0.0) for each in (size, right.abs()))  # 0 is exactly 0
    wrong = ~(error <= 4 * EPS * size)
    if count := int(wrong.sum()):
        row, column = divmod(int(wrong.flatten().to(torch.uint8).argmax()), y.shape[1])
        found, wanted = (float(each[row, column]) for each in (y, right))
        return f"y: {count} of {y.numel()} wrong; y[{row}, {column}] is {found:.6g}, not {wanted:.6g}"
    rms, allowed = float(error.norm()), EPS * float(own.norm())
    return None if rms <= allowed else f"y: your RMS error is {rms:.3g}, allowed is {allowed:.3g}: more than rounding"
