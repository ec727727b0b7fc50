"""The description of a language, which its module defines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Compiler:
    """How a source is compiled to a shared library, in the sandbox and in the source's folder."""

    program: str
    """Found on the sandbox's PATH."""
    arguments: tuple[str, ...]
    """`{architecture}` is replaced by what the judge names: `sm_90`, or `native`."""
    unit: str | None = None
    """What is compiled, if not the source alone: it includes the source as `submission.<suffix>`."""
    line_info: tuple[str, ...] = ()
    """More arguments for tools that show source lines; they must not change the code."""
    takes_stream: bool = False
    """Whether entry points take a CUDA stream as the last argument, and the unit has functions that report its errors.
    """


@dataclass(frozen=True)
class Language:
    """One language. Without a compiler the source is imported into the runner's interpreter."""

    suffix: str
    devices: tuple[Literal["cpu", "cuda"], ...]
    """Where it runs. Elsewhere it is refused; on a CPU only after compiling, so that compile errors are seen."""
    lexer: str
    """Its Pygments lexer, for the site."""
    extra_files: tuple[str, ...]
    """The suffixes of the extra files that a submission in it may include or import."""
    words: Literal["python", "c"]
    """Which syntax of comments, strings and keywords it has, for `kernelmark similar`."""
    compiler: Compiler | None = None
