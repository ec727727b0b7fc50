"""Sends a submission, once: its key is drawn before it is sent, and kept until there is an answer; and a selection.

`kernelmark submit --to` and `select --to` call it. Trusted. If the answer to a submission is lost, or Ctrl-C comes
first, the same command sends the same key again, and the server answers with the run that it has.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from harness.errors import HarnessError
from harness.files import outside
from kernelmark.client import servers
from kernelmark.client.connection import Connection, Refused, Unreachable
from kernelmark.client.reading import whole_run
from kernelmark.service.submissions import SelectedRuns, SelectionRequest, SubmissionRequest, SubmissionStatus

_KEPT_S = 24 * 3600
_KEY = re.compile(r"[0-9a-f]{32}")


def select(connection: Connection, runs: Sequence[str]) -> SelectedRuns:
    """Select which runs of one's own count once their problem is closed; only their first digits may be given.

    Raises:
        UsageError, Refused, Unreachable: as for `whole_run` and `Connection.get`.
    """
    whole = tuple(whole_run(connection, run) for run in runs)
    return connection.put("selection", SelectionRequest.model_construct(runs=whole), SelectedRuns)


def submit(connection: Connection, request: SubmissionRequest) -> tuple[SubmissionStatus, bool]:
    """Send it; returns what became of it, and whether it is new: the server may have it already.

    Raises:
        Refused: the server refused it.
        HarnessError: there is no answer, so that it is not known whether the server has it.
    """
    kept = KeptKey(connection.origin, request)
    try:
        headers: Mapping[str, str] = {"Idempotency-Key": kept.key()}
        status = connection.post("submissions", request, SubmissionStatus, headers=headers, repeatable=True)
    except Refused:
        kept.forget()
        raise
    except Unreachable as error:
        remedy = f"{error.remedy}; the same command again does not submit it twice".removeprefix("; ")
        raise HarnessError(error.what, remedy) from None
    kept.forget()
    return status, connection.status == 202


class KeptKey:
    """The key of a request that has no answer yet, in a file; without one, if none can be written."""

    def __init__(self, origin: str, request: SubmissionRequest) -> None:
        name = hashlib.sha256(f"{origin}\n{request.model_dump_json()}".encode()).hexdigest()
        self._file = servers.file().parent / "unanswered" / name

    def key(self) -> str:
        """The key of an equal request that had no answer within the last day, else a new one."""
        with suppress(OSError, UnicodeDecodeError):
            if time.time() - self._file.stat().st_mtime < _KEPT_S:
                found = outside.read(self._file, 100).decode()
                if _KEY.fullmatch(found):
                    return found
        key = secrets.token_hex(16)
        with suppress(OSError):
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _remove_old(self._file.parent)
            self._file.write_text(key)
        return key

    def forget(self) -> None:
        """There is an answer: an equal request that is made later is another one."""
        with suppress(OSError):
            self._file.unlink()


def _remove_old(folder: Path) -> None:
    for file in folder.iterdir():
        if time.time() - file.stat().st_mtime > _KEPT_S:
            file.unlink()
