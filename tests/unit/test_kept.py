"""The cache folder: the least recently used files go first, and a fault in it only costs time."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NoReturn

import pytest

from harness.files.kept import Kept, cache_folder
from tests.command import kernelmark

BYTES = 132  # of a file with content of 100
CONTENTS = {name: name.encode() * 100 for name in "abcd"}


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path / "below" / "kept", 3 * BYTES)


def put(kept: Kept, name: str, used_s: int) -> None:
    kept.put(name, CONTENTS[name])
    os.utime(kept.folder / name, (used_s, used_s))


def test_the_least_recently_used_goes_first(kept: Kept) -> None:
    for used_s, name in enumerate("abc"):
        put(kept, name, used_s)
    assert kept.get("a") == CONTENTS["a"], "which is a use of it"
    kept.put("d", CONTENTS["d"])
    assert {name: kept.get(name) for name in "abcd"} == {**CONTENTS, "b": None}
    assert kept.sizes() == [BYTES] * 3
    assert kept.folder.stat().st_mode & 0o777 == 0o700
    kept.empty()
    assert (kept.sizes(), kept.get("a")) == ([], None)


def test_a_file_larger_than_the_cache_is_not_kept(kept: Kept) -> None:
    kept.put("a", b"a" * 1000)
    assert (kept.get("a"), kept.sizes()) == (None, [])


@pytest.mark.parametrize("damaged", [b"", b"short", CONTENTS["b"]])
def test_a_damaged_file_is_removed(damaged: bytes, kept: Kept) -> None:
    put(kept, "a", 0)
    (kept.folder / "a").write_bytes(damaged)
    assert kept.get("a") is None
    assert kept.sizes() == []


def full(*_: Any, **__: Any) -> NoReturn:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_only_keeps_nothing(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    put(kept, "a", 0)
    with monkeypatch.context() as filled:
        filled.setattr(tempfile, "NamedTemporaryFile", full)
        kept.put("b", CONTENTS["b"])
    with monkeypatch.context() as filled:
        filled.setattr(Path, "replace", full)
        kept.put("c", CONTENTS["c"])
    assert (kept.get("a"), kept.get("b"), kept.get("c")) == (CONTENTS["a"], None, None)
    assert kept.sizes() == [BYTES], "a file that could not be finished is removed"


def test_a_folder_that_cannot_be_made_only_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/none")):
        kept = Kept(folder, 100)
        kept.put("a", b"a")
        assert (kept.get("a"), kept.sizes()) == (None, [])
        kept.empty()


def test_threads_and_processes_share_it(kept: Kept) -> None:
    """Each reads a whole file or none, while others write, remove and read the same ones."""
    code = f"""
from pathlib import Path
from harness.files.kept import Kept
kept = Kept(Path({str(kept.folder)!r}), {2 * BYTES})
for round in range(100):
    for name in "abcd":
        kept.put(name, name.encode() * 100)
        assert kept.get(name) in (None, name.encode() * 100)
"""
    processes = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2)]
    for name in "abcd" * 50:
        kept.put(name, CONTENTS[name])
        assert kept.get(name) in (None, CONTENTS[name])
    assert [process.wait(60) for process in processes] == [0, 0]
    assert sum(Kept(kept.folder, 0).sizes()) <= 3 * BYTES


def test_the_place_of_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for given, folder in {"": tmp_path / ".cache", "relative": tmp_path / ".cache", "/a": Path("/a")}.items():
        monkeypatch.setenv("XDG_CACHE_HOME", given)
        assert cache_folder() == folder / "kernelmark"


def test_the_command_shows_and_empties_it(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "kernelmark", 1000)
    kept.put("a", CONTENTS["a"])
    where = {"XDG_CACHE_HOME": str(tmp_path), "KERNELMARK_CACHE_BYTES": "5000"}
    shown = kernelmark(tmp_path, "cache", **where)
    assert (shown.returncode, shown.stdout) == (0, f"{kept.folder}: 1 file, 132 of at most 5,000 bytes\n"), shown.stderr
    assert kept.get("a"), "it was not emptied"
    emptied = kernelmark(tmp_path, "cache", "--empty", **where)
    assert (emptied.returncode, emptied.stdout) == (0, f"{kept.folder}: 0 files, 0 of at most 5,000 bytes\n")
    (stays := kept.folder / "folder").mkdir()
    refused = kernelmark(tmp_path, "cache", "--empty", **where)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == f"kernelmark: error: {stays} cannot be removed (Is a directory); remove it\n"
