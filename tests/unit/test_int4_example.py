"""The examples in the statements of int4 problems, worked out by hand: the references give the same."""

from __future__ import annotations

import re

import pytest
import torch

from harness.problem.reference import Reference
from tests.shipped import ROOT, module, problem

NUMBERS = [1, -1, 7, -8, 0, 5, -3, 2]
BYTES = [0xF1, 0x87, 0x50, 0x2D]  # of pack_int4


def reference(slug: str, tensors: dict[str, torch.Tensor], **params: int | str) -> torch.Tensor:
    found = problem(slug)
    case = found.resolve(found.tests[0].model_copy(update={"params": params}))
    [result] = Reference.load(found)(tensors, {}, case).values()
    assert isinstance(result, torch.Tensor)
    return result


def test_the_statement_has_this_example() -> None:
    lines = (problem("pack_int4").directory / "README.md").read_text().splitlines()
    numbers, byte = (next(line for line in lines if line.startswith(f"| {row}")) for row in ("numbers", "byte"))
    assert [int(number) for number in re.findall(r"-?\d+", numbers)] == NUMBERS
    assert [int(number, 16) for number in re.findall(r"0x\w\w", byte)] == BYTES
    word = int.from_bytes(bytes(BYTES), "little")
    assert any(f"`0x{word:X}`" in line for line in lines)
    nibbles = [word >> 4 * column & 0xF for column in range(8)]
    assert [nibble - 16 if nibble > 7 else nibble for nibble in nibbles] == NUMBERS


@pytest.mark.parametrize("numbers", [8, 7])
def test_the_packed_example(numbers: int) -> None:
    """Without the eighth number the last high half is 0."""
    x = torch.tensor([NUMBERS[:numbers]], dtype=torch.int8)
    wanted = BYTES if numbers == 8 else [*BYTES[:3], 0x0D]
    assert reference("pack_int4", {"x": x}, rows=1, cols=numbers).tolist() == [wanted]
    packed = torch.empty(1, 4, dtype=torch.uint8)
    module(ROOT / "reference" / "pack_int4" / "eager.py").pack_int4(x, packed)
    assert packed.tolist() == [wanted]


@pytest.mark.parametrize(
    ("bits", "numbers", "packed"),
    [
        (4, [2, -3, 5, -8, 7, 0, -4, 1], [0x5A, 0x0D, 0x8F, 0x94]),  # the lecture's, as the statement has it
        (4, [2, -3, 5], [0x5A, 0x0D]),
        (1, [-1, 0, 0, -1, 0, -1, -1, -1, 0], [0b00010110, 1]),
        (2, [-2, -1, 0, 1, 1], [0b11100100, 3]),
        (8, [-128, -1, 0, 127], [0, 127, 128, 255]),
    ],
)
def test_the_example_with_an_offset(bits: int, numbers: list[int], packed: list[int]) -> None:
    if len(numbers) == 8:
        statement = (problem("pack_offset").directory / "README.md").read_text()
        assert [f"`0x{byte:02X}`" for byte in packed] == re.findall(r"`0x\w\w`", statement)
        assert f"| {', '.join(map(str, numbers[:2]))} |" in statement
    x = torch.tensor([numbers], dtype=torch.int8)
    found = problem("pack_offset")
    case = found.resolve(found.tests[0].model_copy(update={"params": {"rows": 1, "cols": len(numbers), "bits": bits}}))
    [truth] = Reference.load(found)({"x": x}, {"width": bits}, case).values()
    assert isinstance(truth, torch.Tensor)
    assert truth.tolist() == [packed]
    y = torch.empty(1, len(packed), dtype=torch.uint8)
    module(ROOT / "reference" / "pack_offset" / "eager.py").pack_offset(x, y, bits)
    assert y.tolist() == [packed]


def test_the_unpacked_example() -> None:
    tensors = {
        "packed": torch.tensor([BYTES], dtype=torch.uint8),
        "scale": torch.tensor([[0.5]], dtype=torch.float16),
        "zero": torch.tensor([[-2]], dtype=torch.int8),
    }
    unpacked = reference("unpack_int4", tensors, rows=1, groups=1, size=8, dtype="float16")
    assert unpacked.tolist() == [[(number + 2) / 2 for number in NUMBERS]]


def test_the_example_of_zero_points() -> None:
    statement = (problem("matmul_int4_asymmetric").directory / "README.md").read_text()
    expected = ("`83 F0`", "`zero = 8` and `scale = 0.5`", "`[-2.5, 0, -4, 3.5]`")
    assert [text for text in expected if text not in statement] == []
    tensors = {
        "x": torch.eye(4, dtype=torch.float16),  # y then has the weights, a column a channel
        "packed": torch.tensor([[0x83, 0xF0]], dtype=torch.uint8),
        "scale": torch.tensor([[0.5]], dtype=torch.float16),
        "zero": torch.tensor([[8]], dtype=torch.uint8),
    }
    weights = reference("matmul_int4_asymmetric", tensors, m=4, n=1, k=4, size=4, dtype="float16")
    assert weights.flatten().tolist() == [-2.5, 0.0, -4.0, 3.5]


@pytest.mark.parametrize("unused", [0x2, 0x8])
def test_the_example_of_integer_sums(unused: int) -> None:
    """Three weights: the last high half belongs to none."""
    statement = (problem("matmul_int4_int8").directory / "README.md").read_text()
    expected = (
        "`F9 27`",
        "`q = [-7, -1, 7]`",
        "`x = [10, -20, 100]`",
        "`x_scale = 0.5` and `w_scale = 0.25`, `y` is 81.25",
    )
    assert [text for text in expected if text not in statement] == []
    tensors = {
        "x": torch.tensor([[10, -20, 100]], dtype=torch.int8),
        "packed": torch.tensor([[0xF9, unused << 4 | 0x7]], dtype=torch.uint8),
        "x_scale": torch.tensor([0.5]),
        "w_scale": torch.tensor([0.25]),
    }
    assert reference("matmul_int4_int8", tensors, m=1, n=1, k=3).tolist() == [[81.25]]
    y = torch.empty(1, 1, dtype=torch.float16)
    module(ROOT / "reference" / "matmul_int4_int8" / "eager.py").matmul_int4_int8(*tensors.values(), y)
    assert y.tolist() == [[81.25]]


def test_the_example_of_float8_activations() -> None:
    statement = (problem("matmul_int4_fp8").directory / "README.md").read_text()
    expected = ("`F9 27`", "`x = [1.5, -2, 10]`", "`x_scale = 0.5` and `w_scale = 2`, `y` is 61.5")
    assert [text for text in expected if text not in statement] == []
    tensors = {
        "x": torch.tensor([[1.5, -2.0, 10.0]]).to(torch.float8_e4m3fn),
        "packed": torch.tensor([[0xF9, 0x27]], dtype=torch.uint8),
        "x_scale": torch.tensor([0.5]),
        "w_scale": torch.tensor([2.0]),
    }
    assert reference("matmul_int4_fp8", tensors, m=1, n=1, k=3).tolist() == [[61.5]]
