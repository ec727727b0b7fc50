"""Opening files of others: only regular files are opened, and reading neither waits nor goes on without end."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.files import outside
from harness.shared.document import DEPTH, DocumentError, parse_json, parse_toml
from tests.traps import TRAPS, deep, ends

WHY = {
    "pipe": "it is a named pipe, not a regular file",
    "socket": "it is not a regular file",
    "endless": "it is a symbolic link",
    "circle": "it is a symbolic link",
    "folder": "Is a directory",
    "huge": "it is larger than 100 bytes",
}


@pytest.mark.parametrize("trap", TRAPS)
@pytest.mark.parametrize("follow", [False, True])
def test_only_small_regular_files_are_read(trap: str, follow: bool, tmp_path: Path) -> None:
    TRAPS[trap](path := tmp_path / "it")
    followed = {"endless": "it is a device, not a regular file", "circle": "its links lead in a circle"}
    with ends(), pytest.raises(OSError, match=r".") as caught:
        outside.read(path, 100, follow=follow)
    assert caught.value.strerror == ({**WHY, **followed} if follow else WHY)[trap]
    assert caught.value.filename == str(path)


def test_a_file_is_read_and_by_a_link_where_links_may_be(tmp_path: Path) -> None:
    (file := tmp_path / "file").write_bytes(b"x" * 100)
    (link := tmp_path / "link").symlink_to(file)
    assert outside.read(file, 100) == outside.read(link, 100, follow=True) == b"x" * 100
    with pytest.raises(outside.TooLarge):
        outside.read(file, 99)
    with pytest.raises(FileNotFoundError):
        outside.read(tmp_path / "none", 1)
    with pytest.raises(OSError, match="its name holds a NUL character"):
        outside.read(tmp_path / "a\0b", 1)


def test_a_folder_is_walked_within_bounds(tmp_path: Path) -> None:
    for name in ("a/b/c/d", "e"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "a/b/file").touch()
    (tmp_path / "a/link").symlink_to(tmp_path)
    found = [(str(at.relative_to(tmp_path)), *names) for at, *names in outside.walked(tmp_path, most=6, deepest=2)]
    assert found == [(".", ["a", "e"], []), ("a", ["b"], ["link"]), ("a/b", ["c"], ["file"]), ("e", [], [])]
    with pytest.raises(outside.TooLarge, match="it holds more than 5 files"):
        [*outside.walked(tmp_path, most=5, deepest=2)]
    names = []
    for at, folders, _ in outside.walked(tmp_path, most=6, deepest=9):
        names.append(at.name)
        folders[:] = [name for name in folders if name != "a"]
    assert names == [tmp_path.name, "e"]


def test_a_folder_deeper_than_any_stack_is_walked(tmp_path: Path) -> None:
    with deep(tmp_path):
        assert len([*outside.walked(tmp_path, most=5000, deepest=20)]) == 21
        assert 1000 < len([*outside.walked(tmp_path, most=5000, deepest=5000)]) < 3000, "as far as a path may go"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[" * 100_000, f"nested more than {DEPTH} deep"),
        ("[" * (DEPTH + 1) + "]" * (DEPTH + 1), f"nested more than {DEPTH} deep"),
        ('{"a":' * 200 + "1" + "}" * 200, f"nested more than {DEPTH} deep"),
        ("9" * 400, "a number of more than 20 digits"),
        ("[1e999]", "1e999 is not a finite number"),
        ("[-Infinity]", "-Infinity is not a number of JSON"),
        ('{"a": 1, "a": 2}', "a field stands twice"),
        ("{]", "not JSON"),
        (b"\xff", "not JSON (it is not UTF-8 text)"),
    ],
)
def test_json_beyond_a_bound_is_refused(text: str | bytes, why: str) -> None:
    with pytest.raises(DocumentError) as caught:
        parse_json(text)
    assert str(caught.value).startswith(why)


def test_json_within_the_bounds_is_read() -> None:
    deep = "[" * DEPTH + "]" * DEPTH
    assert parse_json(deep) == eval(deep)  # noqa: S307 - brackets alone
    assert parse_json(b'{"a": [-9223372036854775808, 18446744073709551615, 1.5e300, "[[[{{{"]}') == {
        "a": [-(1 << 63), (1 << 64) - 1, 1.5e300, "[[[{{{"]
    }


@pytest.mark.parametrize(
    ("raw", "why", "line"),
    [
        (b"a = 1\nb = \xff", "is not UTF-8 text", 2),
        (b"a = 1\nb = ", "is not TOML: Invalid value", None),
        (b"a = 1\nb = =", "is not TOML: Invalid value", 2),
        (b"a = " + b"[" * 5000, "is not TOML: values are nested too deeply", None),
        (b".".join([b"a"] * 150) + b" = 1", "is not TOML: values are nested too deeply", None),
        (b"a = " + b"9" * 5000, "is not TOML: a number has too many digits", None),
    ],
)
def test_toml_beyond_a_bound_is_refused(raw: bytes, why: str, line: int | None) -> None:
    with pytest.raises(DocumentError) as caught:
        parse_toml(raw)
    assert str(caught.value).startswith(why)
    assert caught.value.line == line


def test_toml_is_read_whatever_its_line_ends() -> None:
    assert parse_toml(b"a = 1\r\n[b]\r\nc = [2]\n") == {"a": 1, "b": {"c": [2]}}


@pytest.mark.parametrize("parse", [parse_json, parse_toml])
@pytest.mark.parametrize("seed", range(20))
def test_nothing_but_a_document_error_leaves_a_reader(parse: Callable[[bytes], object], seed: int) -> None:
    """Pieces of both languages in any order, and bytes that are of neither."""
    drawn = random.Random(seed)
    pieces = (
        *(b"[", b"]", b"{", b"}", b'"', b",", b":", b"=", b".", b"\n", b"a", b"#", b"'''", b"\\ud800", b"\\"),
        *(b"-0", b"1e999", b"9" * 5000, b"NaN", b"nan", b"inf", b"true", b"null", b"0x" + b"f" * 9000, b"1979-13-45"),
        *(b"[" * 2000, b'{"a":' * 500, b"a." * 300, b"\xff\x00", "é".encode()),
    )
    for _ in range(200):
        raw = b"".join(drawn.choices(pieces, k=drawn.randrange(1, 12)))
        try:
            parse(raw)
        except DocumentError as error:
            assert len(str(error)) < 300  # noqa: PT017 - whether it is raised depends on what was drawn


# Their own package's files, the kernel's, what they wrote themselves, or code that is graded.
OPENS_ITS_OWN = re.compile(
    r"harness/(runner|importer|launcher|debug|device|judge|sandbox)/|"
    r"kernelmark/(diagnostics/(selftest|doctor)/|grading/(fleet/|resident/key)|authoring/(skeleton|init|rendering))|"
    r"kernelmark/server/(accounts|queue)/|kernelmark/record/site\.py|leaderboard/record/(durable|index)\.py|"
    r"leaderboard/publishing/site/(build|folder|pages/overview)|"
    r"harness/(files/(outside|kept)|shared/document)\.py"
)
OPENS = re.compile(r"\.read_(text|bytes)\(|\.open\((\"rb\"|encoding)|\b(json|tomllib)\.loads?\(")


def test_only_listed_modules_open_or_parse_files_of_others() -> None:
    root = Path(__file__).resolve().parents[2]
    found = [
        f"{name}:{number}"
        for package in ("harness", "kernelmark", "leaderboard")
        for file in sorted((root / package).rglob("*.py"))
        if not OPENS_ITS_OWN.match(name := file.relative_to(root).as_posix())
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if OPENS.search(line)
    ]
    assert found == []
