"""Kernels that fail in Triton's interpreter, each named for what becomes of it: RIGHT, HIS (its author's mistake) and
OURS (the compiler would take it, or it needs a GPU).
"""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import torch
import triton
import triton.language as tl
from triton.experimental import gluon
from triton.language import load
from triton.language.extra import libdevice
from triton.language.extra.cuda import libdevice as cuda_libdevice

RIGHT, HIS, OURS = {}, {}, {}


def expected(table):
    def note(kernel):
        table[kernel.fn.__name__] = lambda *arguments: kernel[(1,)](*arguments, B=16)
        return kernel

    return note


@expected(RIGHT)
@triton.jit
def float_argument_has_to(x, y, eps, flag, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y + i, tl.load(x + i) + eps.to(tl.float32))


@expected(RIGHT)
@triton.jit
def float_argument_is_float32(x, y, eps, flag, B: tl.constexpr):
    tl.static_assert((tl.load(x).to(tl.float16) + eps).dtype == tl.float32)
    tl.static_assert(eps.dtype == tl.float32)


@expected(RIGHT)
@triton.jit
def float_argument_computes(x, y, eps, flag, B: tl.constexpr):
    if eps > 0:
        tl.store(y + tl.arange(0, B), tl.full((B,), eps, tl.float32) * 2 - eps / 2)


@expected(RIGHT)
@triton.jit
def infinite(x, y, eps, flag, B: tl.constexpr):
    tl.store(y + tl.arange(0, B), tl.load(x + tl.arange(0, B)) / (eps - eps))


@expected(RIGHT)
@triton.jit
def bool_argument(x, y, eps, flag, B: tl.constexpr):
    tl.store(y, tl.where(flag, 1.0, 2.0))


@expected(RIGHT)
@triton.jit
def libdevice_dispatched(x, y, eps, flag, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y + i, libdevice.tanh(tl.load(x + i)) + libdevice.pow(tl.load(x + i), 2.0))


@expected(RIGHT)
@triton.jit
def libdevice_of_cuda(x, y, eps, flag, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y + i, cuda_libdevice.fast_expf(tl.load(x + i)) * cuda_libdevice.rsqrt(tl.load(x)))


@expected(RIGHT)
@triton.autotune([triton.Config({}, num_warps=warps) for warps in (1, 4)], key=["eps"])
@triton.jit
def autotuned(x, y, eps, flag, B: tl.constexpr):
    tl.store(y, eps)


@expected(HIS)
@triton.jit
def unknown_name(x, y, eps, flag, B: tl.constexpr):
    tl.store(y + foo, 1.0)  # noqa: F821


@triton.jit
def inner(value):
    return missing(value)  # noqa: F821


@expected(HIS)
@triton.jit
def unknown_name_in_a_helper(x, y, eps, flag, B: tl.constexpr):
    tl.store(y, inner(tl.load(x)))


@expected(HIS)
@triton.jit
def misspelt_function(x, y, eps, flag, B: tl.constexpr):
    tl.store(y + tl.arrange(0, B), 1.0)


@expected(HIS)
@triton.jit
def misspelt_method(x, y, eps, flag, B: tl.constexpr):
    tl.store(y, tl.load(x).too(tl.float32))


@expected(HIS)
@triton.jit
def misspelt_method_of_a_scalar(x, y, eps, flag, B: tl.constexpr):
    for k in range(2):
        tl.store(y, k.too(tl.float32))


@expected(HIS)
@triton.jit
def no_power_of_two(x, y, eps, flag, B: tl.constexpr):
    tl.store(y + tl.arange(0, 7), 1.0)


@expected(HIS)
@triton.jit
def shapes_that_do_not_fit(x, y, eps, flag, B: tl.constexpr):
    tl.store(y + tl.arange(0, 8), tl.load(x + tl.arange(0, 16)))


@expected(HIS)
@triton.jit
def index_out_of_range(x, y, eps, flag, B: tl.constexpr):
    tl.store(y, (1, 2)[5])


@expected(HIS)
@triton.jit
def failed_assertion(x, y, eps, flag, B: tl.constexpr):
    tl.static_assert(B == 3, "three")


@expected(HIS)
@triton.jit
def not_implemented_by_its_author(x, y, eps, flag, B: tl.constexpr):
    raise NotImplementedError


@expected(HIS)
@triton.jit
def attribute_of_none(x, y, eps, flag, B: tl.constexpr):
    tl.store(y, None.to(tl.float32))


@expected(OURS)
@triton.jit
def variable_of_a_for_has_to(x, y, eps, flag, B: tl.constexpr):
    for k in range(2):
        tl.store(y + k.to(tl.int64), eps)


@expected(OURS)
@triton.jit
def inline_assembly(x, y, eps, flag, B: tl.constexpr):
    value = tl.load(x + tl.arange(0, B))
    tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [value], dtype=tl.float32, is_pure=True, pack=1)


@expected(OURS)
@triton.jit
def clock_of_the_device(x, y, eps, flag, B: tl.constexpr):
    tl.extra.cuda.globaltimer()


@expected(OURS)
@triton.jit
def libdevice_without_like(x, y, eps, flag, B: tl.constexpr):
    tl.store(y, libdevice.cyl_bessel_i0(tl.load(x)))


@expected(OURS)
@triton.jit
def scaled_product(x, y, eps, flag, B: tl.constexpr):
    a = tl.load(x + tl.arange(0, B)[:, None] * 16 + tl.arange(0, 16)[None, :]).to(tl.float8e5)
    tl.dot_scaled(a, None, "e5m2", a, None, "e5m2")


@expected(OURS)
@triton.jit
def operation_that_is_missing(x, y, eps, flag, B: tl.constexpr):
    tl.map_elementwise(inner, tl.load(x + tl.arange(0, B)))


@expected(OURS)
@triton.jit
def name_taken_from_the_language(x, y, eps, flag, B: tl.constexpr):
    tl.store(y, load(x))


def driver(*_arguments):
    triton.runtime.driver.active.get_current_device()


def device_of_torch(*_arguments):
    torch.cuda.synchronize()


@gluon.jit
def _nothing(x):
    pass


def gluon_kernel(x, *_arguments):
    _nothing[(1,)](x)


OURS |= {function.__name__: function for function in (driver, device_of_torch, gluon_kernel)}


def wrong_arguments(x, *_arguments):
    unknown_name[(1,)](x)


HIS |= {"wrong_arguments": wrong_arguments}
