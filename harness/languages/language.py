"""What a language says of itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Compiler:
    """How a source is made a shared library, in the sandbox and in the folder that holds it."""

    program: str
    """Found on the sandbox's PATH."""
    arguments: tuple[str, ...]
    """`{architecture}` stands for what the judge names: `sm_90`, or `native`."""
    unit: str | None = None
    """What is compiled, where it is not the source alone: it includes the source by its name, `submission.<suffix>`."""
    takes_stream: bool = False
    """Whether entry points have a CUDA stream as their last argument, and the unit's functions tell of its errors."""


@dataclass(frozen=True)
class Language:
    """One language. Without a compiler the source is imported into the runner's interpreter."""

    suffix: str
    devices: tuple[Literal["cpu", "cuda"], ...]
    """Where it runs. Elsewhere it is refused; on a CPU only after it was compiled, so that its errors are seen."""
    lexer: str
    """Pygments' name of it, for the site."""
    words: Literal["python", "c"]
    """Whose comments, strings and keywords it has, for `kernelmark similar`."""
    compiler: Compiler | None = None
