"""A submission: one source file, who wrote it, and the hash that identifies it.

The front end reads it, the judge passes its bytes to the runner. Trusted code over untrusted bytes: nothing here
interprets the source.
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePath
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from harness.errors import SubmissionError
from harness.identity import length_prefixed_sha256
from harness.languages import LANGUAGES, known

MAX_SOURCE_BYTES = 1 << 20


def _known(suffix: str) -> str:
    if suffix not in LANGUAGES:
        raise ValueError(f"unknown language {suffix[:40]!r}")
    return suffix


LanguageName = Annotated[str, AfterValidator(_known), Field(json_schema_extra={"enum": list(LANGUAGES)})]
"""The suffix of a language in `harness.languages`: `py`, `cu`, `cpp`."""
_AUTHOR = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def language_of(path: PurePath) -> str:
    """The language of a file, by its suffix.

    Raises:
        SubmissionError: no language has that suffix.
    """
    if (language := path.suffix.removeprefix(".")) not in LANGUAGES:
        raise SubmissionError(str(path), f"unknown language {path.suffix or '(no suffix)'!r}", f"use {known()}")
    return language


class Submission(BaseModel):
    """One kernel as submitted; the same file from two authors has the same `sha256`."""

    model_config = ConfigDict(frozen=True)

    name: str
    author: str
    language: LanguageName
    source: bytes

    @property
    def sha256(self) -> str:
        return length_prefixed_sha256(b"kernelmark submission", self.language.encode(), self.source)

    @classmethod
    def read(cls, path: Path, author: str) -> Submission:
        """Read a file whose suffix names its language.

        Raises:
            SubmissionError: it does not exist, is larger than 1 MiB, is not UTF-8 text, or the author's name cannot be
            part of a path.
        """
        if not isinstance(path, Path):
            raise SubmissionError("path", f"is of type {type(path).__name__}", "give a pathlib.Path")
        language = language_of(path)
        try:
            with path.open("rb") as file:
                source = file.read(MAX_SOURCE_BYTES + 1)
        except OSError as error:
            raise SubmissionError(str(path), f"cannot be read ({error.strerror})") from error
        if len(source) > MAX_SOURCE_BYTES:
            raise SubmissionError(str(path), f"is larger than {MAX_SOURCE_BYTES:,} bytes", "submit source, not data")
        name = os.fsencode(path.name).decode("utf-8", "backslashreplace")
        return cls.of(source, language, author=author, name=name)

    @classmethod
    def of(cls, source: bytes | str, language: str, *, author: str, name: str = "") -> Submission:
        """Make a submission from source that is already in memory.

        Raises:
            SubmissionError: as for `read`; or an argument is of another type.
        """
        if not isinstance(language, str) or language not in LANGUAGES:
            what = f"unknown language {str(language)[:40]!r}"
            raise SubmissionError("submission", what, "use " + known("'{}'"))
        for what, given, types in (("source", source, str | bytes), ("author", author, str), ("name", name, str)):
            if not isinstance(given, types):
                raise SubmissionError(
                    f"submission.{language}", f"its {what} is of type {type(given).__name__}", "give a str"
                )
        # A file name need not be valid text; a verdict must be.
        name = name.encode("utf-8", "backslashreplace").decode() or f"submission.{language}"
        # A lone surrogate, as in a model's broken output, becomes bytes that are refused below.
        raw = source.encode(errors="surrogatepass") if isinstance(source, str) else source
        if len(raw) > MAX_SOURCE_BYTES:
            raise SubmissionError(name, f"is larger than {MAX_SOURCE_BYTES:,} bytes", "submit source, not data")
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise SubmissionError(
                name, f"is not UTF-8 text (byte {error.start})", "submit source, not a binary"
            ) from error
        if "\0" in text:
            raise SubmissionError(
                name, f"holds a NUL character (at {text.index(chr(0))})", "submit source, not a binary"
            )
        if not _AUTHOR.fullmatch(author):
            raise SubmissionError(
                "author",
                f"{author[:80]!r} is not a valid name",
                "use up to 64 letters, digits, '.', '_' and '-', starting with a letter or a digit",
            )
        return cls(name=name, author=author, language=language, source=raw)
