"""Reads memory use over time from a Chrome trace, and PyTorch's memory snapshot. Trusted; the inputs are not.

PyTorch's memory viewer reads a snapshot as a pickle, and loading a pickle can run code. So the sandbox sends the
snapshot as JSON, and the pickle is made here from numbers, texts, lists and dictionaries only.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.wire.checks import WireError, printable, strict_json

_POINTS = 2_000
_MAX_US = 1 << 52  # beyond it, differences of less than a microsecond are lost: 142 years
_DEVICES = {0: "CPU", 1: "GPU"}  # c10::DeviceType


@dataclass(frozen=True)
class Timeline:
    """The memory that PyTorch held on one device over time, relative to the start."""

    device: str
    """`CPU` or `GPU`."""
    points: tuple[tuple[float, int], ...]
    """Pairs of a time in µs since the first allocation and the bytes held from then on."""

    @property
    def peak_bytes(self) -> int:
        return max((held for _, held in self.points), default=0)


def timelines(events: Sequence[Any]) -> list[Timeline]:
    """One timeline for each device on which the events of a trace allocate or free memory."""
    changes: dict[str, list[tuple[float, int]]] = {}
    for event in events:
        if isinstance(event, Mapping) and event.get("name") == "[memory]" and (change := _change(event)):
            device, at_us, nbytes = change
            changes.setdefault(device, []).append((at_us, nbytes))
    return [Timeline(device, _summed(sorted(events))) for device, events in changes.items()]


def _change(event: Mapping[str, Any]) -> tuple[str, float, int] | None:
    args, at_us = event.get("args"), event.get("ts")
    if not isinstance(args, Mapping) or at_us is None or type(at_us) not in (int, float) or not abs(at_us) < _MAX_US:
        return None
    device, nbytes = args.get("Device Type"), args.get("Bytes")
    if type(device) is not int or device not in _DEVICES or type(nbytes) is not int or abs(nbytes) >= 1 << 50:
        return None
    return _DEVICES[device], float(at_us), nbytes


def _summed(changes: list[tuple[float, int]]) -> tuple[tuple[float, int], ...]:
    begin_us, held, points = changes[0][0], 0, []
    for at_us, nbytes in changes[:_POINTS]:
        held += nbytes
        points.append((at_us - begin_us, held))
    return tuple(points)


def snapshot(content: bytes) -> bytes:
    """Convert a memory snapshot from JSON to the pickle that PyTorch's memory viewer reads.

    Raises:
        WireError: it is not JSON, or not a snapshot.
    """
    document = strict_json(content)
    lists = ("segments", "device_traces")
    if not isinstance(document, Mapping) or not all(isinstance(document.get(name), list) for name in lists):
        raise WireError("not a memory snapshot")
    return pickle.dumps(_plain(document), protocol=4)


def _plain(value: Any) -> Any:
    """Copy a value with built-in types only, and make its texts printable."""
    if isinstance(value, Mapping):
        return {printable(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return printable(value) if isinstance(value, str) else value
