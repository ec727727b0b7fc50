"""Inputs made by a problem's `generate`: what it may return, what the judge copies, and what the lint reports."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from harness.device import DEVICES
from harness.errors import ProblemError
from harness.judge.correctness.batch import Batch, seed_of_set
from harness.judge.correctness.graded_case import GradedCase
from harness.judge.correctness.layout import Layout
from harness.problem import Problem, load
from harness.problem.reference import Reference
from harness.problem_lint.examine import examine
from harness.problem_lint.finding import LintFinding
from tests import grading

TOML = """
title = "Sums of segments, in place"
entry = "sums"
parameters = ["n", "segments", "dtype"]
tensors = [
    { name = "x", role = "input", shape = ["n"], dtype = "dtype" },
    { name = "offsets", role = "input", shape = ["segments + 1"], dtype = "int32", fill = { kind = "generated" } },
    { name = "parts", role = "input", count = 2, shape = ["index + 1"], dtype = "float32" },
    { name = "y", role = "inout", shape = ["segments"], dtype = "dtype" },
]
cost = { bytes = "n", flops = "n" }
tests = [
    { name = "plain", params = { n = 64, segments = 4, dtype = "float32" } },
    { name = "empty", params = { n = 64, segments = 4, dtype = "float64" }, options = { empty = true } },
]
benchmarks = [{ name = "large", params = { n = 128, segments = 8, dtype = "float32" } }]
"""
OFFSETS = """
import torch


def generate(generator, n, segments, dtype, empty=False):
    high = 1 if empty else n + 1
    inner = torch.randint(0, high, (segments - 1,), generator=generator, device=generator.device, dtype=torch.int32)
    offsets = torch.tensor([0, *inner.sort().values.tolist(), n], dtype=torch.int32, device=generator.device)
    return {"offsets": offsets}
"""
REFERENCE = """

def reference(x, offsets, parts, y):
    return y + torch.stack([x[a:b].sum() for a, b in zip(offsets[:-1], offsets[1:], strict=True)])
"""
SETS = 3


def written(tmp_path: Path, generate: str = OFFSETS, toml: str = TOML) -> Problem:
    return grading.written(tmp_path / "sums", toml, generate + REFERENCE)


def returning(tmp_path: Path, value: str, toml: str = TOML) -> Problem:
    """One whose `generate` returns this."""
    source = f"import torch\n\ndef generate(generator, n, segments, dtype, empty=False):\n    return {value}\n"
    return written(tmp_path, source, toml)


def graded(problem: Problem, **more: int) -> GradedCase:
    """The benchmark."""
    return GradedCase(problem, Reference.load(problem), "cpu", problem.resolve(problem.benchmarks[0]), **more)


def generated(problem: Problem, case: int = 0) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(7)
    return Reference.load(problem).generate(problem.resolve(problem.tests[case]), generator)


def test_parameters_and_options_arrive_by_name(tmp_path: Path) -> None:
    problem = written(tmp_path)
    assert Reference.load(problem).generates
    plain, empty = (generated(problem, case)["offsets"] for case in (0, 1))
    assert plain[1:-1].any()
    assert empty.tolist() == [0, 0, 0, 0, 64]


def test_members_of_a_list_and_strided_tensors_are_taken_and_a_dtype_is_torchs_own(tmp_path: Path) -> None:
    parts = '"parts": [torch.zeros(4)[::4], torch.ones(4)[::2]], "y": torch.ones(segments, dtype=dtype)'
    problem = returning(tmp_path, f'{{"offsets": torch.arange(segments + 1).int(), {parts}}}')
    made = generated(problem, 1)
    assert [made[f"parts[{index}]"].tolist() for index in (0, 1)] == [[0.0], [1.0, 1.0]]
    assert made["y"].dtype is torch.float64
    drawn = Reference.load(problem).draw(problem.resolve(problem.tests[0]), torch.Generator())
    assert drawn["parts[1]"].is_contiguous()
    assert drawn["x"].std() > 0, "what is not generated is filled as declared"


@pytest.mark.parametrize("returned", ["{}", '{"offsets": None}', '{"offsets": torch.zeros(5).int()}'])
def test_absent_inputs_are_neither_required_nor_accepted(returned: str, tmp_path: Path) -> None:
    toml = TOML.replace('"offsets", role = "input"', '"offsets", role = "input", present = "segments - 4"')
    problem = returning(tmp_path, returned, toml)
    if "zeros" not in returned:
        assert generated(problem) == {}
        return
    with pytest.raises(ProblemError, match="returned `offsets`, which 'plain' lacks; return None for it, or nothing"):
        generated(problem)


# What `generate` returns, and what the line says after the place.
BAD = [
    ("1 // 0", " raised ZeroDivisionError: "),
    ("{}", "`generate` returned no `offsets`; return it, or give it another fill than { kind"),
    ('{"offset": 1}', "`generate` returned 'offset', which is no input; did you mean `offsets`?"),
    ('{"offsets": [0, 1]}', "`generate` returned list for `offsets`; return a tensor"),
    ('{"offsets": torch.zeros(segments).int()}', "`generate` returned `offsets` with the shape [4]; problem"),
    ('{"offsets": torch.zeros(segments + 1)}', "`generate` returned `offsets` as float32; problem.toml says int32"),
    (
        '{"offsets": torch.zeros(segments + 1, device="meta")}',
        "`generate` returned `offsets` on meta for a call on cpu; make it with device=generator.device",
    ),
    ('{"offsets": torch.zeros(segments + 1).int().to_sparse()}', "`generate` returned `offsets` as a sparse tensor"),
]


@pytest.mark.parametrize(("returned", "line"), BAD)
def test_a_generated_input_that_does_not_fit_gets_one_line(tmp_path: Path, returned: str, line: str) -> None:
    problem = returning(tmp_path, returned)
    with pytest.raises(ProblemError) as caught:
        generated(problem)
    place = f"{problem.directory / 'reference.py'}:{4 if 'raised' in line else 3}"
    assert str(caught.value).startswith(f"{place}{line}" if "raised" in line else f"{place}: {line}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("import torch", "reference.py defines no function `generate`; define `def generate(generator, n, "),
        (
            "import torch\ndef generate(generator, n, segments, dtype): ...",
            "reference.py:2: `generate` cannot be called with problem.toml's names (got an unexpected keyword argument "
            "'empty'); define `def generate(generator, n, segments, dtype, empty)`",
        ),
        (
            "import torch\ndef generate(generator, n, segments, dtype, empty): ...",
            "reference.py:2: `generate` cannot be called with problem.toml's names (missing a required argument: "
            "'empty'); define `def generate(generator, n, segments, dtype)`",
        ),
    ],
)
def test_a_function_that_cannot_be_called_is_found_when_it_is_loaded(tmp_path: Path, source: str, line: str) -> None:
    problem = written(tmp_path, source)
    with pytest.raises(ProblemError) as caught:
        Reference.load(problem)
    assert line in str(caught.value)


def test_a_problem_without_generated_inputs_needs_no_generate(tmp_path: Path) -> None:
    toml = TOML.replace(', fill = { kind = "generated" }', ', fill = { kind = "zeros" }')
    toml = toml.replace(", options = { empty = true }", "")
    problem = written(tmp_path, "import torch", toml)
    reference = Reference.load(problem)
    assert not reference.generates
    with pytest.raises(ProblemError, match="defines no `generate`"):
        reference.generate(problem.resolve(problem.tests[0]), torch.Generator())


# Other tensors at every call, whatever the generator's state is.
NEVER_THE_SAME = """
import os, torch

def generate(generator, n, segments, dtype, empty=False):
    inner = sorted(byte % n for byte in os.urandom(segments - 1))
    return {
        "offsets": torch.tensor([0, *inner, n], dtype=torch.int32),
        "y": torch.tensor(list(os.urandom(segments)), dtype=dtype),
    }
"""


@pytest.fixture
def batch(tmp_path: Path) -> Iterator[Batch]:
    made = graded(written(tmp_path, NEVER_THE_SAME)).batch(SETS, sealed=False)
    yield made
    made.close_arenas()


def byte_of(batch: Batch, name: str, call: int) -> tuple[torch.Tensor, int]:
    """The memory that holds a tensor of a call, and where it begins there."""
    [slot] = [slot for slot in batch._layout.slots if slot.tensor.name == name]
    if slot.writable:
        return batch._arenas["outputs"].bytes, call * batch._layout.output_stride + slot.offset
    return batch._arenas["inputs"].bytes, call * batch._layout.input_stride + slot.offset


def test_inputs_are_compared_with_a_copy_and_not_made_again(batch: Batch) -> None:
    batch.snapshot()
    assert batch.inputs_changed() is None
    memory, at = byte_of(batch, "offsets", 1)
    memory[at] ^= 1
    assert batch.inputs_changed() == "offsets"


def test_an_inout_of_a_call_that_was_not_made_is_compared_with_the_copy(batch: Batch) -> None:
    batch.snapshot()
    assert batch.out_of_bounds([0, 1]) is None
    memory, at = byte_of(batch, "y", 2)
    memory[at] ^= 1
    batch.snapshot()
    out_of_bounds = batch.out_of_bounds([0, 1])
    assert out_of_bounds is not None
    assert (out_of_bounds.set, out_of_bounds.text) == (2, "wrote to `y` of a call that was not made")


def test_the_truth_follows_from_the_copy(tmp_path: Path, batch: Batch) -> None:
    batch.snapshot()
    case = graded(load(tmp_path / "sums"))
    seen = {}
    for first, expected, got in batch.judge(case.truth, range(SETS)):
        for k in range(len(got["y"])):
            x, offsets, y = (expected.inputs[name][k] for name in ("x", "offsets", "y"))
            assert torch.equal(y, got["y"][k]), "an inout that no call has changed"
            sums = [x[a:b].double().sum() for a, b in itertools.pairwise(offsets.tolist())]
            assert torch.allclose(expected.truth["y"][k], y.double() + torch.stack(sums))
            seen[first + k] = tuple(y.tolist())
    assert len(set(seen.values())) == SETS, "every call has its own"


def test_a_seed_repeats_what_follows_from_the_generator(tmp_path: Path) -> None:
    problem = written(tmp_path)
    reference, resolved = Reference.load(problem), problem.resolve(problem.benchmarks[0])
    made = [graded(problem, seed=seed).batch(SETS) for seed in (5, 5, 6)]
    one, again, other = (each._arenas["inputs"].bytes.clone() for each in made)
    assert torch.equal(one, again)
    assert not torch.equal(one, other)
    slot = made[0]._layout.slots[1]
    alone = reference.generate(resolved, DEVICES["cpu"].generator(seed_of_set(5, 1)))["offsets"]
    assert torch.equal(made[0]._shared(slot, 1), alone)
    for each in made:
        each.close_arenas()


def test_a_batch_that_cannot_be_made_gives_its_memory_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = written(tmp_path, OFFSETS.replace("return", "1 // 0; return"))
    closed = []
    close = Batch.close_arenas
    monkeypatch.setattr(Batch, "close_arenas", lambda self: closed.append(close(self)))
    with pytest.raises(ProblemError, match="ZeroDivisionError"):
        graded(problem).batch(1)
    assert len(closed) == 1


def test_the_copy_counts_as_memory_of_a_set(tmp_path: Path) -> None:
    problem = written(tmp_path)
    resolved = problem.resolve(problem.benchmarks[0])
    plain, keeping = Layout(resolved), Layout(resolved, keeps_copy=True)
    assert keeping.bytes_per_set - plain.bytes_per_set == plain.input_stride + plain.output_stride, "y is an inout"
    case = graded(problem)
    assert case.layout.bytes_per_set == keeping.bytes_per_set
    batch = case.batch(SETS)
    copied = sum(map(len, batch._initial_copy.values()))
    assert copied == SETS * (keeping.bytes_per_set - plain.bytes_per_set)
    batch.close_arenas()


def said(problem: Problem) -> list[LintFinding]:
    return [finding for finding in examine(problem) if "`generate` makes" in finding.what or "raised" in finding.what]


@pytest.mark.parametrize(
    ("generate", "level", "what"),
    [
        (OFFSETS, "note", "`generate` makes the same `offsets` from every seed here"),  # where the option asks for it
        (OFFSETS.replace("inner =", "generator.manual_seed(0); inner ="), "warning", "same `offsets` from every seed"),
        (
            OFFSETS.replace("generator=generator, ", ""),
            "error",
            "`generate` makes another `offsets` when it gets the same seed again",
        ),
        (OFFSETS.replace("high =", "1 // 0; high ="), "error", "reference.py:6 raised ZeroDivisionError"),
    ],
)
def test_the_lint_reports_inputs_that_ignore_the_seed(tmp_path: Path, generate: str, level: str, what: str) -> None:
    finding, *notes = sorted(said(written(tmp_path, generate)), key=lambda each: each.level == "note")
    assert (finding.level, what in finding.what) == (level, True)
    assert {note.level for note in notes} <= {"note"}
    assert level != "note" or finding.cases == ("empty",)
