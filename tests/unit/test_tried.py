"""What torch.compile's search tried is a file for each search, as of `@triton.autotune`."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from harness.runner import tried


@dataclass(frozen=True)
class Choice:
    """As Inductor describes what it may call."""

    name: str
    description: str


@pytest.fixture(autouse=True)
def _nothing_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tried, "_found", [])


def test_the_choices_for_a_product_are_listed_by_time() -> None:
    inputs = [SimpleNamespace(get_size=lambda size=size: size) for size in ((16, 32), (32, 64))]
    timings = {Choice("triton_mm_3", "BLOCK_M=64"): 0.020, Choice("mm", ""): 0.0125}
    tried._note_choices(timings, "mm", inputs, [], None, {})
    [(name, text)] = tried.reports()
    assert name == "torch.compile 0 mm(16×32, 32×64).autotune.txt"
    assert text.splitlines() == ["mm(16×32, 32×64)", "     12.50 µs  mm  ", "     20.00 µs  triton_mm_3  BLOCK_M=64"]


def test_inductor_tells_what_it_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own functions are replaced; a search among one is none."""
    from torch._inductor import select_algorithm
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner

    savers: list[Any] = []
    launchers = [SimpleNamespace(config="XBLOCK: 256"), SimpleNamespace(config="XBLOCK: 128")]
    monkeypatch.setattr(select_algorithm, "add_feedback_saver", savers.append)
    monkeypatch.setattr(CachingAutotuner, "benchmark_all_configs", lambda _, *times: _Times(launchers, times))
    tried.listen()
    assert savers == [tried._note_choices]
    tuner: Any = SimpleNamespace(fn=SimpleNamespace(__name__="triton_poi_fused"))
    CachingAutotuner.benchmark_all_configs(tuner, 0.003, 0.002)
    CachingAutotuner.benchmark_all_configs(tuner, 0.003)
    [(_, text)] = tried.reports()
    assert text.splitlines() == ["triton_poi_fused", "      2.00 µs  XBLOCK: 128", "      3.00 µs  XBLOCK: 256"]


class _Times:
    """A mapping by launchers, which have no hash here."""

    def __init__(self, launchers: list[Any], times: tuple[float, ...]) -> None:
        self._pairs = list(zip(launchers, times, strict=False))

    def items(self) -> list[tuple[Any, float]]:
        return self._pairs
