"""How an output is measured in blocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from harness.compare import field
from harness.compare.field import Field

NAN, INF = float("nan"), float("inf")


class Waits(TorchDispatchMode):
    """Counts, as a context, how often a value is read from the device."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        self.count += func is torch.ops.aten._local_scalar_dense.default
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("special", [0.0, NAN, INF, 1e30], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float8_e4m3fn], ids=str)
def test_metrics_are_the_same_in_blocks_of_any_size_and_wait_as_often(
    dtype: torch.dtype, special: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    truth = torch.randn(64, 64, dtype=torch.float64)
    values = (truth + 0.01).float()
    values[3, 3] = special
    found = []
    for most in (1 << 16, 128):
        monkeypatch.setattr(field, "CPU_BLOCK_ELEMENTS", most)
        with Waits() as waits:
            found.append((Field(truth, dtype, 1e-3).measure(values.to(dtype).reshape(-1)), waits.count))
    assert found[0] == found[1]
