"""The blocked ELL format of matmul_block_sparse: every case draws valid indices, and the definition is that of W."""

from __future__ import annotations

import pytest
import torch

from harness.problem import Case
from harness.problem.reference import Reference
from tests.shipped import problem

FOUND = problem("matmul_block_sparse")


@pytest.mark.parametrize("case", FOUND.tests + FOUND.benchmarks, ids=lambda case: case.name)
def test_every_index_that_a_case_draws_is_valid(case: Case) -> None:
    for resolved in map(FOUND.resolve, case.extremes()):
        fill = next(tensor.fill for tensor in resolved.tensors if tensor.name == "indices")
        drawn = {"zeros": (0,), "integers": (fill.low, fill.high), "choice": fill.values}[fill.kind]
        k, block = resolved.params["k"], resolved.params["block"]
        assert min(drawn) >= -1
        # Up to the last column: the tests of its edge would otherwise test nothing.
        last = k // block - 1
        assert max(drawn) == last or case.name == "the first column of blocks" or max(drawn) == -1


def test_the_reference_multiplies_by_the_matrix_that_the_statement_defines() -> None:
    m, n, k, block, slots = 3, 6, 8, 2, 3
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(m, k, dtype=torch.float64, generator=generator)
    values = torch.randn(n // block, slots, block, block, dtype=torch.float64, generator=generator)
    indices = torch.tensor([[3, 0, 3], [-1, 2, -1], [-1, -1, -1]], dtype=torch.int32)
    values[indices < 0] = float("-inf")
    w = torch.zeros(n, k, dtype=torch.float64)
    for r, row in enumerate(indices.tolist()):
        for s, index in enumerate(row):
            if index >= 0:
                w[r * block : (r + 1) * block, index * block : (index + 1) * block] += values[r, s]
    params: dict[str, int | str] = {"m": m, "n": n, "k": k, "block": block, "slots": slots, "dtype": "float16"}
    case = FOUND.resolve(FOUND.tests[0].model_copy(update={"params": params}))
    y = Reference.load(FOUND)({"x": x, "values": values, "indices": indices}, {}, case)["y"]
    torch.testing.assert_close(y, x @ w.T)
    assert y[:, 4:].eq(0).all()
