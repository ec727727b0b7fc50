"""The kinds of devices: each is known everywhere, and what the judge plans for follows from its memory."""

from __future__ import annotations

from types import SimpleNamespace
from typing import get_args

import pytest
import torch

from harness.device import DEVICES, BatchSizes
from harness.judge.timing.plan import plan_for
from harness.kinds import DeviceKind

GIB = 1 << 30


def test_every_kind_has_what_the_judge_asks_of_it() -> None:
    assert {*DEVICES} == {*get_args(DeviceKind)}
    assert {kind: device.kind for kind, device in DEVICES.items()} == {kind: kind for kind in DEVICES}


@pytest.mark.parametrize(("free", "batch", "buffer"), [(139 * GIB, 12 * GIB, 4 * GIB), (12 * GIB, 3 * GIB, 3 * GIB)])
def test_a_gpu_gives_shares_of_what_is_free(
    free: int, batch: int, buffer: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (free, 140 * GIB))
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(L2_cache_size=50 << 20))
    assert DEVICES["cuda"].batch_sizes() == BatchSizes(batch, 50 << 20)
    assert DEVICES["cuda"].workload().buffer_bytes == buffer


def test_a_cpu_has_rounds_of_64_mib_and_half_the_time() -> None:
    assert DEVICES["cpu"].batch_sizes() == BatchSizes(64 << 20, 0)
    assert plan_for("cuda").blocks_budget_ns == 2 * plan_for("cpu").blocks_budget_ns == 2_000_000_000
