"""Writes what a profile consists of to a folder that the user named."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from harness.errors import UsageError


def write_files(folder: Path, files: Mapping[str, bytes]) -> list[Path]:
    """Write each file into the folder, which is made if need be; returns their paths.

    Raises:
        UsageError: the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (folder / name).write_bytes(content)
    except OSError as error:
        raise UsageError(str(folder), f"cannot be written ({error.strerror})", "name another folder") from None
    return [folder / name for name in files]
