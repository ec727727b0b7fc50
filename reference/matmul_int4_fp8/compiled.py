"""The product of float8 and int4 as `torch.compile` makes it: the baseline of those who write no kernel at all."""

import torch

torch._dynamo.config.recompile_limit = 64  # the shapes are static, and every test has its own


@torch.compile(dynamic=False)
def matmul_int4_fp8(
    x: torch.Tensor, packed: torch.Tensor, x_scale: torch.Tensor, w_scale: torch.Tensor, y: torch.Tensor
) -> None:
    """[m, k] float8, [n, ceil(k / 2)] uint8, [m], [n] to [m, n] bfloat16."""
    halves = torch.stack((packed & 0xF, packed >> 4), dim=-1).view(len(packed), -1)[:, : x.shape[1]].to(torch.int32)
    weights = (halves ^ 8) - 8
    y.copy_((x.float() @ weights.float().T) * x_scale[:, None] * w_scale)
