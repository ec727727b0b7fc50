"""Which memory is new: what PyTorch has allocated now, and had not before."""

from __future__ import annotations

import pytest
import torch

from harness.runner.blocks import Blocks

BLOCKS = [(1000, 200, "active_allocated"), (1200, 300, "inactive"), (1500, 100, "active_pending_free")]


@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> Blocks:
    described = [{"address": address, "size": size, "state": state} for address, size, state in BLOCKS]
    segments = [{"blocks": described[2:]}, {"blocks": described[:2]}]
    monkeypatch.setattr(torch.cuda, "memory_snapshot", lambda: segments)
    return Blocks()


@pytest.mark.parametrize(
    ("low", "high", "inside", "touched"),
    [
        (1000, 1200, True, True),
        (1100, 1104, True, True),
        (1199, 1201, False, True),
        (1200, 1500, False, False),
        (1400, 1501, False, True),
        (1500, 1600, True, True),
        (1600, 1700, False, False),
        (900, 1000, False, False),
        (900, 1700, False, True),
    ],
)
def test_a_range_of_addresses(blocks: Blocks, low: int, high: int, inside: bool, touched: bool) -> None:
    assert (blocks.contain(low, high), blocks.overlap(low, high)) == (inside, touched)


def test_nothing_is_allocated_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "memory_snapshot", list)
    assert not Blocks().contain(0, 1)
    assert not Blocks().overlap(0, 1 << 60)
