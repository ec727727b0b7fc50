"""The importer refuses a model of KernelBench whose result is random, and no other."""

from __future__ import annotations

from typing import Any

import pytest

from harness.importer.kernelbench import look
from harness.importer.loaded import Files
from harness.importer.values import Refusal

SOURCE = """
import torch
class Model(torch.nn.Module):
    def __init__(self, p):
        super().__init__()
        self.dropout = torch.nn.Dropout(p)
    def forward(self, x):
        return {result}
def get_inputs():
    return [torch.rand(4, 8)]
def get_init_inputs():
    return [{p}]
"""


def looked(result: str, p: float) -> dict[str, Any]:
    files = Files({"reference.py": SOURCE.format(result=result, p=p)})
    return look({"devices": ["meta", "cpu"], "cases": [{}]}, files)


@pytest.mark.parametrize(
    ("result", "operator"),
    [
        ("torch.softmax(self.dropout(x), dim=1)", "(native_dropout|bernoulli)"),
        ("x + torch.randn_like(x)", "randn_like"),
        ("torch.nn.functional.gumbel_softmax(x)", "exponential"),
    ],
)
def test_a_random_result_is_refused(result: str, operator: str) -> None:
    with pytest.raises(Refusal, match=rf"its result is random: forward\(\) calls aten::{operator}"):
        looked(result, 0.2)


@pytest.mark.parametrize(
    ("result", "p"), [("self.dropout(x)", 0.0), ("self.dropout.eval()(x)", 0.2), ("x.sqrt()", 0.2)]
)
def test_one_that_is_not_is_described(result: str, p: float) -> None:
    assert looked(result, p)["cases"][0]["result"]["tensor"]["shape"] == [4, 8]
