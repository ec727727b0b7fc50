"""What the runner does about torch.compile: a benchmark after tests of too many shapes, and what its search tried."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from harness.runner import tried
from harness.runner.dynamo import called_afresh


@pytest.fixture(autouse=True)
def nothing_compiled() -> Iterator[None]:
    import torch._dynamo

    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def test_a_benchmark_is_compiled_though_the_tests_had_more_shapes_than_are_compiled() -> None:
    compiled = list[int]()

    def backend(graph: torch.fx.GraphModule, given: list[torch.Tensor]) -> object:
        compiled.append(len(given[0]))
        return graph.forward

    @torch.compile(dynamic=False, backend=backend)
    def doubled(x: torch.Tensor) -> torch.Tensor:
        return 2 * x

    for n in range(2, 8):
        doubled(torch.ones(n))
    called_afresh(lambda: doubled(torch.ones(50)))
    doubled(torch.ones(3))
    assert compiled == [*range(2, 8), 50], "it has not given up: what was compiled is kept"
    for n in range(20, 30):
        doubled(torch.ones(n))
    assert 29 not in compiled, "it gave up"
    assert called_afresh(lambda: doubled(torch.ones(100)).sum()) == 200
    assert compiled[-1] == 100
    called_afresh(lambda: doubled(torch.ones(100)))
    assert compiled.count(100) == 1, "the next one finds it compiled"


def test_a_function_that_gives_up_in_one_call_is_called_twice_and_not_for_ever() -> None:
    calls = list[int]()

    @torch.compile(dynamic=False, backend="eager")
    def doubled(x: torch.Tensor) -> torch.Tensor:
        return 2 * x

    def call() -> None:
        calls.append(1)
        for n in range(2, 20):
            doubled(torch.ones(n))

    called_afresh(call)
    assert len(calls) == 2


# ---- what its search tried


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


def test_inductor_reports_its_trials(monkeypatch: pytest.MonkeyPatch) -> None:
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
