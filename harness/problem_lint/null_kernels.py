"""Null kernels, which answer without doing the work, or in too low a precision. A problem must refuse them all.

`examine.py` runs them. They are functions of tensors in the judge's process: trusted, without a sandbox. Each gets a
`Scene`, which is one case with its inputs and right answers, and returns outputs, or None if it does not apply.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from harness.errors import ProblemError
from harness.judge.correctness.truth import Truth
from harness.problem import Problem
from harness.problem.elements import info, numbers, of_numbers
from harness.problem.lists import Tensors
from harness.shared.carrier import carrier

# The lower precisions that a kernel might use, by the widest type of a case. For 8 bits only operands are narrowed,
# since torch has no arithmetic for them.
LOWER: dict[torch.dtype, tuple[str, ...]] = {
    torch.float64: ("float32",),
    torch.float32: ("tf32", "float16", "bfloat16"),
    torch.float16: ("float8_e4m3fn",),
    torch.bfloat16: ("float8_e4m3fn",),
    torch.float8_e4m3fn: ("float8_e5m2",),
    torch.float8_e5m2: (),
    torch.float8_e4m3fnuz: (),
}
_PART = {torch.complex64: torch.float32, torch.complex128: torch.float64}
_ARITHMETIC = ("float32", "float16", "bfloat16")
# A fill for outputs that must be equal. Its range contains ten numbers of float16, two of bfloat16, and 84,000 of
# float32.
_CLOSE = ', for example `fill = { kind = "uniform", low = -1.01, high = -1.0 }`'
_PRODUCTS = frozenset({"mm", "bmm", "addmm", "baddbmm", "mv", "addmv", "dot", "convolution"})


@dataclass(frozen=True)
class Scene:
    """One case with one draw of its inputs. Tensors are `[*shape]`, by name; members of lists are like `params[3]`."""

    truth: Truth
    inputs: Tensors
    before: Tensors
    """The content of outputs and inouts before the call: poison, or the input values."""
    right: Tensors
    """The answer in the outputs' own dtypes."""
    others: tuple[Tensors, ...]
    """The answers to other draws of the inputs."""


@dataclass(frozen=True)
class NullKernel:
    """One way to avoid the work; `remedy`: what the organizer can do if it passes."""

    name: str
    remedy: str
    outputs: Callable[[Scene], Tensors | None]
    precision: str | None = None
    """The lower precision that it uses, as named in `tolerance.lower_precision`."""


def kernels(problem: Problem) -> list[NullKernel]:
    """All null kernels for a problem, the cheapest first."""
    remedy = "fill the inputs so that the call changes its outputs"
    null_kernels = [NullKernel("nothing written", remedy, lambda scene: dict(scene.before)), *WITHOUT_WORK]
    for spec in problem.tensors:
        if spec.role != "output":
            remedy = f"fill `{spec.name}` so that the answer differs from it"
            null_kernels.append(NullKernel(f"a copy of `{spec.name}`", remedy, partial(_copy_of, spec.name)))
        if spec.present is not None:
            remedy = f"fill `{spec.name}` so that the answer differs from one without it"
            null_kernels.append(NullKernel(f"`{spec.name}` ignored", remedy, partial(_without, spec.name)))
        if spec.role != "input":
            remedy = f"let `compare` look at all of `{spec.name}`, or fill the inputs so that all of it counts"
            null_kernels.append(NullKernel(f"half of `{spec.name}` written", remedy, partial(_half_of, spec.name)))
    all_equal = len(problem.exact_outputs) == sum(spec.role != "input" for spec in problem.tensors)
    exact = all_equal and problem.decided_by == "budget"
    precisions = dict.fromkeys(low for lows in LOWER.values() for low in lows)
    return [*null_kernels, *(kernel for low in precisions for kernel in _low_precision_kernels(low, exact=exact))]


def _constant(scene: Scene) -> Tensors:
    """The best answer that ignores the inputs: the mean of other answers, or their mode."""
    values = {}
    for name, right in scene.right.items():
        seen = torch.cat([numbers(other[name]).reshape(-1) for other in scene.others])
        if not seen.numel():
            values[name] = right
            continue
        value = _mean(seen) if info(right.dtype).rounds else seen.to(torch.int64).mode().values.item()
        filled = torch.full(numbers(right).shape, value, dtype=torch.float64)
        values[name] = of_numbers(filled, right.dtype)
    return values


def _mean(values: Tensor) -> float:
    wide = values.double()
    finite = wide[wide.isfinite()]
    return float(finite.mean()) if finite.numel() else float("nan")


WITHOUT_WORK = (
    NullKernel(
        "all zeros",
        "fill the inputs so that the answer is not 0",
        lambda s: {name: torch.zeros_like(carrier(t)).view(t.dtype) for name, t in s.right.items()},
    ),
    NullKernel("a constant", "fill the inputs so that the answer varies: raise `scale`, or lower sizes", _constant),
    NullKernel(
        "the result of other inputs",
        "raise the fills' `scale`: the answer must follow inputs",
        lambda s: dict(s.others[0]),
    ),
)
"""The null kernels that need only right answers."""


def _members(spec: str, tensors: Mapping[str, Tensor]) -> list[str]:
    """The names of the tensor of a specification, or of the members of its list."""
    return [name for name in tensors if name == spec or name.startswith(f"{spec}[")]


def _without(spec: str, scene: Scene) -> Tensors | None:
    """The answer of a kernel that ignores an optional input."""
    ignored = _members(spec, scene.inputs)
    if not ignored:
        return None
    try:
        return scene.truth.of_call({name: tensor for name, tensor in scene.inputs.items() if name not in ignored})
    except ProblemError:  # with these other inputs the reference needs it
        return None


def _copy_of(spec: str, scene: Scene) -> Tensors | None:
    sources = [numbers(scene.inputs[name]) for name in _members(spec, scene.inputs)]
    if not sources:
        return None
    copied = {}
    for number, (name, right) in enumerate(scene.right.items()):
        fitted = _fitted(sources[number % len(sources)], numbers(right).shape)
        copied[name] = of_numbers(fitted, right.dtype)
    return copied


def _fitted(source: Tensor, shape: torch.Size) -> Tensor:
    """Broadcast to a shape if possible, otherwise repeat or truncate the elements."""
    try:
        return source.expand(shape).contiguous()
    except RuntimeError:
        flat, count = source.reshape(-1), shape.numel()
        if not len(flat):
            return torch.zeros(shape, dtype=source.dtype)
        return flat.repeat(-(-count // flat.numel()))[:count].view(shape)


def _half_of(spec: str, scene: Scene) -> Tensors | None:
    halved, names = dict(scene.right), _members(spec, scene.right)
    if not any(halved[name].numel() for name in names):
        return None
    for name in names:
        flat, before = halved[name].reshape(-1), scene.before[name].reshape(-1)
        half = flat.numel() // 2
        halved[name] = torch.cat([flat[:half], before[half:]]).view(halved[name].shape)
    return halved


def _low_precision_kernels(low: str, *, exact: bool) -> list[NullKernel]:
    """Honest kernels in a lower precision: only of the operands, and of all arithmetic.

    `exact`: all outputs must be equal, so there is no tolerance to lower.
    """
    remedy = "fill inputs with values of both signs that need all bits of their dtype, lower `tolerance.factor`"
    if exact:
        example = _CLOSE if low in ("tf32", "float16", "bfloat16") else ""
        remedy = f"fill inputs with values so close together that {low} merges them{example}"
    remedy += f', or, if it may pass, name it in `tolerance.lower_precision = ["{low}"]`'
    if low == "tf32":
        return [NullKernel("matrix products in tf32", remedy, _products_in_tf32, low)]
    kernels = [NullKernel(f"operands in {low}", remedy, partial(_operands_in, low), low)]
    if low in _ARITHMETIC:
        kernels.append(NullKernel(f"arithmetic in {low}", remedy, partial(_arithmetic_in, low), low))
    return kernels


def applies(low: str, scene: Scene) -> bool:
    """Whether `low` is the next lower precision of the case's widest float."""
    tensors = (*scene.inputs.values(), *scene.right.values())
    floats = {t.dtype for t in tensors if info(t.dtype).family in ("float", "complex")}
    widest = min(floats, key=lambda d: info(d).eps, default=None)
    return widest is not None and low in LOWER[_PART.get(widest, widest)]


def _operands_in(low: str, scene: Scene) -> Tensors | None:
    """The answer for inputs rounded to `low`, with unchanged arithmetic. If no input changes, outputs are rounded."""
    if not applies(low, scene):
        return None
    rounded = {name: _rounded(t, low) for name, t in scene.inputs.items()}
    if all(rounded[name] is t for name, t in scene.inputs.items()):
        return {name: _rounded(t, low) for name, t in scene.right.items()}
    return scene.truth.of_call(rounded)


def _arithmetic_in(low: str, scene: Scene) -> Tensors | None:
    """The answer with all arithmetic in `low`, if torch supports that on this device."""
    dtype = getattr(torch, low)
    if not applies(low, scene) or any(t.is_complex() for t in scene.inputs.values()):
        return None
    try:
        return scene.truth.of_call({name: t.to(dtype) if _wider(t, low) else t for name, t in scene.inputs.items()})
    except ProblemError:
        return None


def _wider(tensor: Tensor, low: str) -> bool:
    """Whether a float or complex tensor loses digits in `low`; a scale does not."""
    within = info(tensor.dtype).family in ("float", "complex")
    return within and info(tensor.dtype).eps < info(getattr(torch, low)).eps


def _rounded(tensor: Tensor, low: str) -> Tensor:
    """Round a tensor to `low` and back; returns the tensor itself if it is no wider."""
    if not _wider(tensor, low):
        return tensor
    if tensor.is_complex():
        return torch.view_as_complex(_rounded(torch.view_as_real(tensor), low))
    dtype = getattr(torch, low)
    if low.startswith("float8"):  # it saturates like the hardware's conversions
        limit = torch.finfo(dtype).max
        return tensor.float().clamp(-limit, limit).to(dtype).to(tensor.dtype)
    return tensor.to(dtype).to(tensor.dtype)


def _products_in_tf32(scene: Scene) -> Tensors | None:
    if not applies("tf32", scene):
        return None
    with _Tf32() as mode:
        outputs = scene.truth.of_call(scene.inputs)
    return outputs if mode.rounded else None


class _Tf32(TorchDispatchMode):
    """Rounds the float32 operands of matrix products and convolutions to ten bits of mantissa."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.rounded = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.overloadpacket.__name__ in _PRODUCTS:
            self.rounded |= any(_single(arg) for arg in args)
            args = tuple(to_tf32(arg) if _single(arg) else arg for arg in args)
        return func(*args, **(kwargs or {}))


def _single(value: Any) -> bool:
    return torch.is_tensor(value) and value.dtype is torch.float32


def to_tf32(tensor: Tensor) -> Tensor:
    """Round float32 to ten bits of mantissa, to nearest even; other values are unchanged."""
    bits = tensor.contiguous().view(torch.int32)
    nearest = ((bits + 0x0FFF + ((bits >> 13) & 1)) & ~0x1FFF).view(torch.float32)
    return torch.where(tensor.isfinite(), nearest, tensor)
