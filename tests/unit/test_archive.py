"""The archive: every source once, under a name that cannot lead anywhere else."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import HarnessError
from harness.submission import Submission
from harness.verdict import SubmissionId
from leaderboard.record.archive import archive, listed, listing, present, safe_name, stored

SOURCE = "def softmax(x, y):\r\n    pass  # µ\n"


def submission(name: str = "kernel.py", *, author: str = "ada", source: str = SOURCE) -> Submission:
    return Submission(name=name, author=author, language="py", source=source.encode())


def files(root: Path) -> list[str]:
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())


def test_a_source_is_stored_byte_for_byte_under_its_hash_and_storing_again_changes_nothing(tmp_path):
    handed_in = submission()
    path = archive(tmp_path, "softmax", handed_in)
    assert path == tmp_path / "softmax" / "ada" / f"{handed_in.sha256}-kernel.py"
    assert path.read_bytes() == SOURCE.encode()
    before = path.stat()
    assert archive(tmp_path, "softmax", submission()) == path
    after = path.stat()
    assert (after.st_ino, after.st_mtime_ns, after.st_nlink) == (before.st_ino, before.st_mtime_ns, 1)
    assert len(files(tmp_path)) == 1


def test_a_stored_source_is_found_and_a_changed_one_is_not(tmp_path):
    handed_in = submission("../<kernel>\u202e\0.py")
    identity = SubmissionId.of(handed_in)
    assert not present(tmp_path, "softmax", identity)
    path = archive(tmp_path, "softmax", handed_in)
    assert present(tmp_path, "softmax", identity)
    assert stored(tmp_path, "softmax", identity) == handed_in
    path.write_bytes(b"tampered")
    with pytest.raises(HarnessError, match="is not what was graded"):
        stored(tmp_path, "softmax", identity)
    with pytest.raises(HarnessError, match="holds something other than what was submitted"):
        archive(tmp_path, "softmax", handed_in)
    assert path.read_bytes() == b"tampered", "other content is never overwritten"
    assert len(files(tmp_path)) == 1


def test_a_source_that_an_earlier_version_stored_is_found_and_not_moved(tmp_path):
    handed_in = submission().model_copy(update={"beside": (("tiling.py", b"X = 1"),)})
    new = archive(tmp_path, "softmax", handed_in)
    earlier = new.with_name(f"{handed_in.sha256[:16]}-kernel.py")
    new.rename(earlier)
    (new.parent / handed_in.sha256).rename(new.parent / handed_in.sha256[:16])
    before = files(tmp_path)
    assert archive(tmp_path, "softmax", handed_in) == earlier
    identity = SubmissionId.of(handed_in)
    assert stored(tmp_path, "softmax", identity) == handed_in
    assert present(tmp_path, "softmax", identity)
    names = listing(tmp_path, "softmax", "ada")
    assert listed(names, handed_in.sha256, "kernel.py")
    assert not listed(names, "0" * 64, "kernel.py")
    assert files(tmp_path) == before


def test_sources_whose_hashes_begin_alike_are_both_stored(tmp_path, monkeypatch):
    """Somebody can find two such, and would keep the second from being recorded."""
    first, second = submission(source="1"), submission(source="2")
    alike = {b"1": "ab" * 32, b"2": "ab" * 16 + "cd" * 16}
    monkeypatch.setattr(Submission, "sha256", property(lambda self: alike[self.source]))
    for one in (first, second):
        assert archive(tmp_path, "softmax", one).read_bytes() == one.source
    assert stored(tmp_path, "softmax", SubmissionId.of(first)) == first


@pytest.mark.parametrize("author", ["", "..", "../softmax/ada", ".ada", "\0", "ada\n", "中", "x" * 5000])
def test_a_name_that_cannot_stand_in_a_path_is_not_there(tmp_path, author):
    path = archive(tmp_path, "softmax", submission())
    assert path.is_file()
    identity = SubmissionId.of(submission()).model_copy(update={"author": author})
    assert not present(tmp_path, "softmax", identity)
    with pytest.raises(HarnessError, match="cannot be the name of a directory"):
        stored(tmp_path, "softmax", identity)


def test_many_at_once_store_it_once(tmp_path):
    paths: list[Path] = []
    threads = [
        threading.Thread(target=lambda: paths.append(archive(tmp_path, "softmax", submission()))) for _ in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert paths == [paths[0]] * 16
    assert files(tmp_path) == [paths[0].relative_to(tmp_path).as_posix()]
    assert paths[0].read_bytes() == SOURCE.encode()


def test_a_full_disk_leaves_no_part_of_a_file(tmp_path, monkeypatch):
    archive(tmp_path, "softmax", submission(source="there before"))
    before = files(tmp_path)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(HarnessError, match=r"cannot be archived \(No space left on device\)"):
        archive(tmp_path, "softmax", submission())
    assert files(tmp_path) == before


@pytest.mark.parametrize("component", ["..", ".", "", "a/b", "../x", ".hidden", "a\0b", "a\n", "x" * 200])
def test_neither_slug_nor_author_leads_out_of_the_archive(tmp_path, component):
    for slug, author in ((component, "ada"), ("softmax", component)):
        with pytest.raises(HarnessError, match="cannot be the name of a directory"):
            archive(tmp_path, slug, submission(author=author))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("my_kernel-2.py", "my_kernel-2.py"),
        ("../../etc/passwd", "_.._etc_passwd"),
        ("..", "_"),
        (".bashrc", "bashrc"),
        ("a\nb\x1b[2J\0.py", "a_b_2J_.py"),
        ("ядро 1.py", "_1.py"),
        ("x" * 300 + ".py", "x" * 93 + ".py"),
        ("x." + "y" * 300, "x." + "y" * 94),
    ],
)
def test_a_name_is_made_safe(name, safe):
    assert safe_name(name) == safe


@given(name=st.text(max_size=400))
def test_any_name_is_one_plain_visible_component(name):
    safe = safe_name(name)
    assert 1 <= len(safe) <= 96
    assert safe.isascii()
    assert safe.isprintable()
    assert not safe.startswith(".")
    assert Path(safe).name == safe
    assert safe_name(safe) == safe
