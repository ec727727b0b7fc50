"""Strides and types that torch barely knows, in generated inputs, returned outputs and foreign references."""

from __future__ import annotations

import hashlib
from contextlib import closing
from pathlib import Path

import pytest
import torch

from harness.judge.correctness.oracle import Oracle
from harness.problem import Problem, load
from harness.problem_lint.examine import examine
from harness.problem_lint.foreign import examine_foreign
from harness.sandbox import provider
from harness.verdict import Outcome
from tests.grading import checked, graded, written

FORKED = provider("process")  # what is computed does not depend on the sandbox
NAMES = ("x", "waves", "packed", "scales", "counts")
GENERATED = 'fill = { kind = "generated" }'
TOML = """
title = "Everything returned"
entry = "{entry}"
parameters = ["rows", "cols"]
tensors = [
    {{ name = "x", role = "input", shape = ["rows", "cols"], strides = [1, "rows + 1"], dtype = "float32", {fill} }},
    {{ name = "waves", role = "input", shape = ["rows"], strides = [2], dtype = "complex64", {fill} }},
    {{ name = "packed", role = "input", shape = ["cols"], strides = [3], dtype = "float4_e2m1fn_x2", {fill} }},
    {{ name = "scales", role = "input", shape = ["cols"], dtype = "float8_e8m0fnu", {powers} }},
    {{ name = "counts", role = "input", shape = ["cols"], dtype = "uint16", {integers} }},
    {{ name = "y", role = "output", shape = ["cols", "rows"], strides = ["rows + 2", 1], dtype = "float32" }},
    {{ name = "turned", role = "output", shape = ["rows"], strides = [3], dtype = "complex64" }},
    {{ name = "swapped", role = "output", shape = ["cols"], strides = [2], dtype = "float4_e2m1fn_x2" }},
    {{ name = "doubled", role = "output", shape = ["cols"], strides = [2], dtype = "float8_e8m0fnu" }},
    {{ name = "more", role = "output", shape = ["cols"], strides = [4], dtype = "uint16" }},
]
cost = {{ bytes = "8 * rows * cols", flops = "rows * cols" }}
tests = [
    {{ name = "primes", params = {{ rows = 61, cols = 37 }} }},
    {{ name = "hidden", params = {{ rows = 5, cols = 9 }}, hidden = true }},
]
benchmarks = [{{ name = "small", params = {{ rows = 64, cols = 128 }} }}]

[call]
"""
COMPUTE = """
import torch


def answer(x, waves, packed, scales, counts):
    bits = packed.view(torch.uint8)
    swapped = (bits << 4 | bits >> 4).view(packed.dtype)
    doubled = (scales.view(torch.uint8) + 1).view(scales.dtype)
    return 2 * x.t(), (waves * 1j).conj().resolve_conj().conj(), swapped, doubled, (counts.int() + 1).to(torch.uint16)
"""
# In the truth's types: a scale is a float64 there.
REFERENCE = (
    COMPUTE
    + """

def reference(x, waves, packed, scales, counts):
    assert x.stride() == (1, len(x) + 1) and packed.stride() == (3,)
    y, turned, swapped, _, more = answer(x, waves, packed, torch.ones(1).to(torch.float8_e8m0fnu), counts)
    return y, turned, swapped, 2 * scales.to(x.dtype), more
"""
)
MAKE = """

def made(generator, rows, cols):
    device = generator.device
    bits = torch.randint(0, 256, (2, cols), generator=generator, device=device, dtype=torch.int32)
    waves = torch.randn(rows, 2, generator=generator, device=device)
    return {
        "x": torch.randn(cols, rows, generator=generator, device=device).t(),
        "waves": torch.view_as_complex(waves).conj(),
        "packed": bits[0].to(torch.uint8).repeat_interleave(2)[::2].view(torch.float4_e2m1fn_x2),
        "scales": (bits[1] // 2 + 64).to(torch.uint8).view(torch.float8_e8m0fnu),
        "counts": (bits[0] * 255).to(torch.uint16),
    }
"""
GENERATE = MAKE + "\n\ndef generate(generator, rows, cols):\n    return made(generator, rows, cols)\n"
GPU_MODE = (
    COMPUTE
    + MAKE
    + """

def ref_kernel(data):
    x, waves, packed, scales, counts = data
    assert x.stride() == (1, len(x) + 1) and packed.stride() == (3,)
    return answer(*data)


def generate_input(rows, cols, seed):
    return tuple(made(torch.Generator().manual_seed(seed), rows, cols).values())


def bits(tensor):
    tensor = torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
    return tensor.contiguous().view(torch.uint8)


def check_implementation(data, output):
    names = ("y", "turned", "swapped", "doubled", "more")
    differ = [name for name, *pair in zip(names, ref_kernel(data), output) if not torch.equal(*map(bits, pair))]
    return not differ, f"{differ} differ"
"""
)
RETURNS = COMPUTE + "\ndef everything(*given):\n    y, turned, swapped, doubled, more = answer(*given)\n"
TREE = COMPUTE + "\ndef custom_kernel(given):\n    y, turned, swapped, doubled, more = answer(*given)\n"
RESULT = "    return y, turned, swapped, doubled, more\n"
OUTPUTS = ["y", "turned", "swapped", "doubled", "more"]
WRONG = """
    y = y.clone(); y[-1, -1] += 1
    turned = turned * 1.5
    swapped = torch.zeros_like(swapped.view(torch.uint8)).view(swapped.dtype)
    doubled = doubled.clone(); doubled.view(torch.uint8)[3] += 1
    more = (more.int() ^ 1).to(torch.uint16)
"""


def own(folder: Path, *, generated: bool = True) -> Problem:
    fills = {"fill": GENERATED, "powers": GENERATED, "integers": GENERATED}
    if not generated:
        fills["fill"] = 'fill = { kind = "normal", scale = 2.0 }'
        fills["powers"] = 'fill = { kind = "powers", low = "1 - cols", high = "rows + 1" }'
        fills["integers"] = 'fill = { kind = "integers", low = 0, high = "1000 * rows" }'
    toml = TOML.format(entry="everything", **fills) + 'style = "returns"\n'
    return written(folder / "everything", toml, REFERENCE + GENERATE * generated)


def foreign(folder: Path) -> Problem:
    directory = folder / "foreign"
    directory.mkdir()
    (directory / "theirs.py").write_text(GPU_MODE)
    sha256 = hashlib.sha256(GPU_MODE.encode()).hexdigest()
    text = TOML.format(entry="custom_kernel", fill=GENERATED, powers=GENERATED, integers=GENERATED)
    text += f'style = "tree"\ndata = {{ tuple = {list(NAMES)} }}\n[foreign]\nform = "gpu-mode"\n'
    text += f'files = [{{ name = "reference.py", path = "theirs.py", sha256 = "{sha256}" }}]\n'
    (directory / "problem.toml").write_text(text)
    return load(directory)


@pytest.mark.parametrize("generated", [True, False], ids=["generated", "filled"])
def test_what_is_returned_is_copied_into_outputs_with_strides(tmp_path: Path, generated: bool) -> None:
    found = checked(own(tmp_path, generated=generated), RETURNS + RESULT)
    assert found.outcome is Outcome.ACCEPTED, found.message


@pytest.mark.full
def test_it_is_timed(tmp_path: Path) -> None:
    verdict = graded(own(tmp_path), RETURNS + RESULT)
    assert verdict.outcome is Outcome.ACCEPTED, verdict.message


def test_the_lint_finds_nothing(tmp_path: Path) -> None:
    assert [f for f in examine(own(tmp_path)) if f.level == "error"] == []


@pytest.mark.full
def test_a_foreign_reference_gets_and_gives_them(tmp_path: Path) -> None:
    problem = foreign(tmp_path)
    found = checked(problem, TREE + RESULT)
    assert found.outcome is Outcome.ACCEPTED, found.message
    [seeds] = examine_foreign(problem, FORKED, "cpu")
    assert "drawn from 65,536 seeds alone" in seeds.what
    with closing(Oracle(problem, FORKED, "cpu")) as oracle:
        case = problem.resolve(problem.tests[0])
        drawn = oracle.generate(case, torch.Generator().manual_seed(3))
        assert drawn["packed"].stride() == (3,)
        answered = oracle(drawn, {}, case)["turned"]
        torch.testing.assert_close(answered, drawn["waves"] * 1j)


@pytest.mark.full
def test_a_foreign_check_sees_what_is_wrong(tmp_path: Path) -> None:
    found = checked(foreign(tmp_path), TREE + WRONG + RESULT)
    assert found.outcome is Outcome.WRONG_ANSWER
    assert f"{OUTPUTS} differ" in found.message
