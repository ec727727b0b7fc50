"""Replays a recorded call, on memory that contains different inputs every time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import dropwhile
from typing import Any

from cuda.bindings import driver

from harness.arena.mapping import DeviceWindow, check
from harness.errors import DeviceError
from harness.launcher.activity import MEMCPY, CuptiActivity, Span
from harness.launcher.device import ORDINAL, LauncherDevice, Times
from harness.launcher.graph import Pinned, build
from harness.launcher.images import Images
from harness.recording.file import Packed
from harness.recording.schema import Empty
from harness.recording.windows import HOST_INPUTS, INPUTS, OUTPUTS, SCRATCH
from harness.wire import commands, replies


class LoadedRecording:
    """A loaded recording. Its memory stays mapped; the judge fills it between calls, when the device is idle."""

    def __init__(
        self,
        device: LauncherDevice,
        activity: CuptiActivity,
        packed: Packed,
        command: commands.Load,
        scratch: int | None,
    ) -> None:
        self._device, self._activity, self._packed = device, activity, packed
        device.reset_hold()
        self._windows = [
            DeviceWindow(command.input_bytes, ORDINAL, writable=False, at=INPUTS.start),
            DeviceWindow(command.output_bytes, ORDINAL, writable=True, at=OUTPUTS.start),
        ]
        if command.host_bytes:
            host = DeviceWindow(command.host_bytes, ORDINAL, writable=False, at=HOST_INPUTS.start, in_host=True)
            self._windows.append(host)
        self._arena_windows = tuple(self._windows)
        if packed.recording.scratch_bytes:
            if scratch is None:
                raise DeviceError("a recording with scratch came without it")
            window = DeviceWindow(command.scratch_bytes, ORDINAL, writable=True, at=SCRATCH.start)
            self._windows.append(window)
            window.map(scratch)
        self._images = Images(packed)
        self._busy_nodes = sum(not isinstance(node, Empty) for node in packed.recording.nodes)
        self._graph: Any = None
        self._pinned = Pinned()

    @property
    def functions(self) -> tuple[replies.Function, ...]:
        return self._images.facts

    def replay(self, arenas: Sequence[int]) -> replies.Replayed:
        """Make the call once, with a cold cache, on these arenas; if there are none, on those of the previous call."""
        if arenas:
            for window, arena in zip(self._arena_windows, arenas, strict=True):
                window.map(arena)
        if self._graph is None:
            self._graph = build(self._packed, self._images, self._device.context, self._pinned)
            check(driver.cuGraphUpload(self._graph, self._device.stream))
            self._device.wait()
            self._activity.forget()
        self._images.restore()
        mapped = [(window.address, window.nbytes) for window in self._windows]
        times, spans = cold(self._device, self._activity, self._graph, self._busy_nodes, mapped)
        return replies.Replayed(
            device_ns=max(span.end for span in spans) - spans[0].start if spans else 0,
            event_ns=times.event_ns,
            span_ns=times.span_ns,
            nodes_ns=tuple(span.end - span.start for span in spans[: replies.MAX_TIMED_NODES]),
        )

    def close(self) -> None:
        """Release everything, since the next recording uses the same addresses."""
        if self._graph is not None:
            check(driver.cuGraphExecDestroy(self._graph))
            self._graph = None
        self._pinned.close()
        self._images.unload()
        for window in self._windows:
            window.close()


def cold(
    device: LauncherDevice, activity: CuptiActivity, graph: Any, nodes: int, mapped: Sequence[tuple[int, int]] = ()
) -> tuple[Times, list[Span]]:
    """Launch a graph with a cold cache; returns its times, and the spans of its non-empty nodes.

    `mapped`: addresses and sizes of the memory that it uses.

    Raises:
        DeviceError: CUPTI reported more or fewer than `nodes` nodes, or no times for one of them.
    """
    device.evict()
    for address, nbytes in mapped:
        device.touch(address, nbytes)
    device.wait()
    times = device.time(graph)
    own = 1 + len(mapped)  # our own kernels, which ran before
    spans = _from_the_first_kernel(activity.collect())
    if len(spans) < own + nodes:
        spans = _from_the_first_kernel(sorted(spans + activity.collect()))  # late records
    if len(spans) != own + nodes:
        kinds = dict(Counter(span.kind for span in spans))
        raise DeviceError(f"CUPTI saw {len(spans) - own} of the call's {nodes} nodes (all by kind: {kinds})")
    if any(not span.start or span.end < span.start for span in spans):
        raise DeviceError("CUPTI has no time of one of the call's nodes")
    return times, spans[own:]


def _from_the_first_kernel(spans: list[Span]) -> list[Span]:
    """The spans without the copies that restore variables, which run before our own first kernel."""
    return list(dropwhile(lambda span: span.kind == MEMCPY, spans))
