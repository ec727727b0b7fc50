"""Turns an exception of a submission into a reply: one line, and the submission's part of the traceback."""

from __future__ import annotations

import os
import traceback
from contextlib import suppress
from pathlib import Path

import torch

from harness.runner.compiling import CompileError, NoCompiler, source_path
from harness.runner.kernel import CallError
from harness.runner.unsupported import origin, why_unsupported
from harness.wire import replies

_MESSAGE, _TRACEBACK = 500, 8_000
_OUT_OF_MEMORY = ("can't allocate memory", "out of memory")


def describe(error: BaseException, *, building: bool) -> replies.Failed:
    """The `Failed` reply for an exception. This never raises, whatever the exception's `__str__` does."""
    raised = origin(error)
    text = _shown(raised)
    if isinstance(error, CompileError):
        return _failed("compile_error", error.message, error.log)
    if isinstance(error, NoCompiler):
        return _failed("unsupported", str(error), "")
    if isinstance(error, CallError):
        return _failed("runtime_error", text.removeprefix("CallError: "), "")
    if isinstance(error, SyntaxError) and building:
        lines = traceback.format_exception_only(error)
        file = error.filename if isinstance(error.filename, str) else None
        named = f" ({Path(file or '').name}, line {error.lineno})"  # our message begins with the line
        return _failed(
            "compile_error",
            f"{line_reference(file, error.lineno)}: {text.removesuffix(named)}",
            _own_name("".join(lines)),
        )
    outcome = "runtime_error"
    if isinstance(error, MemoryError | torch.OutOfMemoryError) or any(t in text for t in _OUT_OF_MEMORY):
        outcome = "memory_limit"
    elif os.environ.get("KERNELMARK_DEVICE") != "cuda" and (why := _why_unsupported(error)):
        outcome, text = "unsupported", f"{why} ({text})"
    entries = traceback.extract_tb(error.__traceback__)
    entries += traceback.extract_tb(raised.__traceback__) if raised is not error else []
    frames = [f for f in entries if Path(f.filename).parent == Path.home()]  # in its own file or extra files
    if frames:
        text = f"{line_reference(frames[-1].filename, frames[-1].lineno)}: {text}"
    own = "".join(traceback.format_list(frames)) + text
    return _failed(outcome, text, _own_name(own))


# The following functions call methods of the participant's classes, which may raise anything.


def _shown(raised: BaseException) -> str:
    with suppress(BaseException):
        if str(raised):
            return f"{type(raised).__name__}: {raised}"
    with suppress(BaseException):
        return f"{type(raised).__name__}"
    return "an exception that cannot be shown"


def _why_unsupported(error: BaseException) -> str:
    with suppress(BaseException):
        return why_unsupported(error)
    return ""


def _failed(outcome: str, message: str, trace: str) -> replies.Failed:
    first = message.strip().splitlines()[0] if message.strip() else "no message"
    if len(trace) > _TRACEBACK:
        half = _TRACEBACK // 2 - 20
        trace = f"{trace[:half]}\n[...]\n{trace[-half:]}"
    return replies.Failed(outcome=outcome, message=first[:_MESSAGE], traceback=trace, fatal=False)


def line_reference(file: str | None, line: int | None) -> str:
    """Describe a line of the submission, with the file's name if it is an extra file."""
    own = file is None or Path(file) == source_path() or Path(file).parent != Path.home()
    return f"line {line}" if own else f"{Path(str(file)).name} line {line}"


def _own_name(text: str) -> str:
    """Shorten paths in the sandbox, which mean nothing to the participant, to the file's name."""
    return text.replace(f"{Path.home()}/", "")
