"""Writes the first file of a participant: `kernelmark start`. Trusted; does not import torch.

In PyTorch it is the problem's own definition, which is right and slow. In the other languages it is a copy of the file
`start/kernel.SUFFIX` next to the problem; where there is none, it has the signature alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from harness.errors import UsageError
from harness.files import outside
from harness.languages import LANGUAGES, known
from harness.problem import Problem
from harness.problem.signature import lacks_weights, prototypes
from harness.problem.spec import TensorSpec
from kernelmark.authoring.rendering import render
from kernelmark.authoring.start import pytorch
from kernelmark.authoring.start.source import calling
from kernelmark.project.problems import find_problem
from kernelmark.project.settings import Settings

Start = Literal["triton", "cu", "cpp", "torch"]
_HEADERS = {
    "__half": "cuda_fp16.h",
    "__nv_bf": "cuda_bf16.h",
    "__nv_fp8": "cuda_fp8.h",
    "__nv_fp4": "cuda_fp4.h",
    "cuFloatComplex": "cuComplex.h",
    "cuDoubleComplex": "cuComplex.h",
    "std::complex": "complex",
    "cudaStream_t": "cuda_runtime.h",
}


@dataclass(frozen=True)
class Started:
    """A file that was written."""

    path: Path
    right: bool
    """Whether it solves the problem as it is."""


def write(settings: Settings, reference: str | Path, start: Start | None = None, file: Path | None = None) -> Started:
    """Write a first submission to a problem; by default it is named after the problem, in the working directory.

    Raises:
        UsageError: there is no such problem, it cannot be solved in this language, the file has another suffix, exists
        or cannot be written.
    """
    problem = find_problem(settings, reference)
    start, path = choose(problem.slug, start, file)
    return store(path, source(problem, start), start)


def source(problem: Problem, start: Start) -> str:
    """The text of a first submission.

    Raises:
        UsageError: the problem cannot be solved in this language.
    """
    return pytorch.source(problem) if start == "torch" else _kernel(problem, _suffix(start))


def choose(slug: str, start: Start | None, file: Path | None) -> tuple[Start, Path]:
    """What to write, and into which file, if either is not given.

    Raises:
        UsageError: the file has another suffix.
    """
    if start is None:
        if file and file.suffix.removeprefix(".") not in LANGUAGES:
            raise UsageError(str(file), f"does not end in {known()}", "use one of these, which names the language")
        start = "cu" if file and file.suffix == ".cu" else "cpp" if file and file.suffix == ".cpp" else "torch"
    suffix = _suffix(start)
    path = file or Path(f"{slug}.{suffix}")
    if path.suffix != f".{suffix}":
        raise UsageError(str(path), f"does not end in .{suffix}, as --lang {start} needs", f"name it *.{suffix}")
    return start, path


def store(path: Path, text: str, start: Start) -> Started:
    """Write the text of a first submission.

    Raises:
        UsageError: the file exists or cannot be written.
    """
    if not path.parent.is_dir():
        raise UsageError(str(path), f"cannot be written: there is no folder {path.parent}", "make it first")
    try:
        with path.open("x", encoding="utf-8") as out:
            try:
                out.write(text)
                out.flush()
            except OSError:
                path.unlink()  # otherwise it exists already the next time
                raise
    except FileExistsError:
        raise UsageError(str(path), "exists already", "name another FILE") from None
    except OSError as error:
        raise UsageError(str(path), f"cannot be written ({error.strerror})") from None
    return Started(path, right=start == "torch")


def _suffix(start: Start) -> str:
    return start if start in LANGUAGES else "py"


def _kernel(problem: Problem, suffix: str) -> str:
    own = problem.directory / "start" / f"kernel.{suffix}"
    try:
        return outside.text(own)
    except FileNotFoundError:
        return _outline(problem, suffix)
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", "") or "it is not UTF-8 text"
        raise UsageError(str(own), f"cannot be read ({why})") from None


def _outline(problem: Problem, suffix: str) -> str:
    """The signature in the language of files with this suffix, to be filled in; Python is in Triton."""
    table = _table(problem.tensors)
    if suffix == "py":
        return render("start/outline.py.jinja", problem=problem, calling=calling(problem), table=table)
    functions = [*prototypes(problem, suffix).values()]
    if not functions:
        what = f"has no case for {' or '.join(LANGUAGES[suffix].devices)}, where a .{suffix} file runs"
        raise UsageError(problem.slug, what, "choose another --lang")
    used = {header for word, header in _HEADERS.items() if any(word in function for function in functions)}
    return render(
        "start/outline.c.jinja",
        problem=problem,
        language="CUDA" if suffix == "cu" else "C++",
        headers=sorted({"cstdint", *used}),
        table=table,
        functions=functions,
        lacks_weights=lacks_weights(problem),
    )


def _table(tensors: tuple[TensorSpec, ...]) -> list[str]:
    """A line about each tensor: its name, shape, dtype and role."""
    rows = [(tensor.name, _shape(tensor), tensor.dtype, tensor.role) for tensor in tensors]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return ["  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]]) for row in rows]


def _shape(tensor: TensorSpec) -> str:
    shape = f"[{', '.join(map(str, tensor.shape))}]"
    strides = f" strides [{', '.join(map(str, tensor.strides))}]" if tensor.strides is not None else ""
    return (f"{tensor.count} × " if tensor.count is not None else "") + shape + strides
