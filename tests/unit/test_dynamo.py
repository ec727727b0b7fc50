"""A benchmark after tests of so many shapes that torch.compile gave up: compiled, and only where it had given up."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

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
