"""Submissions as they are sent: what is malformed, too much or an archive is refused, and the same kernel is read."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import tarfile
import zipfile
from base64 import b64encode
from collections.abc import Sequence

import pytest
from starlette.datastructures import Headers

from harness.errors import SubmissionError
from harness.submission import MAX_BESIDE
from kernelmark.server.web import received
from kernelmark.service.refusal import Refusal
from kernelmark.service.submissions import SubmissionRequest

KERNEL = b"def vector_add(x, y, out):\n    out.copy_(x + y)\n"
FIELDS = [("problem", None, b"vector_add"), ("file", "kernel.py", KERNEL)]
Part = tuple[str, str | None, bytes]


def form(parts: Sequence[Part], media_type: str = "multipart/form-data; boundary=xyz") -> SubmissionRequest:
    body = b""
    for name, file, content in parts:
        disposition = f'form-data; name="{name}"' + (f'; filename="{file}"' if file is not None else "")
        body += b"--xyz\r\nContent-Disposition: " + disposition.encode() + b"\r\n\r\n" + content + b"\r\n"
    headers = Headers({"content-type": media_type})
    return asyncio.run(received.form(headers, body + b"--xyz--\r\n"))


def sent(**changed: object) -> bytes:
    return json.dumps(
        {"problem": "vector_add", "language": "py", "source": b64encode(KERNEL).decode(), **changed}
    ).encode()


def archives() -> dict[str, bytes]:
    packed, tarred = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("kernel.py", KERNEL)
    with tarfile.open(fileobj=tarred, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("kernel.py"))
    empty = io.BytesIO()
    zipfile.ZipFile(empty, "w").close()
    return {
        "zip": packed.getvalue(),
        "empty zip": empty.getvalue(),
        "gzip": gzip.compress(KERNEL),
        "tar": tarred.getvalue(),
        "xz": b"\xfd7zXZ\x00rest",
        "zstd": b"\x28\xb5\x2f\xfdrest",
    }


def test_a_form_and_a_document_are_the_same_request() -> None:
    beside = [
        {"name": "b.py", "content": b64encode(b"B = 1\n").decode()},
        {"name": "a.py", "content": b64encode(b"A = 1\n").decode()},
    ]
    as_document = received.document(sent(beside=beside, mode="bench", again=True))
    as_form = form(
        [
            *FIELDS,
            ("with", "a.py", b"A = 1\n"),
            ("with", "b.py", b"B = 1\n"),
            ("mode", None, b"bench"),
            ("again", None, b"true"),
        ]
    )
    assert as_document == as_form
    assert [one.name for one in as_form.beside] == ["a.py", "b.py"]
    assert received.request_sha256(as_document) == received.request_sha256(as_form)
    assert received.request_sha256(as_form) != received.request_sha256(form(FIELDS))


def test_the_language_is_that_of_the_name_unless_it_is_said() -> None:
    assert form(FIELDS).language == "py"
    assert (
        form([("problem", None, b"vector_add"), ("file", "kernel", KERNEL), ("language", None, b"cu")]).language == "cu"
    )
    with pytest.raises(SubmissionError, match="unknown language"):
        form([("problem", None, b"vector_add"), ("file", "kernel.txt", KERNEL)])


@pytest.mark.parametrize("kind", archives())
def test_archives_are_refused(kind: str) -> None:
    content = archives()[kind]
    for ask in (
        lambda: form([FIELDS[0], ("file", "kernel.py", content)]),
        lambda: form([*FIELDS, ("with", "other.py", content)]),
        lambda: received.document(sent(source=b64encode(content).decode())),
    ):
        with pytest.raises(Refusal, match="is an archive") as refused:
            ask()
        assert (refused.value.status, refused.value.code) == (415, "archive")


def test_a_source_that_only_speaks_of_archives_is_taken() -> None:
    assert form([FIELDS[0], ("file", "kernel.py", b"# PK\x03\x04 ustar\n" + KERNEL)]).source.endswith(KERNEL)


@pytest.mark.parametrize("name", ["a\x07b.py", "a\u202eb.py", "x" * 126 + ".py", "a\tb.py"])
def test_names_that_cannot_be_shown_are_refused(name: str) -> None:
    for parts in ([FIELDS[0], ("file", name, KERNEL)], [*FIELDS, ("with", name, b"A = 1\n")]):
        with pytest.raises(Refusal) as refused:
            form(parts)
        assert refused.value.status == 422
        assert name not in str(refused.value)


@pytest.mark.parametrize("name", ["../a.py", "a/b.py", "torch.py", ".py", "a b.py"])
def test_names_beside_that_no_module_has_are_refused(name: str) -> None:
    with pytest.raises((Refusal, SubmissionError)):
        form([*FIELDS, ("with", name, b"A = 1\n")])
    with pytest.raises((Refusal, SubmissionError)):
        received.document(sent(beside=[{"name": name, "content": ""}]))


def test_a_form_has_at_most_so_many_parts() -> None:
    beside: list[Part] = [("with", f"m{number}.py", b"A = 1\n") for number in range(MAX_BESIDE)]
    assert len(form([*FIELDS, *beside]).beside) == MAX_BESIDE
    for more in (("mode", None, b"check"), ("with", "more.py", b"A = 1\n")):
        with pytest.raises(Refusal) as refused:
            form([*FIELDS, *beside, more])
        assert (refused.value.status, refused.value.code) == (413, "too-many-parts")


@pytest.mark.parametrize(
    ("parts", "where"),
    [
        ([FIELDS[0]], "file"),
        ([*FIELDS, FIELDS[1]], "file"),
        ([*FIELDS, FIELDS[0]], "problem"),
        ([*FIELDS, ("author", None, b"bob")], "author"),
        ([*FIELDS, ("source", None, b"eA==")], "source"),
        ([*FIELDS, ("else", "other.py", b"A = 1\n")], "else"),
        ([*FIELDS, ("mode", None, b"record")], "mode"),
        ([*FIELDS, ("again", None, b"perhaps")], "again"),
        ([FIELDS[1]], "problem"),
        ([("problem", None, b"../etc"), FIELDS[1]], "problem"),
        ([FIELDS[0], ("file", "kernel.py", b" \n")], "submission.py"),
    ],
)
def test_a_form_that_is_none_of_a_submission_is_refused_with_its_place(parts: Sequence[Part], where: str) -> None:
    with pytest.raises(Refusal) as refused:
        form(parts)
    assert (refused.value.status, refused.value.where) == (422, where)


@pytest.mark.parametrize(
    "media_type", ["multipart/form-data", "multipart/form-data; boundary=", "multipart/form-data; boundary=other"]
)
def test_a_form_that_cannot_be_read_is_refused(media_type: str) -> None:
    with pytest.raises(Refusal) as refused:
        form(FIELDS, media_type)
    assert refused.value.status == 422


@pytest.mark.parametrize(
    ("changed", "where"),
    [
        ({"author": "bob"}, "author"),
        ({"batch": "a\x1b[2J"}, "batch"),
        ({"pool": "a\n"}, "pool"),
        ({"name": "x"}, "name"),
        ({"source": "QQQ"}, "source"),
        ({"source": ""}, "submission.py"),
        ({"problem": "a/b"}, "problem"),
        ({"language": "\ud800"}, "language"),
        ({"beside": [{"name": "a.py", "content": "QQ=="}] * 2}, "beside"),
        ({"beside": [{"name": f"m{n}.py", "content": "QQ=="} for n in range(MAX_BESIDE + 1)]}, "beside"),
    ],
)
def test_a_document_that_is_none_of_a_submission_is_refused_with_its_place(
    changed: dict[str, object], where: str
) -> None:
    with pytest.raises(Refusal) as refused:
        received.document(sent(**changed))
    assert refused.value.status == 422
    assert where == "language" or refused.value.where == where


@pytest.mark.parametrize("source", [b"\xff\xfe", b"a\0b", b"x" * ((1 << 20) + 1)])
def test_a_source_that_is_no_text_is_refused(source: bytes) -> None:
    with pytest.raises(SubmissionError):
        form([FIELDS[0], ("file", "kernel.py", source)])


@pytest.mark.parametrize("charset", ["punycode", "utf-7", "idna", "unicode_escape", "nonsense"])
def test_the_text_of_a_form_is_utf_8_whatever_it_says(charset: str) -> None:
    media_type = f"multipart/form-data; boundary=xyz; charset={charset}"
    label = "7n-+AOk-\\xe9 \u00e9"
    assert form([*FIELDS, ("batch", None, label.encode())], media_type).batch == label


def test_lines_are_read_one_by_one() -> None:
    good, bad = sent(), sent(mode="record")
    found = [*received.lines(b"\n".join([good, bad, b"", b"{", good + b"\r"]))]
    assert [type(one) for one in found] == [SubmissionRequest, Refusal, Refusal, SubmissionRequest]
    with pytest.raises(Refusal, match="holds no line"):
        [*received.lines(b" \n")]
    with pytest.raises(Refusal) as refused:
        [*received.lines(b"{}\n" * (received.LINES + 1))]
    assert refused.value.status == 413
