"""The description of a language, which its module defines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Compiler:
    """How a source is compiled to a shared library, in the source's folder in the sandbox."""

    program: str
    """The compiler, which is found by the sandbox's PATH."""
    arguments: tuple[str, ...]
    """Its arguments; `{architecture}` is replaced by the judge's value, such as `sm_90a`, and `{virtual}` by what nvcc
    calls its virtual architecture, `compute_90a`.
    """
    unit: str | None = None
    """The code that is compiled, if not only the source; it includes the source as `submission.<suffix>`."""
    line_info: tuple[str, ...] = ()
    """Additional arguments for tools that show source lines; they must not change the code."""
    takes_stream: bool = False
    """Whether entry points take a CUDA stream as the last argument, and `unit` has functions that report errors."""


@dataclass(frozen=True)
class Language:
    """A language of submissions. Without a compiler, the source is imported into the runner's interpreter."""

    suffix: str
    devices: tuple[Literal["cpu", "cuda"], ...]
    """The devices on which it runs. Other devices refuse it, a CPU only after compiling, so that errors are shown."""
    lexer: str
    """The Pygments lexer, for the site."""
    extra_files: tuple[str, ...]
    """The suffixes of extra files that a submission may include or import."""
    words: Literal["python", "c"]
    """The syntax of comments, strings and keywords, for `kernelmark similar`."""
    compiler: Compiler | None = None
