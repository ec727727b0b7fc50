"""What `compare` of quantize_dynamic accepts: a tie rounded either way, and no other step. And the example."""

from __future__ import annotations

import pytest
import torch

from harness.problem.reference import Reference
from tests.shipped import problem

Tensors = dict[str, torch.Tensor]


@pytest.fixture(scope="module")
def reference() -> Reference:
    return Reference.load(problem("quantize_dynamic"))


def truth(reference: Reference, tensors: Tensors) -> Tensors:
    found = problem("quantize_dynamic")
    (m, k), n = tensors["x"].shape, len(tensors["w"])
    case = found.resolve(found.tests[0].model_copy(update={"params": {"m": m, "n": n, "k": k}}))
    result = reference({**tensors, "x": tensors["x"].double(), "w_scale": tensors["w_scale"].double()}, {}, case)
    return {name: value for name, value in result.items() if isinstance(value, torch.Tensor)}


def multiplied(q: torch.Tensor, tensors: Tensors) -> Tensors:
    """The answer of a kernel that has these integers."""
    scale = tensors["x"].double().abs().amax(dim=1, keepdim=True) / 127
    return {"y": ((q.double() @ tensors["w"].double().T) * scale * tensors["w_scale"].double()).half()}


def inputs(rows: list[list[float]], n: int = 64) -> Tensors:
    generator = torch.Generator().manual_seed(1)
    x = torch.tensor(rows, dtype=torch.float16)
    w = torch.randint(-127, 128, (n, x.shape[1]), dtype=torch.int8, generator=generator)
    return {"x": x, "w": w, "w_scale": torch.full((n,), 5e-4)}


EXAMPLE, STEPS = [1.0, -0.3, 0.5, 0.0], [127, -38, 64, 0]


def test_the_example_of_the_statement(reference: Reference) -> None:
    statement = (problem("quantize_dynamic").directory / "README.md").read_text()
    assert f"The row `{EXAMPLE}`".replace(".0", "") in statement
    assert f"`{STEPS}`" in statement
    given = inputs([EXAMPLE])
    given["w"] = torch.eye(4, dtype=torch.int8)  # y then has the integers, one by one
    given["w_scale"] = torch.full((4,), 127.0)
    assert truth(reference, given)["y"].tolist() == [[float(step) for step in STEPS]]


@pytest.mark.parametrize(
    ("steps", "right"),
    [
        ([127, -38, 64, 0], True),
        ([127, -38, 63, 0], True),  # 63.5 the other way
        ([127, -38, 65, 0], False),
        ([127, -38, 62, 0], False),
        ([127, -39, 64, 0], False),  # -38.1
        ([126, -38, 64, 0], False),
        ([127, -38, 64, 1], False),
    ],
)
def test_only_a_tie_may_be_rounded_either_way(reference: Reference, steps: list[int], right: bool) -> None:
    tensors = inputs([EXAMPLE, [0.0] * 4])
    reason = reference.compare(multiplied(torch.tensor([steps, [0] * 4]), tensors), tensors, truth(reference, tensors))
    assert (reason is None) is right, reason


def test_a_row_of_zeros_has_zeros(reference: Reference) -> None:
    tensors = inputs([EXAMPLE, [0.0] * 4])
    right = truth(reference, tensors)
    assert right["y"][1].eq(0).all()
    assert not right["y"][0].eq(0).any()
    got = multiplied(torch.tensor([STEPS, [0] * 4]), tensors)
    for wrong in (float("nan"), 1e-7):
        got["y"][1, 3] = wrong
        reason = reference.compare(got, tensors, right)
        assert reason.startswith("y: 1 of 128 wrong; y[1, 3] is ")


@pytest.mark.parametrize("scale", [1.0, 1e-4, 5000.0])
def test_kernels_of_every_formula_agree_but_at_ties(reference: Reference, scale: float) -> None:
    generator = torch.Generator().manual_seed(2)
    x = torch.empty(300, 1031, dtype=torch.float16).normal_(0, scale, generator=generator)
    given = inputs([[0.0] * 1031]) | {"x": x}
    # w_scale keeps y among the normal numbers of float16.
    given["w_scale"] = torch.full((64,), 1e-3 / scale)
    wide, right = x.float(), truth(reference, given)
    peak = wide.abs().amax(dim=1, keepdim=True)
    quotients = [127 * wide / peak, wide / (peak / 127), wide * (1 / (peak / 127)), wide * (127 / peak)]
    integers = [quotient.round() for quotient in quotients]
    assert not all(torch.equal(integers[0], other) for other in integers)  # there are ties
    for q in integers:
        assert reference.compare(multiplied(q, given), given, right) is None
    for q in (quotients[0].trunc(), quotients[0]):  # not rounded, or not quantized at all
        assert reference.compare(multiplied(q, given), given, right) is not None
