"""Decides how many calls a round has, by the judge's clock, since anything that the runner says may be false.

Trusted.
"""

from __future__ import annotations

from harness.device import DEVICES, BatchSizes
from harness.judge.correctness.graded_case import GradedCase
from harness.judge.correctness.layout import Layout
from harness.judge.timing.rounds.overhead import Overhead
from harness.judge.timing.rounds.rounds import Rounds
from harness.wire import commands

_ROUND_NS = 20_000_000  # the judge's clock is accurate to tens of microseconds: 0.3 % of this
_NEARLY = 2  # half of that is long enough
_STEP = 16  # the largest increase at a time: a round of few calls shows only roughly how long a call takes
_MOST_TENSORS = 1 << 14  # in all calls of a round
# In the host's memory, in all calls of a round: 20 ms at the 50 GB/s of PCIe 5. Pinning that much takes 0.27 s.
_MOST_HOST_BYTES = 1 << 30
_CACHE_ROUND_NS = 5 * _ROUND_NS  # small inputs of a long kernel matter little to the cache


def prepared(rounds: Rounds, case: GradedCase, overhead: Overhead) -> None:
    """Prepare rounds of about 20 ms with inputs of twice the L2 cache, or as many calls as fit into memory.

    Raises:
        SubmissionFault: as for `Rounds`.
    """
    rounds.prepare(1)
    while True:
        rounds.play("warm-up round", checked=False)  # the first round runs cold code
        wall_ns = rounds.play("warm-up round", checked=False).wall_ns
        more = more_calls(case, rounds.calls, wall_ns - overhead.usual_ns)
        if more is None:
            return
        rounds.prepare(more)


def more_calls(case: GradedCase, calls: int, took_ns: float) -> int | None:
    """How many calls a round should have, if `calls` calls took `took_ns`; None if they are enough.

    The caller checks this again after the timed rounds: a submission could be slow only until the size is decided, and
    then hide short rounds in the overhead.
    """
    sizes = DEVICES[case.device].batch_sizes()
    most = min(most_calls(case.layout, sizes.memory_bytes), _STEP * calls)
    wanted = min(most, wanted_calls(case.layout, sizes, took_ns, calls))
    enough = wanted <= calls or (wanted < _NEARLY * calls and wanted != most)
    return None if enough else wanted


def wanted_calls(layout: Layout, sizes: BatchSizes, took_ns: float, calls: int) -> int:
    """How many calls a round should have, if a round of `calls` took `took_ns`."""
    call_ns = max(1.0, took_ns / calls)
    by_time = -(-_ROUND_NS // call_ns)
    by_cache = min(-(-2 * sizes.cache_bytes // layout.read_stride), _CACHE_ROUND_NS // call_ns)
    return int(max(1, by_time, by_cache))


def most_calls(layout: Layout, memory_bytes: int) -> int:
    """How many calls a round can have, at least one.

    Memory limits it, and the number of tensors, since the judge fills and compares them one by one.
    """
    calls = min(memory_bytes // layout.bytes_per_set, _MOST_TENSORS // len(layout.slots), commands.MAX_SETS)
    if layout.host_stride:
        calls = min(calls, _MOST_HOST_BYTES // layout.host_stride)
    return max(1, calls)
