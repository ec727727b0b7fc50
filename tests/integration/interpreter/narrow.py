"""Kernels on narrow floats, run in the completed interpreter: prints what each computes beside what a device would."""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import json
import sys

sys.path.insert(0, sys.argv[1])

from harness.runner import interpreter

interpreter.complete()

import torch  # noqa: E402
import triton  # noqa: E402
import triton.language as tl  # noqa: E402


@triton.jit
def cast(x, y, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y + i, tl.load(x + i).to(y.dtype.element_ty))


@triton.jit
def stored(x, y, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y + i, tl.load(x + i))


@triton.jit
def cut_off(x, y, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y + i, tl.load(x + i).to(tl.bfloat16, fp_downcast_rounding="rtz"))


@triton.jit
def computed(x, y, z, B: tl.constexpr):
    i = tl.arange(0, B)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(z + i, tl.where(a > b, a * b + a, -b))


@triton.jit
def reduced(x, z, B: tl.constexpr):
    v = tl.load(x + tl.arange(0, B))
    tl.store(z, tl.sum(v, 0))
    tl.store(z + 1, tl.min(v, 0))


@triton.jit
def multiplied(x, y, z, B: tl.constexpr):
    at = tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :]
    tl.store(z + at, tl.dot(tl.load(x + at), tl.load(y + at)))


@triton.jit
def atomic(x, B: tl.constexpr):
    tl.atomic_add(x + tl.arange(0, B), tl.load(x + tl.arange(0, B)))


def alike(kernel, given, expected):
    made = torch.zeros_like(expected)
    kernel[(1,)](*given, made, B=len(expected))
    return torch.equal(made.float().nan_to_num(7e9, 8e9, -8e9), expected.float().nan_to_num(7e9, 8e9, -8e9))


def device(x, to):
    """To nearest even; float8 saturates."""
    if to.itemsize == 1:
        x = x.float().clamp(-torch.finfo(to).max, torch.finfo(to).max)
    return x.to(to)


torch.manual_seed(3)
halves = torch.tensor([1 + k * 2.0**-b for b in (3, 4, 8, 11) for k in (1, 3, 5, 7)])  # between two of each type
ends = torch.tensor([0.0, -0.0, torch.inf, -torch.inf, torch.nan, 448.0, 464.0, 480.0, 61440.0, 65519.0, 65520.0, 1e30])
x = torch.cat([halves, ends, torch.randn(996) * torch.exp2(torch.randint(-18, 18, (996,)))])
NARROW = (torch.bfloat16, torch.float16, torch.float8_e4m3fn, torch.float8_e5m2)
told = {}
for of in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
    for to in NARROW:
        if of != to:
            told[f"{of} to {to}"] = alike(cast, [x.to(of)], device(x.to(of), to))
for to in (torch.bfloat16, torch.float16):
    told[f"stored as {to}"] = alike(stored, [x], x.to(to))
    told[f"int32 to {to}"] = alike(cast, [torch.arange(-600, 424, dtype=torch.int32)], torch.arange(-600, 424).to(to))
    told[f"{to} to int32"] = alike(cast, [torch.arange(-8, 8).to(to) * 1.5], (torch.arange(-8, 8) * 1.5).int())
told["cut off"] = alike(cut_off, [halves], (halves.view(torch.int32) & -65536).view(torch.float32).bfloat16())
a, b = torch.randn(2, 1024).bfloat16()
told["computed"] = alike(computed, [a, b], torch.where(a > b, a * b + a, -b))
told["reduced"] = alike(reduced, [a[:2]], torch.stack([a[:2].sum(), a[:2].min()]))
for of in NARROW:
    left, right = torch.randn(2, 16, 16).to(of)
    made = torch.zeros(16, 16)
    multiplied[(1,)](left, right, made, B=16)
    told[f"product of {of}"] = torch.allclose(made, left.float() @ right.float(), atol=1e-4)
for of in NARROW[2:]:
    all_of = torch.arange(256, dtype=torch.uint8).view(of)
    told[f"{of} to float32"] = alike(cast, [all_of], all_of.float())
try:
    atomic[(1,)](a, B=16)
    told["atomic"] = False
except Exception as error:  # noqa: BLE001 - of the interpreter, with ours in it
    told["atomic"] = "an atomic operation on bfloat16" in str(error)
print(json.dumps(told))
