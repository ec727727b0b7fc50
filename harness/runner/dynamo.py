"""Makes torch.compile forget what it compiled for the tests. Runs in the runner's process, untrusted.

After eight variants of a function (`recompile_limit`) torch.compile runs any further one eagerly. Every test has its
own sizes, so that a benchmark would be timed eagerly because of the tests before it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

_GAVE_UP = "Dynamo recompile limit exceeded"


def called_afresh(call: Callable[[], object]) -> object:
    """Make the first call of a benchmark; again with nothing compiled, if torch.compile has given up on a function."""
    returned = call()
    if not _forgot_what_it_gave_up_on():
        return returned
    return call()


def _forgot_what_it_gave_up_on() -> bool:
    """Forget all that was compiled, if torch.compile has given up since the last time."""
    utils = sys.modules.get("torch._dynamo.utils")
    counts = getattr(utils, "counters", {}).get("unimplemented", {})
    reasons = [reason for reason in counts if str(reason).startswith(_GAVE_UP)]
    if not reasons:
        return False
    for reason in reasons:
        del counts[reason]
    sys.modules["torch._dynamo"].reset()
    return True
