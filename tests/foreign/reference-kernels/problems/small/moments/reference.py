from dataclasses import dataclass

import torch


@dataclass
class Shape:
    width: int
    groups: int
    eps: float


def ref_kernel(data):
    x, weights, _ = data
    y = x.float() * weights["norm.weight"]
    return torch.return_types.max((y.mean(-1), y.var(-1)))


def generate_input(n, half, seed, kind="plain"):
    torch.manual_seed(seed)
    dtype = torch.float16 if half else torch.float32
    x = torch.randn(4, 2 * n, device="cuda").to(device="cuda", dtype=dtype) + (kind == "shifted")
    return x, {"norm.weight": torch.rand(2 * n).cuda()}, Shape(width=2 * n, groups=4, eps=1e-5)


def check_implementation(data, output):
    expected = ref_kernel(data)
    right = all(torch.allclose(a, b, rtol=1e-3) for a, b in zip(output, expected, strict=True))
    return right, "" if right else "wrong"
