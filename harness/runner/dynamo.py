"""Resets torch.compile after the tests. Runs in the runner's process, untrusted.

After eight variants of a function (`recompile_limit`) torch.compile runs any further variant eagerly. Every test has
sizes of its own, so without a reset a benchmark would run eagerly because of the tests before it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

_GAVE_UP = "Dynamo recompile limit exceeded"


def called_afresh(call: Callable[[], object]) -> object:
    """Make the first call of a benchmark. If torch.compile has given up on a function, reset it and call again."""
    returned = call()
    if not _reset_if_given_up():
        return returned
    return call()


def _reset_if_given_up() -> bool:
    """Reset torch.compile if it has given up since the last reset; returns whether it was reset."""
    utils = sys.modules.get("torch._dynamo.utils")
    counts = getattr(utils, "counters", {}).get("unimplemented", {})
    reasons = [reason for reason in counts if str(reason).startswith(_GAVE_UP)]
    if not reasons:
        return False
    for reason in reasons:
        del counts[reason]
    sys.modules["torch._dynamo"].reset()
    return True
