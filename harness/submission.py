"""A submission: a source file, the extra files that it uses, its author, and the hash that identifies it.

The front end reads it, and the judge passes its bytes to the runner. Trusted code that reads untrusted bytes: nothing
here interprets the source.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from harness.errors import SubmissionError
from harness.files import outside
from harness.files.identity import length_prefixed_sha256
from harness.languages import LANGUAGES, known
from harness.languages.extra_files import malformed, refused

MAX_SOURCE_BYTES = 1 << 20  # of all files of a submission together
MAX_BESIDE = 32  # extra files
_TOO_LARGE = f"is larger than {MAX_SOURCE_BYTES:,} bytes"
_REMEDY = "submit source, not data"


def _known_language(suffix: str) -> str:
    if suffix not in LANGUAGES:
        raise ValueError(f"unknown language {suffix[:40]!r}")
    return suffix


LanguageName = Annotated[str, AfterValidator(_known_language), Field(json_schema_extra={"enum": list(LANGUAGES)})]
"""The suffix of a language in `harness.languages`: `py`, `cu`, `cpp`."""


def _well_formed(name: str) -> str:
    if why := malformed(name):
        raise ValueError(f"{name[:80]!r} {why}")
    return name


BesideName = Annotated[str, AfterValidator(_well_formed)]
"""The name of an extra file. Only `Submission.of` refuses names of modules in the sandbox: these differ between
versions of Python, and recorded submissions must stay readable."""
AUTHOR = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def language_of(path: PurePath) -> str:
    """The language of a file, by its suffix.

    Raises:
        SubmissionError: no language has that suffix.
    """
    if (language := path.suffix.removeprefix(".")) not in LANGUAGES:
        raise SubmissionError(str(path), f"unknown language {path.suffix or '(no suffix)'!r}", f"use {known()}")
    return language


class Submission(BaseModel):
    """A submitted kernel. The same files by two authors have the same `sha256`, whatever the name of the first file."""

    model_config = ConfigDict(frozen=True)

    name: str
    author: str
    language: LanguageName
    source: bytes
    beside: tuple[tuple[BesideName, bytes], ...] = ()
    """The names and contents of the extra files, which the source includes or imports, ordered by name."""

    @property
    def sha256(self) -> str:
        beside = (part for name, content in self.beside for part in (name.encode(), content))
        return length_prefixed_sha256(b"kernelmark submission", self.language.encode(), self.source, *beside)

    @property
    def stem(self) -> str:
        """The name without suffixes, by which baselines are identified."""
        return self.name.partition(".")[0]

    @property
    def size_bytes(self) -> int:
        """The size of all files together."""
        return len(self.source) + sum(len(content) for _, content in self.beside)

    @property
    def files(self) -> tuple[tuple[str, bytes], ...]:
        """The names and contents of all files, its own first."""
        return (self.name, self.source), *self.beside

    @classmethod
    def read(cls, path: Path, author: str, beside: Sequence[Path] = ()) -> Submission:
        """Read a file, whose suffix names its language, and its extra files (`beside`).

        Raises:
            SubmissionError: a file does not exist, is empty or not UTF-8 text, or has a name that is not allowed; there
                are more than 32 extra files, or more than 1 MiB together; or the author's name cannot be part of a
                path.
        """
        for file in (path, *beside):
            if not isinstance(file, Path):
                raise SubmissionError("path", f"is of type {type(file).__name__}", "give a pathlib.Path")
        if os.path.isdir(path):  # noqa: PTH112 - unlike Path.is_dir, it takes a name of any length
            raise SubmissionError(str(path), "is a folder, not a kernel", f"name the file in it ({known()})")
        language = language_of(path)
        source = _content(path)
        if not source.strip():
            raise SubmissionError(str(path), "is empty", "save your kernel first; `kernelmark start` writes one")
        contents: dict[str, bytes] = {}
        for other in beside:
            if other.name in contents:
                raise SubmissionError(str(other), "has the name of another file beside the submission", "rename one")
            contents[other.name] = _content(other)
        name = os.fsencode(path.name).decode("utf-8", "backslashreplace")
        return cls.of(source, language, author=author, name=name, beside=contents)

    @classmethod
    def of(
        cls,
        source: bytes | str,
        language: str,
        *,
        author: str,
        name: str = "",
        beside: Mapping[str, bytes | str] | None = None,
    ) -> Submission:
        """Make a submission from source in memory; `beside` contains the extra files by name.

        Raises:
            SubmissionError: as for `read`, or an argument has a wrong type.
        """
        if not isinstance(language, str) or language not in LANGUAGES:
            what = f"unknown language {str(language)[:40]!r}"
            raise SubmissionError("submission", what, "use " + known("'{}'"))
        for what, value, types in (("source", source, str | bytes), ("author", author, str), ("name", name, str)):
            if not isinstance(value, types):
                raise SubmissionError(
                    f"submission.{language}", f"its {what} is of type {type(value).__name__}", "give a str"
                )
        # A file name need not be valid text; a verdict must be.
        name = name.encode("utf-8", "backslashreplace").decode() or f"submission.{language}"
        raw, others = _encoded(name, source), _checked_files(name, language, beside or {})
        if len(raw) + sum(len(content) for _, content in others) > MAX_SOURCE_BYTES:
            raise SubmissionError(name, f"with the files beside it {_TOO_LARGE}" if others else _TOO_LARGE, _REMEDY)
        if not AUTHOR.fullmatch(author):
            raise SubmissionError(
                "author",
                f"{author[:80]!r} is not a valid name",
                "use up to 64 letters, digits, '.', '_' and '-', starting with a letter or a digit",
            )
        return cls(name=name, author=author, language=language, source=raw, beside=others)


def _content(path: Path) -> bytes:
    try:
        return outside.read(path, MAX_SOURCE_BYTES, follow=True)
    except outside.TooLarge:
        raise SubmissionError(str(path), _TOO_LARGE, _REMEDY) from None
    except OSError as error:
        raise SubmissionError(str(path), f"cannot be read ({error.strerror})") from error


def _encoded(name: str, content: bytes | str) -> bytes:
    """The bytes of one file, which must be text."""
    # A lone surrogate, as in broken output of a language model, becomes bytes that are refused below.
    raw = content.encode(errors="surrogatepass") if isinstance(content, str) else content
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SubmissionError(name, f"is not UTF-8 text (byte {error.start})", "save it as UTF-8") from error
    if "\0" in text:
        raise SubmissionError(name, f"holds a NUL character (at {text.index(chr(0))})", "submit source, not a binary")
    return raw


def _checked_files(own: str, language: str, beside: Mapping[str, bytes | str]) -> tuple[tuple[str, bytes], ...]:
    """The submission's extra files, checked and ordered by name."""
    if len(beside) > MAX_BESIDE:
        raise SubmissionError(own, f"has {len(beside)} files beside it", f"use at most {MAX_BESIDE}")
    suffixes = LANGUAGES[language].extra_files
    for name, content in beside.items():
        shown = ascii(str(name))[1:-1][:80]
        if not isinstance(content, str | bytes):
            raise SubmissionError(shown, f"its content is of type {type(content).__name__}", "give a str")
        if not isinstance(name, str) or name.rpartition(".")[2] not in suffixes:
            allowed = " or ".join(f".{suffix}" for suffix in suffixes)
            raise SubmissionError(shown, f"cannot lie beside a .{language} submission", f"give files in {allowed}")
        if name == own:
            raise SubmissionError(shown, "has the name of the submission's own file", "rename one")
        if why := refused(name):
            raise SubmissionError(shown, why, "rename it: up to 64 letters, digits and '_' before its suffix")
    return tuple((name, _encoded(name, content)) for name, content in sorted(beside.items()))
