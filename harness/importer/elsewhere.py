"""Runs code that was written for a GPU on the CPU, or on the meta device, which has shapes and dtypes but no values.

Untrusted, like all of the importer.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch.distributions import Distribution
from torch.overrides import TorchFunctionMode

from harness.importer.values import ImportRefused

_TO_A_DEVICE = (torch.Tensor.cuda, torch.Tensor.cpu)
_IGNORED = ("synchronize", "empty_cache", "manual_seed", "manual_seed_all", "set_device")
_Generator = torch.Generator


class _CpuGenerator(torch.Generator):
    """A generator on the CPU, whatever device is requested."""

    def __new__(cls, device: Any = None) -> _CpuGenerator:
        return _Generator.__new__(cls, "cpu")  # type: ignore[call-arg]  # not in torch's annotations


class _OnDevice(TorchFunctionMode):
    """Replaces all devices in calls by one device."""

    def __init__(self, device: str) -> None:
        super().__init__()
        self._device = torch.device(device)

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        named = dict(kwargs or {})
        if func in _TO_A_DEVICE:
            return args[0].to(self._device)
        if named.get("device") is not None:
            named["device"] = self._device
        if self._device.type == "meta":
            named.pop("generator", None)  # the meta device draws nothing, and accepts no generator
        if func is torch.Tensor.to:
            args = (args[0], *(self._device if _is_device(value) else value for value in args[1:]))
        return func(*args, **named)


def _is_device(value: object) -> bool:
    return isinstance(value, torch.device | str) or type(value) is int


@contextlib.contextmanager
def elsewhere(device: str) -> Iterator[None]:
    """Put all tensors on this device, "cpu" or "meta", even if the code names a GPU."""
    saved = {name: getattr(torch.cuda, name) for name in _IGNORED}
    before, torch.Generator = torch.Generator, _CpuGenerator  # type: ignore[misc]  # restored below
    # Without values, a distribution's arguments cannot be checked.
    checked, Distribution._validate_args = Distribution._validate_args, device != "meta"
    for name in _IGNORED:
        setattr(torch.cuda, name, lambda *_: None)
    try:
        with torch.device(device), _OnDevice(device):
            yield
    finally:
        Distribution._validate_args = checked
        torch.Generator = before  # type: ignore[misc]
        for name, function in saved.items():
            setattr(torch.cuda, name, function)


def on_first(devices: Iterable[str], look: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
    """The answer of `look` for the first device on which it does not fail.

    Raises:
        ImportRefused: the problem cannot be described on any device.
        Exception: it failed on the last device.
    """
    *first, last = devices
    for device in first:
        try:
            return look(device)
        except ImportRefused:
            raise
        except Exception:  # noqa: BLE001  # untrusted code may raise anything; the last device decides
            continue
    return look(last)
