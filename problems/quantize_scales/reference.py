"""The definition of dynamic quantization to int8, with one scale for the tensor, each token, or each channel."""

import torch

AXES = {0: (0, 1), 1: (1,), 2: (0,)}
NEAR = 2.0**-21  # what float32 may lose in a division, relative


def quantized(x: torch.Tensor, by: int) -> tuple[torch.Tensor, torch.Tensor]:
    """127 · x / peak before it is rounded, and peak / 127; both float64, so a tie is exactly one."""
    wide = x.double()
    peak = wide.abs().amax(dim=AXES[by], keepdim=True)
    return torch.where(peak > 0, 127 * wide / peak, 0.0), peak / 127


def reference(x: torch.Tensor, by: int) -> tuple[torch.Tensor, torch.Tensor]:
    """[m, k] float16 to [m, k] int8 and the scales [1 or m, 1 or k], rounded to float32 at most."""
    quotient, scale = quantized(x, by)
    return quotient.round().to(torch.int8), scale.to(torch.promote_types(x.dtype, torch.float32))


def compare(
    got: dict[str, torch.Tensor], inputs: dict[str, torch.Tensor], truth: dict[str, torch.Tensor]
) -> str | None:
    """Scales to float32's precision, and the nearest integers: of a tie either neighbour.

    x and peak have 11 bits. So 127 · x / peak is a tie, or differs from one by a relative 2⁻¹⁹ or more, while float32
    errs by less than 2⁻²²: honest kernels disagree at ties only.
    """
    rows, columns = truth["scale"].shape
    by = 1 if rows > 1 else 2 if columns > 1 else 0  # one scale is that of all elements, whatever it is called
    quotient, scale = quantized(inputs["x"], by)
    error = (got["scale"].double() - scale).abs()
    if wrong := int((~(error <= NEAR * scale)).sum()):  # NaN is below no limit
        return f"scale: {wrong} of {scale.numel()} wrong by more than float32's rounding"
    off = ~((got["q"].double() - quotient).abs() <= 0.5)
    if wrong := int(off.sum()):
        row, column = divmod(int(off.flatten().to(torch.uint8).argmax()), off.shape[1])
        found, wanted = int(got["q"][row, column]), int(truth["q"][row, column])
        return f"q: {wrong} of {off.numel()} wrong; q[{row}, {column}] is {found}, not {wanted}"
    return None
