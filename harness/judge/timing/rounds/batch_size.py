"""Decides how many calls a round has. It uses only the judge's clock, since a runner may lie about times. Trusted."""

from __future__ import annotations

from harness.device import DEVICES, BatchSizes
from harness.judge.correctness.graded_case import GradedCase
from harness.judge.correctness.layout import Layout
from harness.judge.timing.rounds.overhead import Overhead
from harness.judge.timing.rounds.rounds import Rounds
from harness.wire import commands

_ROUND_NS = 20_000_000  # the judge's clock is accurate to tens of microseconds: 0.3 % of this
_MAX_SHORTFALL = 2  # a round of half of that is long enough
_MAX_INCREASE = 16  # the largest increase at a time: a round of few calls shows only roughly how long a call takes
_MAX_TENSORS = 1 << 14  # in all calls of a round
# In the host's memory, in all calls of a round: 20 ms at the 50 GB/s of PCIe 5. Pinning that much takes 0.27 s.
_MAX_HOST_BYTES = 1 << 30
_CACHE_ROUND_NS = 5 * _ROUND_NS  # small inputs of a long kernel matter little to the cache


def prepare_rounds(rounds: Rounds, case: GradedCase, overhead: Overhead) -> int:
    """Prepare rounds of about 20 ms, with inputs of at least twice the L2 cache if memory allows that.

    Returns how long the last warm-up round took, in ns.

    Raises:
        SubmissionFault: as for `Rounds`.
    """
    rounds.prepare(1)
    while True:
        rounds.play("warm-up round", checked=False)  # the first round runs cold code
        wall_ns = rounds.play("warm-up round", checked=False).wall_ns
        more = more_calls(case, rounds.calls, wall_ns - overhead.usual_ns)
        if more is None:
            return wall_ns
        rounds.prepare(more)


def more_calls(case: GradedCase, calls: int, took_ns: float) -> int | None:
    """How many calls a round should have, if `calls` calls took `took_ns`; None if they are enough.

    The caller checks this again after the timed rounds: a submission could be slow only until the size is decided, and
    then hide short rounds in the overhead.
    """
    sizes = DEVICES[case.device].batch_sizes()
    limit = min(max_calls(case.layout, sizes.memory_bytes), _MAX_INCREASE * calls)
    wanted = min(limit, wanted_calls(case.layout, sizes, took_ns, calls))
    enough = wanted <= calls or (wanted < _MAX_SHORTFALL * calls and wanted != limit)
    return None if enough else wanted


def wanted_calls(layout: Layout, sizes: BatchSizes, took_ns: float, calls: int) -> int:
    """How many calls a round should have, if a round of `calls` took `took_ns`."""
    call_ns = max(1.0, took_ns / calls)
    by_time = -(-_ROUND_NS // call_ns)
    by_cache = min(-(-2 * sizes.cache_bytes // layout.read_stride), _CACHE_ROUND_NS // call_ns)
    return int(max(1, by_time, by_cache))


def max_calls(layout: Layout, memory_bytes: int) -> int:
    """The largest possible number of calls in a round, at least one.

    It is limited by memory, and by the number of tensors, since the judge fills and compares them one by one.
    """
    calls = min(memory_bytes // layout.bytes_per_set, _MAX_TENSORS // len(layout.slots), commands.MAX_SETS)
    if layout.host_stride:
        calls = min(calls, _MAX_HOST_BYTES // layout.host_stride)
    return max(1, calls)
