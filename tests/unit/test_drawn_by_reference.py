"""The inputs that a foreign reference draws are copied to where the call finds them, or refused in one line."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from harness.runner.foreign import put


def test_it_is_copied_to_where_a_call_finds_it() -> None:
    one, members = torch.zeros(3), [torch.zeros(2), torch.zeros(4)]
    put("x", torch.ones(3), one)
    put("w", (torch.ones(2), torch.ones(4)), members)
    assert [tensor.tolist() for tensor in (one, *members)] == [[1.0] * 3, [1.0] * 2, [1.0] * 4]


@pytest.mark.parametrize(
    ("drawn", "tensors", "message"),
    [
        ([torch.ones(2)] * 3, [torch.zeros(2)] * 2, "made 3 values for `w`, which is a list of 2 tensors"),
        (torch.ones(2), [torch.zeros(2)] * 2, "made Tensor for `w`, which is a list of 2 tensors"),
        ([torch.ones(2), 3.0], [torch.zeros(2)] * 2, "made float for `w`, which is torch.float32 [2]"),
        (torch.ones(3), torch.zeros(2), "made torch.float32 [3] for `w`, which is torch.float32 [2]"),
        (torch.ones(2).double(), torch.zeros(2), "made torch.float64 [2] for `w`, which is torch.float32 [2]"),
    ],
)
def test_what_the_problem_does_not_say_is_refused(drawn: Any, tensors: Tensor | list[Tensor], message: str) -> None:
    with pytest.raises(TypeError) as refused:
        put("w", drawn, tensors)
    assert str(refused.value) == f"the reference {message}"
