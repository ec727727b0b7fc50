"""Distinguishes what Triton's interpreter cannot do from mistakes of a submission.

Called by `faults`. The interpreter wraps an exception of a kernel in an `InterpreterError`; the type and origin of the
wrapped exception show whether the submission is to blame. It is not to blame for code that the compiler would accept
but the interpreter does not, or for needing a GPU where there is none. If in doubt, it is to blame: this reports only
what cannot be its mistake. Runs in the runner's process, untrusted; a submission gains no rank by a false answer.
"""

from __future__ import annotations

import sys
import traceback
from typing import Any

from harness.runner.interpreter import TooSlow

# Places (module and function) that raise only if a compiler or a device is missing.
_INTERPRETER = {
    ("triton.runtime.interpreter", "_patch_lang"),  # `tl` is not a global of the kernel
    ("triton.runtime.interpreter", "_get_np_dtype"),  # a type without a NumPy equivalent
    ("triton.runtime.interpreter", "_new_to_ir"),
}
_IN_A_KERNEL = {("triton.language.core", "wrapper")}  # a function of `tl` that the interpreter did not replace
_TOOLKIT = ("torch.utils.cpp_extension", "_join_cuda_home")
_DEVICE = {("triton.runtime.driver", "_create_driver"), ("torch.cuda", "_lazy_init")}


def origin(error: BaseException) -> BaseException:
    """The exception that the kernel raised, without the interpreter's wrappers."""
    while _of_the_interpreter(error) and error.__cause__ is not None:
        error = error.__cause__
    return error


def why_unsupported(error: BaseException) -> str:
    """Why a CPU cannot run the code that raised this; "" if that is not known to be the cause."""
    raised = origin(error)
    place = _raised_at(raised)
    if type(raised) is TooSlow:
        return "Triton's interpreter is too slow for this; grade it on a GPU"
    if place == _TOOLKIT:
        return "this compiles CUDA, for which there is no GPU and no CUDA toolkit here; grade it on a GPU"
    if place in _DEVICE:
        return "this needs a CUDA device, and there is none here; grade it on a GPU"
    missing = isinstance(raised, NotImplementedError) and place[0].startswith(("triton.", "harness.runner.interpreter"))
    in_a_kernel = raised is not error
    if missing or place in _INTERPRETER or (in_a_kernel and (place in _IN_A_KERNEL or _plain_value(raised))):
        return "Triton's interpreter cannot run this; grade it on a GPU"
    return ""


def _of_the_interpreter(error: BaseException) -> bool:
    # By identity, since asking a submission's class for its name may fail.
    errors = sys.modules.get("triton.runtime.errors")
    return errors is not None and type(error) is errors.InterpreterError


def _raised_at(error: BaseException) -> tuple[str, str]:
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return (str(frames[-1].f_globals.get("__name__", "")), frames[-1].f_code.co_name) if frames else ("", "")


def _plain_value(error: BaseException) -> bool:
    """Whether an attribute is missing because the interpreter uses a plain Python value where the compiler has a tensor
    or a constant (such as the variable of a `for`), or because the interpreter's builder lacks an operation.
    """
    if not isinstance(error, AttributeError) or error.name is None:
        return False
    value: Any = error.obj
    if type(value).__module__ == "triton.runtime.interpreter":
        return True
    tl: Any = sys.modules["triton.language"]
    meant = (tl.tensor(None, tl.int32), tl.constexpr(0))
    return type(value) in (bool, int, float, str) and any(hasattr(kind, error.name) for kind in meant)
