"""Follows a submission on a server until it has ended, and says what became of it.

`kernelmark submit --to` and `kernelmark watch` call it. Trusted; the server's text is not, and is shown as such.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from harness.errors import HarnessError, UsageError
from harness.verdict import Check, Verdict
from kernelmark.client.connection import Connection, Unreachable, shown
from kernelmark.client.reading import verdict_of
from kernelmark.service.submissions import ENDED, SubmissionStatus

WAIT_S = 20.0
"""How long the server waits for a change before it answers."""
_GIVE_UP_S = 600.0
"""How long there may be no answer before nobody waits any longer."""
_PAUSE_S = 1.0


def follow(
    connection: Connection, status: SubmissionStatus, tell: Callable[[SubmissionStatus | None], None]
) -> SubmissionStatus:
    """Wait until it has ended, and tell each change; None: there is no answer at present.

    Raises:
        Refused: the server no longer shows it.
        Unreachable: there was no answer for ten minutes.
    """
    heard, silent = time.monotonic(), False
    while status.state not in ENDED:
        if not silent:
            tell(status)
        asked = time.monotonic()
        try:
            found = status_of(connection, status.run, after=status.version)
        except Unreachable as error:
            if not error.passing or time.monotonic() - heard > _GIVE_UP_S:
                raise
            silent = True
            tell(None)
            time.sleep(_PAUSE_S)
            continue
        heard, silent = time.monotonic(), False
        if found.version == status.version and heard - asked < _PAUSE_S:  # it answers at once, although nothing changed
            time.sleep(_PAUSE_S)
        status = found
    return status


def status_of(connection: Connection, run: str, after: int | None = None) -> SubmissionStatus:
    """What the server says of a run, at once or when it is no longer as in version `after`.

    Raises:
        Refused, Unreachable, HarnessError: as for `Connection.get`.
    """
    if after is None:
        return connection.get(f"submissions/{run}", SubmissionStatus)
    waits = {"after": after, "wait_s": WAIT_S}
    return connection.get(f"submissions/{run}", SubmissionStatus, parameters=waits, wait_s=WAIT_S)


def result(connection: Connection, status: SubmissionStatus) -> Verdict | Check:
    """What it was found to be, once it has ended: a check of the mode `check`, else a verdict.

    Raises:
        UsageError: it was cancelled.
        HarnessError: it could not be graded, or the server's answer is no such document.
        Refused, Unreachable: as for `Connection.get`.
    """
    if status.state == "cancelled":
        raise UsageError(f"run {status.run}", "was cancelled", "submit it again")
    if status.state == "failed":
        what = shown(status.error) or "it could not be graded"
        remedy = "this is not your kernel's fault; organizers see why with `kernelmark watch`"
        raise HarnessError(f"run {status.run}: {what}", remedy)
    read = Check.model_validate_json if status.mode == "check" else Verdict.from_json
    return verdict_of(connection, f"submissions/{status.run}/verdict", read)
