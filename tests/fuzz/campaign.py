"""What the fuzz targets share: a seed corpus from valid documents, a dictionary, and libFuzzer's own loop.

A target is a function of bytes that returns, or raises where a property does not hold. New inputs that reach new code
are kept in the corpus folder; an input that fails is written beside it and named on standard error.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import atheris

ROOT = Path(__file__).resolve().parents[2]


def run(name: str, target: Callable[[bytes], None], seeds: Iterable[bytes], words: Iterable[str] = ()) -> None:
    """Fuzz until libFuzzer's options on the command line say to stop; a folder among them replaces the corpus folder.

    A single input may take 10 s and the process 2 GiB, unless the options say otherwise.
    """
    options = [argument for argument in sys.argv[1:] if argument.startswith("-")]
    folders = [Path(argument) for argument in sys.argv[1:] if not argument.startswith("-")]
    if any(folder.is_file() for folder in folders):  # inputs to be tried once
        atheris.Setup(sys.argv, target)
        atheris.Fuzz()
    corpus = folders[0] if folders else ROOT / "build" / "fuzz" / name
    corpus.mkdir(parents=True, exist_ok=True)
    for seed in seeds:
        (corpus / hashlib.sha256(seed).hexdigest()[:16]).write_bytes(seed)
    dictionary = corpus.with_name(f"{corpus.name}.dict")
    dictionary.write_text("".join(f'"{_escaped(word)}"\n' for word in words))
    defaults = {"-timeout": "10", "-artifact_prefix": f"{corpus}-", "-dict": str(dictionary), "-max_len": "16384"}
    given = {option.split("=")[0] for option in options}
    options += [f"{key}={value}" for key, value in defaults.items() if key not in given]
    atheris.Setup([sys.argv[0], *options, str(corpus)], target)
    atheris.Fuzz()


def _escaped(word: str) -> str:
    """As a dictionary of libFuzzer's holds it: every byte in hexadecimal."""
    return "".join(f"\\x{byte:02x}" for byte in word.encode())
