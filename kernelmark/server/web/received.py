"""Reads a submission as it was sent: as a form, as a document, or many as lines of JSON. The bytes are hostile.

The routes of submissions call it with a body whose size is bounded already. Nothing is unpacked, run or parsed but the
form and JSON.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from pathlib import PurePath

from pydantic import ValidationError
from starlette.datastructures import FormData, Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from harness.files.identity import length_prefixed_sha256
from harness.submission import MAX_BESIDE, Submission, language_of
from kernelmark.server.web import errors
from kernelmark.service.refusal import Refusal
from kernelmark.service.submissions import SubmissionRequest

PARTS = MAX_BESIDE + 2
"""Of a form: the submission's files and one field. Who has more fields with as many files sends JSON."""
LINES = 256
"""Submissions in one request at most."""
_NAME = 128  # characters of a file's name
FIELDS = tuple(name for name in SubmissionRequest.model_fields if name not in ("source", "beside"))
"""Of a form, besides its files."""
_MAGIC = (
    (0, b"PK\x03\x04", "zip"),
    (0, b"PK\x05\x06", "zip"),
    (0, b"\x1f\x8b", "gzip"),
    (0, b"BZh", "bzip2"),
    (0, b"\xfd7zXZ\x00", "xz"),
    (0, b"\x28\xb5\x2f\xfd", "zstd"),
    (0, b"7z\xbc\xaf\x27\x1c", "7z"),
    (0, b"Rar!\x1a\x07", "rar"),
    (257, b"ustar", "tar"),
)


class _InMemory(MultiPartParser):
    """Never writes a part to a file: the body is no larger than this. Its text is UTF-8, whatever the form says: to
    decode as much in another of Python's codecs, such as punycode, takes minutes, in which nobody is answered."""

    spool_max_size = 16 << 20

    @property
    def _charset(self) -> str:
        return "utf-8"

    @_charset.setter
    def _charset(self, given: str) -> None:
        pass


def document(body: bytes) -> SubmissionRequest:
    """A submission that was sent as a document of JSON.

    Raises:
        Refusal: it is malformed, or one of its files is an archive.
    """
    try:
        asked = SubmissionRequest.model_validate_json(body)
    except ValidationError as error:
        raise errors.malformation(error.errors(include_url=False, include_input=False)) from None
    return _checked(asked)


def lines(body: bytes) -> Iterator[SubmissionRequest | Refusal]:
    """The submissions of as many lines of JSON; of a line that is none, the refusal.

    Raises:
        Refusal: there are none, or too many.
    """
    given = [line for line in body.split(b"\n") if line.strip()]
    if not given:
        raise Refusal(422, "malformed", "the body", "holds no line", "send one submission as JSON in each line")
    if len(given) > LINES:
        raise Refusal(413, "too-many", "the body", f"holds {len(given):,} lines", f"send at most {LINES} at a time")
    for line in given:
        try:
            yield document(line)
        except Refusal as refusal:
            yield refusal


async def form(headers: Headers, body: bytes) -> SubmissionRequest:
    """A submission that was sent as a form: the fields of the document, `file`, and `with` for each file beside it.

    Raises:
        Refusal: it is malformed, holds too many parts, or one of its files is an archive.
    """

    async def stream() -> AsyncGenerator[bytes, None]:
        yield body

    parser = _InMemory(headers, stream(), max_files=PARTS, max_fields=PARTS, max_part_size=len(body) + 1)
    try:
        given = await parser.parse()
    except (MultiPartException, LookupError, UnicodeError) as error:
        if isinstance(error, MultiPartException) and error.message.startswith("Too many"):
            raise _too_many_parts() from None
        raise Refusal(422, "form", "the form", "cannot be read", "send multipart/form-data, as curl -F does") from None
    try:
        return await _of_form(given)
    finally:
        await given.close()


def request_sha256(asked: SubmissionRequest) -> str:
    """The hash of a whole request, however it was sent; an idempotency key is bound to it."""
    return length_prefixed_sha256(b"kernelmark request", asked.model_dump_json().encode())


async def _of_form(given: FormData) -> SubmissionRequest:
    if len(given.multi_items()) > PARTS:
        raise _too_many_parts()
    fields: dict[str, object] = {}
    files: dict[str, list[tuple[str, bytes]]] = {"file": [], "with": []}
    for name, value in given.multi_items():
        shown = ascii(name)[1:-1][:80]
        if isinstance(value, UploadFile):
            if name not in files:
                raise Refusal(422, "form", shown, "is no file of a submission", "name files `file` and `with`")
            files[name].append((_name(value.filename or ""), await value.read()))
        elif name not in FIELDS:
            raise Refusal(422, "form", shown, "is no field of a submission", f"use {', '.join(FIELDS)}")
        elif name in fields:
            raise Refusal(422, "form", shown, "is given twice", "give it once")
        else:
            fields[name] = value == "true" if name == "again" and value in ("true", "false") else value
    if len(files["file"]) != 1:
        what = f"is given {len(files['file'])} times"
        raise Refusal(422, "form", "file", what, "send the kernel as `file`, and other files as `with`")
    ((own, source),) = files["file"]
    fields.setdefault("language", PurePath(own).suffix.removeprefix("."))
    beside = tuple({"name": name, "content": b""} for name, _ in files["with"])
    try:
        asked = SubmissionRequest.model_validate({**fields, "source": b"", "beside": beside})
    except ValidationError as error:
        if error.errors()[0]["loc"][:1] == ("language",):
            language_of(PurePath(own))
        raise errors.malformation(error.errors(include_url=False, include_input=False)) from None
    contents = [content for _, content in files["with"]]
    with_contents = tuple(
        one.model_copy(update={"content": content}) for one, content in zip(asked.beside, contents, strict=True)
    )
    return _checked(asked.model_copy(update={"source": source, "beside": with_contents}))


def _checked(asked: SubmissionRequest) -> SubmissionRequest:
    own = f"submission.{asked.language}"
    for name, content in ((own, asked.source), *((one.name, one.content) for one in asked.beside)):
        for begin, magic, kind in _MAGIC:
            if content[begin : begin + len(magic)] == magic:
                raise Refusal(415, "archive", name, f"is an archive ({kind})", "submit source files, not archives")
    if not asked.source.strip():
        raise Refusal(422, "empty", own, "is empty", "save your kernel first")
    beside = {one.name: one.content for one in asked.beside}
    if len(beside) < len(asked.beside):
        raise Refusal(422, "submission", "beside", "names a file twice", "rename one")
    made = Submission.of(asked.source, asked.language, author="author", beside=beside)  # raises what is wrong with it
    ordered = {one.name: one for one in asked.beside}
    return asked.model_copy(update={"beside": tuple(ordered[name] for name, _ in made.beside)})


def _name(given: str) -> str:
    if not 0 < len(given) <= _NAME or not given.isprintable():
        what = "is empty, too long or holds characters that cannot be printed"
        raise Refusal(422, "name", "the name of a file", what, f"use up to {_NAME} printable characters")
    return given


def _too_many_parts() -> Refusal:
    what, remedy = f"has more than {PARTS} parts", "send fewer files, or JSON"
    return Refusal(413, "too-many-parts", "the form", what, remedy)
