"""A session: what it keeps of a submission's output, and how the next one removes what a killed judge left."""

from __future__ import annotations

import os
import resource
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness import sandbox
from harness.errors import SandboxError
from harness.judge.session import Session
from harness.judge.session import folder as session_folder
from harness.judge.session.output import PrintedOutput
from harness.problem import Limits
from harness.sandbox import Launch, inside


@pytest.fixture
def output() -> Iterator[PrintedOutput]:
    made = PrintedOutput(1 << 20)
    yield made
    made.close()


def test_output_is_labelled_with_the_test_that_printed_it(output: PrintedOutput) -> None:
    for label, printed in (("", b"imported\n"), ("test one", b"1"), ("test silent", b""), ("test two", b"2\n2\n")):
        if label:
            output.begin(label)
        os.write(output._write, printed)  # which is read only when the next one begins
    output.drain()
    assert output.text() == "imported\n[test one]\n1\n[test two]\n2\n2\n"


def test_of_much_output_head_and_tail_are_kept_and_nothing_after_it_is_discarded(output: PrintedOutput) -> None:
    os.write(output._write, b"first" + b"." * 20_000 + b"last")
    output.discard()
    os.write(output._write, b"secret")
    output.drain()
    text = output.text()
    assert text.startswith("first...")
    assert text.endswith("...last")
    assert "\n[... 3,625 bytes ...]\n" in text


# ---- what a killed judge leaves


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def aged(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "socket").write_text("")
    old = time.time() - 60
    os.utime(folder, (old, old))
    return folder


def test_an_abandoned_folder_is_removed(temporary: Path) -> None:
    left = aged(temporary / "kernelmark-session-left")
    others = aged(temporary / "kernelmark-something-else")
    folder, lock = session_folder.make()
    os.close(lock)
    assert not left.exists()
    assert others.exists()
    assert folder.is_dir()


def test_a_folder_with_a_long_path_is_named_in_one_line(temporary: Path) -> None:
    (folder := temporary / ("long" * 30)).mkdir()
    with socket.socket(socket.AF_UNIX) as listener, pytest.raises(SandboxError, match=r"path too long.*; set TMPDIR"):
        session_folder.listen(listener, folder)


def test_what_a_sandbox_writes_is_in_the_folder_that_the_next_judge_removes(temporary: Path) -> None:
    with Session.start(sandbox.provider("process"), "cpu", Limits()) as session:
        session.handshake()
        assert [*temporary.iterdir()] == [session._folder]
    assert [*temporary.iterdir()] == []


@contextmanager
def little_room() -> Iterator[None]:
    """As on a disk that is almost full: small files can be written."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_without_room_for_the_runners_files_one_of_them_is_named(temporary: Path) -> None:
    launch = Launch(socket=temporary / "socket", device="cpu", memory_bytes=1, processes=1, disk_bytes=1)
    with little_room(), pytest.raises(SandboxError, match="the runner's files cannot be copied") as raised:
        inside.staged(launch)
    assert "File too large" in str(raised.value)
    assert len(str(raised.value)) < 600


def test_what_the_system_refuses_a_new_sandbox_is_our_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/proc/self/fdinfo")  # in which no folder can be made
    with pytest.raises(SandboxError, match="no sandbox can be made"):
        Session.start(sandbox.provider("process"), "cpu", Limits())


def test_a_folder_in_use_or_just_made_stays() -> None:
    mine, lock = session_folder.make()
    aged(mine)
    fresh, unlocked = session_folder.make()
    os.close(unlocked)
    third, another = session_folder.make()
    assert mine.exists()
    assert fresh.exists()
    os.close(lock)
    session_folder.make()
    assert not mine.exists(), "its judge has gone"
    os.close(another)
    assert third.exists()
