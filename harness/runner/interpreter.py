"""Patches Triton's interpreter so that it accepts more of what the compiler accepts.

Without a GPU a kernel runs in Triton's interpreter. There a float argument is a Python float, without `.to`; a bool
cannot be passed at all; in some versions no argument can bound a loop; libdevice is missing; and `autotune` asks a
driver for times. The patches also record whether a kernel has been launched, and end a launch that would not finish
within the time limit of a call. The runner calls `complete` before it imports a submission. Each patch is applied when
Triton imports the module in question, if the module has the attribute that is replaced. Runs in the runner's process,
untrusted.
"""

from __future__ import annotations

import functools
import inspect
import math
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

import numpy as np
import torch

from harness.runner import floats

# By libdevice's names, without `__nv_` and the `f` of float32. They compute in float64, and the result is rounded.
_FUNCTIONS: Mapping[str, Callable[..., torch.Tensor]] = {
    **{
        name: getattr(torch, name)
        for name in (
            "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "ceil", "copysign", "cos", "cosh", "erf",
            "erfc", "erfinv", "exp", "exp2", "expm1", "floor", "fmod", "hypot", "lgamma", "log", "log10", "log1p",
            "log2", "pow", "rsqrt", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
        )
    },
    "exp10": lambda x: torch.pow(10.0, x),
    "fabs": torch.abs,
    "fdivide": torch.div,
    "fma": lambda x, y, z: x * y + z,
    "frcp_rn": torch.reciprocal,
    "frsqrt_rn": torch.rsqrt,
    "fsqrt_rn": torch.sqrt,
    "isnan": torch.isnan,
    "isinf": torch.isinf,
    "nearbyint": torch.round,
    "normcdf": torch.special.ndtr,
    "rint": torch.round,
    "saturate": lambda x: x.clamp(0, 1).nan_to_num(0.0),
}  # fmt: skip


_MARGIN, _MIN_MARGIN_S = 0.03, 0.3  # left for the answer: a share of the call's time, and at least so many seconds


class TooSlow(NotImplementedError):
    """The interpreter would not run all programs of a launch in the remaining time."""


class _Launches:
    """Counts the programs of a launch, and ends a launch that would not finish by the deadline of its call."""

    def __init__(self) -> None:
        self.any = False
        self._deadline, self._programs, self._begun = float("inf"), 0, 0
        self._last, self._longest = 0.0, 0.0

    def allow(self, seconds: float) -> None:
        """Begin a call with a time limit; 0 if the limit is not known."""
        margin = max(_MIN_MARGIN_S, _MARGIN * seconds)
        self._deadline = time.monotonic() + seconds - margin if seconds > 0 else float("inf")
        self._longest = 0.0

    def begin(self, programs: int) -> None:
        """Begin a launch of `programs` programs."""
        self.any = True
        self._programs, self._begun = programs, 0

    def next_program(self) -> None:
        """Begin the next program of a launch.

        Raises:
            TooSlow: it would not finish in time if it took as long as the slowest one before.
        """
        now = time.monotonic()
        if self._begun:
            self._longest = max(self._longest, now - self._last)
        if now + self._longest > self._deadline:
            raise TooSlow(f"{self._begun} of the {self._programs} programs of a launch ran in the time that is left")
        self._begun, self._last = self._begun + 1, now


_LAUNCHES = _Launches()
allow = _LAUNCHES.allow


def launched() -> bool:
    """Whether the interpreter has run a kernel."""
    return _LAUNCHES.any


def complete() -> None:
    """Patch Triton's modules when they are imported from now on."""
    # NumPy warns of infinities and NaN, which a device produces silently; `module` is a pattern.
    warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"triton\.runtime\.interpreter$")
    sys.meta_path.insert(0, _Completer())


class _Completer(MetaPathFinder):
    """Loads a module normally, and patches it before its importer sees it."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        completed = _COMPLETED.get(name)
        spec = PathFinder.find_spec(name, path, target) if completed else None
        if completed is None or spec is None or spec.loader is None:
            return None
        load = spec.loader.exec_module

        def load_and_complete(module: ModuleType) -> None:
            load(module)
            completed(module)

        spec.loader.exec_module = load_and_complete  # type: ignore[method-assign]
        return spec


def _complete_interpreter(module: Any) -> None:
    if hasattr(module, "_implicit_cvt"):
        module._implicit_cvt = functools.partial(_argument, module, module._implicit_cvt)
    if hasattr(module, "InterpreterBuilder"):
        module.InterpreterBuilder.create_extern_elementwise = _libdevice(module)
        _watch_launches(module.InterpreterBuilder)
        floats.complete(module)
    if hasattr(module, "_patch_lang_tensor"):
        module._patch_lang_tensor = functools.partial(_patch_bounds, module._patch_lang_tensor)
    if hasattr(module, "_patch_builtin") and hasattr(module, "_patch_attr"):
        module._patch_builtin = _fast_patch_builtin(module)


def _watch_launches(builder: Any) -> None:
    """Observe launches: each sets the grid's size, and then the index of every program."""
    set_grid_dim, set_grid_idx = builder.set_grid_dim, builder.set_grid_idx

    def begins(self: Any, *sizes: int) -> None:
        _LAUNCHES.begin(math.prod(sizes))
        set_grid_dim(self, *sizes)

    def next_program(self: Any, *place: int) -> None:
        _LAUNCHES.next_program()
        set_grid_idx(self, *place)

    builder.set_grid_dim, builder.set_grid_idx = begins, next_program


def _patch_bounds(patch: Callable[..., Any], tensor: Any, scope: Any) -> None:
    """Let a number bound a `range`: Triton 3.6 converts it from an array with one axis, which NumPy 2.4 refuses."""
    patch(tensor, scope)
    scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))


def _fast_patch_builtin(module: Any) -> Callable[..., None]:
    """A faster `_patch_builtin`.

    Triton's own inspects all members of a package at every function call in a kernel, which takes a third of the
    interpreter's time. This one inspects them once, and then only the builtins.
    """
    names: dict[Any, list[str]] = {}

    def patch_builtin(package: Any, builder: Any, *scope: Any) -> None:
        is_builtin = module.tl.core.is_builtin
        if package not in names:
            names[package] = [name for name, member in inspect.getmembers(package) if is_builtin(member)]
        for name in names[package]:
            if is_builtin(member := getattr(package, name)):
                module._patch_attr(package, name, member, builder, *scope)

    return patch_builtin


def _argument(module: Any, convert: Callable[[Any], Any], value: Any) -> Any:
    """Convert an argument of a launch: like the compiler, make a float a float32 and a bool an int1, of one element."""
    if not isinstance(value, bool | float):
        return convert(value)
    dtype, element = (module.tl.int1, np.bool_) if isinstance(value, bool) else (module.tl.float32, np.float32)
    with np.errstate(over="ignore"):
        return module.tl.tensor(module.TensorHandle(np.array([value], dtype=element), dtype), dtype)


def _libdevice(module: Any) -> Callable[..., Any]:
    """The interpreter's builder method for libdevice calls."""

    def create_extern_elementwise(
        _builder: Any, _library: str, _path: str, symbol: str, arguments: Sequence[Any], dtype: Any, _pure: bool
    ) -> Any:
        name = symbol.removeprefix("__nv_").removeprefix("fast_")
        function = _FUNCTIONS.get(name) or _FUNCTIONS.get(name.removesuffix("f").removesuffix("d"))
        if function is None:
            raise NotImplementedError(f"libdevice's {symbol} is not available in the interpreter")
        values = [
            torch.from_numpy(np.atleast_1d(np.asarray(argument.data, dtype=np.float64))) for argument in arguments
        ]
        with np.errstate(over="ignore"):
            result = function(*values).numpy().astype(module._get_np_dtype(dtype.scalar))
        return module.TensorHandle(result, dtype.scalar)

    return create_extern_elementwise


def _complete_autotuner(module: Any) -> None:
    """Let the autotuner take the first configuration without timing, since times mean nothing here."""

    def do_bench(_tuner: Any) -> Callable[..., list[float]]:
        return lambda *_args, **_kwargs: [0.0, 0.0, 0.0]

    if hasattr(module, "Autotuner"):
        module.Autotuner.do_bench = property(do_bench)


def _complete_builtins(module: Any) -> None:
    """Pass the compiler's state to device functions, which the interpreter does only for functions of `tl`."""
    for name, function in list(vars(module).items()):
        if callable(function) and getattr(function, "__triton_builtin__", False):
            setattr(module, name, _with_semantic(function))


def _with_semantic(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        semantic = sys.modules["triton.runtime.interpreter"].interpreter_semantic
        return function(*args, **{**kwargs, "_semantic": semantic})

    return called


def _complete_libdevice(module: Any) -> None:
    """Replace stubs by the device's functions of the same names, as the compiler does."""
    from triton.language.extra.cuda import libdevice

    for name, function in vars(libdevice).items():
        if hasattr(module, name) and getattr(function, "__triton_builtin__", False):
            setattr(module, name, function)


_COMPLETED: Mapping[str, Callable[[Any], None]] = {
    "triton.runtime.interpreter": _complete_interpreter,
    "triton.runtime.autotuner": _complete_autotuner,
    "triton.language.extra.cuda.libdevice": _complete_builtins,
    "triton.language.extra.cuda.utils": _complete_builtins,
    "triton.language.extra.libdevice": _complete_libdevice,
}
