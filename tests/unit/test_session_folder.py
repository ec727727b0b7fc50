"""What a killed judge leaves in the temporary directory: the next one removes it, and nothing that is in use."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import pytest

from harness.judge.session import folder as session_folder


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


def test_a_folder_that_nobody_holds_is_removed(temporary: Path) -> None:
    left = aged(temporary / "kernelmark-session-left")
    others = aged(temporary / "kernelmark-something-else")
    folder, lock = session_folder.make()
    os.close(lock)
    assert not left.exists()
    assert others.exists()
    assert folder.is_dir()


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
