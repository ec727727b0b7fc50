"""A cache of files in a folder of limited size; the least recently used files are removed first.

Several processes may use it at the same time. An error, such as a full disk, only costs time. Trusted: the folder
belongs to the judge's user, and no sandbox contains it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

_DIGEST_BYTES = hashlib.sha256().digest_size


def cache_folder() -> Path:
    """The folder of this user's caches: `kernelmark` in `$XDG_CACHE_HOME`, by default `~/.cache`."""
    configured = os.environ.get("XDG_CACHE_HOME", "")
    try:
        return (Path(configured) if Path(configured).is_absolute() else Path.home() / ".cache") / "kernelmark"
    except RuntimeError:  # this user has no home, so nothing is cached
        return Path("/nonexistent/kernelmark")


@dataclass(frozen=True)
class Kept:
    """A cache of contents by key; keys are names of hexadecimal digits."""

    folder: Path
    most_bytes: int

    def get(self, key: str) -> bytes | None:
        """The content for this key, if it is in the cache and not damaged; it counts as used now."""
        with contextlib.suppress(OSError):
            path = self.folder / key
            digest, content = (whole := path.read_bytes())[:_DIGEST_BYTES], whole[_DIGEST_BYTES:]
            if hashlib.sha256(content).digest() == digest:
                os.utime(path)
                return content
            path.unlink()
        return None

    def put(self, key: str, content: bytes) -> None:
        """Store the content for a key, and remove the least recently used files beyond the limit."""
        with contextlib.suppress(OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=self.folder, prefix=".", delete=False) as file:
                try:
                    file.write(hashlib.sha256(content).digest() + content)
                    file.flush()
                    Path(file.name).replace(self.folder / key)
                except BaseException:
                    Path(file.name).unlink()
                    raise
        self._remove(self.most_bytes)

    def empty(self) -> None:
        """Remove everything.

        Raises:
            OSError: something cannot be removed.
        """
        for path, _ in self._files():
            path.unlink(missing_ok=True)

    def sizes(self) -> list[int]:
        """The size of each file, in bytes, the least recently used first."""
        return [status.st_size for _, status in self._files()]

    def _files(self) -> list[tuple[Path, os.stat_result]]:
        found = []
        with contextlib.suppress(OSError):
            for path in self.folder.iterdir():
                with contextlib.suppress(OSError):  # another process may have removed it
                    found.append((path, path.lstat()))
        return sorted(found, key=lambda file: file[1].st_mtime_ns)

    def _remove(self, most_bytes: int) -> None:
        files = self._files()
        used = sum(status.st_size for _, status in files)
        for path, status in files:
            if used <= most_bytes:
                return
            with contextlib.suppress(OSError):
                path.unlink()
            used -= status.st_size
