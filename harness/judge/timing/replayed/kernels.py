"""Lists the kernels that one replayed call launches, for the verdict. Pure; trusted code that reads untrusted
recordings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from harness import stats
from harness.recording.schema import Empty, Kernel, Recording
from harness.verdict import LaunchedKernel
from harness.wire import replies


def launched(
    recording: Recording, loaded: replies.Loaded, calls: Sequence[replies.Replayed]
) -> tuple[LaunchedKernel, ...]:
    """The kernels of a call, in order of their first launch.

    Launches of one function with the same grid, block and memory are one entry.
    """
    functions = list(dict.fromkeys((n.image, n.name) for n in recording.nodes if isinstance(n, Kernel)))
    entries: dict[Kernel, list[int]] = {}  # a launch without its parameters, and the indices of all such launches
    working = [node for node in recording.nodes if not isinstance(node, Empty)]
    for place, node in enumerate(working):
        if isinstance(node, Kernel):
            entries.setdefault(replace(node, parameters=None), []).append(place)
    timed = recording.is_in_a_row and len(working) <= replies.MAX_TIMED_NODES
    kernels = []
    for kernel, places in entries.items():
        number = functions.index((kernel.image, kernel.name))
        if number >= len(loaded.functions):
            continue  # more functions than a frame holds
        facts = loaded.functions[number]
        kernels.append(
            LaunchedKernel(
                name=kernel.name,
                grid=kernel.grid,
                block=kernel.block,
                cluster=kernel.cluster,
                registers=facts.registers,
                shared_bytes=facts.shared_bytes + kernel.shared_bytes,
                local_bytes=facts.local_bytes,
                launches=len(places),
                time_ns=_together(calls, places) if timed else None,
            )
        )
    return tuple(kernels)


def _together(calls: Sequence[replies.Replayed], places: Sequence[int]) -> int | None:
    if any(len(call.nodes_ns) <= places[-1] for call in calls):
        return None
    return round(stats.median([sum(call.nodes_ns[place] for place in places) for call in calls]))
