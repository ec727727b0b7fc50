"""AdamW over a list of tensors in Triton: one launch, whose programs look up which part of which tensor is theirs.

A launch has no room for thousands of pointers, and Triton none for an array among its arguments. So they lie in memory:

- `chunks`, a row for each program: the tensor, and where in it the program begins and ends. It depends on the sizes
  alone, and is made once for each list of sizes.
- `pointers`, four for each tensor. They change from call to call, and each call copies its own to the device, from
  page-locked memory: a copy that the host need not wait for, and that a CUDA graph takes in and repeats.

The pointers of one call are written once and then left alone, since a captured graph reads them at each launch.
"""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import torch
import triton
import triton.language as tl

Tensors = list[torch.Tensor]

BLOCK, WARPS = 2048, 4  # 16 elements a thread: four loads of 16 bytes from each of four tensors are under way at once
POOL = 1 << 21  # pointers: 16 MiB


@triton.jit
def update(
    params, grads, means, squares, at, inside,
    keep, rest1, beta2, rest2, eps, root_scale, rate,
):  # fmt: skip
    """Read four numbers for each element, write three."""
    p = tl.load(params + at, mask=inside)
    g = tl.load(grads + at, mask=inside)
    m = tl.load(means + at, mask=inside)
    s = tl.load(squares + at, mask=inside)
    m += rest1 * (g - m)
    s = s * beta2 + rest2 * g * g
    p = p * keep - rate * m / (tl.sqrt(s) * root_scale + eps)
    tl.store(params + at, p, mask=inside)
    tl.store(means + at, m, mask=inside)
    tl.store(squares + at, s, mask=inside)


@triton.jit
def chunk_kernel(
    pointers, chunks, count,
    keep, rest1, beta2, rest2, eps, root_scale, rate,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Update elements `begin` to `end` of one tensor."""
    row = chunks + tl.program_id(0) * 3
    tensor, begin, end = tl.load(row), tl.load(row + 1), tl.load(row + 2)
    # A pointer that was read from memory may point anywhere, as far as the compiler knows. Tensors begin at multiples
    # of 512 bytes, and chunks at multiples of BLOCK elements: told so, it loads 16 bytes at a time.
    params = tl.multiple_of(tl.load(pointers + tensor).to(tl.pointer_type(tl.float32)), 16)
    grads = tl.multiple_of(tl.load(pointers + tensor + count).to(tl.pointer_type(tl.float32)), 16)
    means = tl.multiple_of(tl.load(pointers + tensor + 2 * count).to(tl.pointer_type(tl.float32)), 16)
    squares = tl.multiple_of(tl.load(pointers + tensor + 3 * count).to(tl.pointer_type(tl.float32)), 16)
    begin = tl.multiple_of(begin, BLOCK)
    # 16 bytes need a mask that is the same for four elements: up to the last multiple of four,
    whole = end // 4 * 4
    at = begin + tl.arange(0, BLOCK)
    update(
        params, grads, means, squares, at, at < whole,
        keep, rest1, beta2, rest2, eps, root_scale, rate,
    )  # fmt: skip
    # and then the 1 to 3 that are left.
    if whole < end:
        last = whole + tl.arange(0, 4)
        update(
            params, grads, means, squares, last, last < end,
            keep, rest1, beta2, rest2, eps, root_scale, rate,
        )  # fmt: skip


chunk_tables: dict[tuple[torch.device, tuple[int, ...]], torch.Tensor] = {}
pointer_tables: dict[tuple[int, ...], torch.Tensor] = {}
pool = torch.empty(0, dtype=torch.int64)


def chunks_of(sizes: tuple[int, ...], device: torch.device) -> torch.Tensor:
    """Tensor, begin and end of each chunk: int64 [chunks, 3]."""
    if (device, sizes) not in chunk_tables:
        rows = [(i, at, min(at + BLOCK, size)) for i, size in enumerate(sizes) for at in range(0, size, BLOCK)]
        chunk_tables[device, sizes] = torch.tensor(rows, device=device)
    return chunk_tables[device, sizes]


def pointers_of(lists: tuple[Tensors, ...], device: torch.device) -> torch.Tensor:
    """The addresses of all tensors, list by list: int64 [4 · count]."""
    global pool
    addresses = tuple(tensor.data_ptr() for tensors in lists for tensor in tensors)
    if addresses not in pointer_tables:
        # Page-locked memory cannot be had while a graph is captured: enough for many calls is taken by the first one.
        if len(pool) < len(addresses):
            pool = torch.empty(max(POOL, len(addresses)), dtype=torch.int64, pin_memory=device.type == "cuda")
        pointer_tables[addresses], pool = pool[: len(addresses)], pool[len(addresses) :]
        pointer_tables[addresses].copy_(torch.tensor(addresses))
    return pointer_tables[addresses].to(device, non_blocking=True)


def adam_multi_tensor(
    params: Tensors, grads: Tensors, means: Tensors, squares: Tensors,
    rate: float, beta1: float, beta2: float, eps: float, weight_decay: float, step: int,
) -> None:  # fmt: skip
    """One step of AdamW, in place: params, means and squares, given grads; lists of the same sizes."""
    device = params[0].device
    chunks = chunks_of(tuple(tensor.numel() for tensor in params), device)
    pointers = pointers_of((params, grads, means, squares), device)
    # What does not depend on an element is worked out here, in float64: 1 - beta in float32 would lose digits.
    chunk_kernel[(len(chunks),)](
        pointers, chunks, len(params),
        1 - rate * weight_decay, 1 - beta1, beta2, 1 - beta2, eps, (1 - beta2**step) ** -0.5, rate / (1 - beta1**step),
        BLOCK=BLOCK, num_warps=WARPS,
    )  # fmt: skip
