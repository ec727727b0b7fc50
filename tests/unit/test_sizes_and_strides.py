"""Tensors of one element, of none, and with strides: what a problem may state, and their place in memory."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from harness.arena import make_arena, make_window
from harness.arena.shapes import address_of, copied, memory_of
from harness.errors import ProblemError
from harness.judge.correctness.batch import Batch
from harness.judge.correctness.cases import check_batch, first_wrong
from harness.judge.correctness.layout import ALIGNMENT, Layout
from harness.judge.correctness.truth import Truth
from harness.problem import Problem, load
from harness.problem.dtypes import DTYPES
from harness.problem.elements import same_bits
from harness.problem.reference import Reference
from harness.problem_lint.examine import examine
from harness.shared.carrier import carrier
from tests.grading import problem_folder

PROBLEM = """
title = "Copy"
entry = "copies"
parameters = ["rows", "cols", "pitch"]
tensors = [
    {{ name = "x", role = "input", shape = {shape}, {strides} dtype = "{dtype}", fill = {fill} }},
    {{ name = "state", role = "inout", shape = {shape}, {strides} dtype = "{dtype}", fill = {fill} }},
    {{ name = "y", role = "output", shape = {shape}, {strides} dtype = "{dtype}" }},
    {{ name = "z", role = "output", shape = ["cols"], dtype = "float32" }},
    {{ name = "one", role = "input", shape = [], dtype = "float32" }},
]
cost = {{ bytes = "4", flops = "0" }}
tests = [{{ name = "one", params = {{ rows = {rows}, cols = {cols}, pitch = {pitch} }} }}]
benchmarks = [{{ name = "same", params = {{ rows = {rows}, cols = {cols}, pitch = {pitch} }} }}]
"""
REFERENCE = """
def reference(x, state, one):
    assert x.stride() == state.stride(), (x.stride(), state.stride())
    return state.clone(), x.clone(), one.expand(COLS)
"""
PITCHED = 'strides = ["pitch", "1"],'
NORMAL = "{ kind = 'normal' }"
FILLS = {"float": NORMAL, "complex": NORMAL, "packed": NORMAL, "scale": "{ kind = 'powers', low = -3, high = 3 }"}
SETS = 5


def write(
    folder: Path, *, shape: str = '["rows", "cols"]', strides: str = "", dtype: str = "float32",
    rows: int = 3, cols: int = 5, pitch: int = 8,
) -> Path:  # fmt: skip
    fill = FILLS.get(DTYPES[dtype].family, "{ kind = 'integers', low = 0, high = 1 }")
    names = {"shape": shape, "strides": strides, "dtype": dtype, "fill": fill}
    toml = PROBLEM.format(**names, rows=rows, cols=cols, pitch=pitch)
    return problem_folder(folder, toml, REFERENCE.replace("COLS", str(cols)))


def layout_of(problem: Problem) -> Layout:
    return Layout(problem.resolve(problem.benchmarks[0]))


# --- the format ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "strides", "line"),
    [
        ('["rows", "cols"]', '["4", "1"]', "`tensors[0].strides` is [4, 1] for the shape [3, 5] in tests[0], where el"),
        ('["rows", "cols"]', '["1", "2"]', "`tensors[0].strides` is [1, 2] for the shape [3, 5] in tests[0], where el"),
        ('["rows", "cols"]', '["5", "0"]', "`tensors[0].strides` is [5, 0] for the shape [3, 5] in tests[0], where el"),
        ('["rows", "1"]', '["1", "-1"]', "`tensors[0].strides` is [1, -1] for the shape [3, 1] in tests[0], where el"),
        ('["rows", "cols"]', '["pitch"]', "`tensors[0]`: `strides` has 1 entries, and `shape` 2: give as many"),
        ('["rows"]', '["2 ** 40"]', "`tensors[0].strides` span 2,199,023,255,553 elements in tests[0]; a tensor spans"),
        ('["rows"]', '["pich"]', "`tensors[0].strides[0]` has no value: `pich`"),
        ('["rows", "cols - 6"]', '["1", "1"]', "`tensors[0].shape[1]` is -1 in tests[0]; a dimension is at least 0"),
    ],
)
def test_bad_strides_and_sizes_get_one_line(tmp_path: Path, shape: str, strides: str, line: str) -> None:
    with pytest.raises(ProblemError) as caught:
        load(write(tmp_path, shape=shape, strides=f"strides = {strides},"))
    assert f"key {line}" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_case_whose_outputs_all_lack_elements_gets_one_line(tmp_path: Path) -> None:
    with pytest.raises(ProblemError) as caught:
        load(write(tmp_path, shape='["rows", "cols"]', cols=0))
    assert "key `tests[0].params` leaves every output without elements; nothing would be tested" in str(caught.value)


# --- where they are ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "strides"),
    [
        ((3, 5), (8, 1)),
        ((3, 5), (1, 3)),
        ((3, 5), (2, 7)),
        ((4, 3, 5), (64, 7, 1)),
        ((2, 3, 4, 5), (100, 1, 16, 3)),
        ((1, 5, 1), (9, 2, 100)),
        ((7,), (3,)),
        ((), ()),
    ],
)
def test_elements_and_zones_cover_the_region(tmp_path: Path, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    stated = f"strides = {list(strides)}," if shape else ""
    layout = layout_of(load(write(tmp_path, shape=str(list(shape)), strides=stated, dtype="float16")))
    owned = torch.zeros(layout.output_stride, dtype=torch.int32)
    for slot in layout.outputs:
        size = DTYPES[slot.tensor.dtype].size_bytes
        for index in itertools.product(*map(range, slot.tensor.shape)):
            in_rows = torch.empty(slot.tensor.shape, device="meta").stride()
            at = sum(i * s for i, s in zip(index, slot.tensor.strides or in_rows, strict=True))
            owned[slot.offset + at * size : slot.offset + (at + 1) * size] += 1
    for zone in layout.red_zones():
        owned.as_strided(zone.shape, zone.strides, zone.low).add_(1)
    assert (owned == 1).all()


def test_tensors_without_elements_have_addresses_of_their_own(tmp_path: Path) -> None:
    layout = layout_of(load(write(tmp_path, shape='["rows", "cols - 5"]')))
    inputs = [slot.offset for slot in layout.slots if not slot.writable]
    outputs = [slot.offset for slot in layout.outputs]
    assert len(set(inputs)) == len(inputs)
    assert len(set(outputs)) == len(outputs)
    assert max(inputs) < layout.input_stride
    assert all(offset % ALIGNMENT == 0 for offset in inputs + outputs)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_window_shows_them_at_their_places(dtype: str) -> None:
    arena = make_arena("cpu", 1 << 16, read_only=False)
    window = make_window("cpu", 1 << 16, writable=True)
    window.map(arena.descriptor())
    kinds: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
        ((), ()),
        ((3, 0), ()),
        ((0, 2), (2, 1)),
        ((3, 5), (8, 1)),
    )
    try:
        for shape, strides in kinds:
            tensor = window.tensor(512, shape, dtype, strides)
            assert tuple(tensor.shape) == shape
            assert tensor.dtype is getattr(torch, dtype)
            assert tensor.stride() == strides or not strides
            assert address_of(tensor) == window.address + 512
            assert tensor.data_ptr() in (0, address_of(tensor))
            again = copied(tensor)
            assert again.stride() == tensor.stride()
            assert same_bits(carrier(again), carrier(tensor))
            assert len(memory_of(tensor)) == {(): 1, (3, 0): 1, (0, 2): 1, (3, 5): 21}[shape]
            del tensor, again
    finally:
        window.close()
        arena.close()


# --- a batch of calls ----------------------------------------------------------------------------------------------

LAYOUTS = {
    "contiguous": {},
    "pitched": {"strides": PITCHED},
    "transposed": {"strides": 'strides = ["1", "rows + 1"],'},
    "one number": {"shape": "[]"},
    "no elements": {"shape": '["rows", "cols - 5"]'},
    "one row": {"strides": PITCHED, "rows": 1},
}


@pytest.fixture(params=LAYOUTS)
def stated(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return write(tmp_path, **LAYOUTS[request.param])  # type: ignore[arg-type]


@pytest.fixture
def made(stated: Path) -> Iterator[tuple[Problem, Batch]]:
    problem = load(stated)
    batch = Batch(layout_of(problem), "cpu", SETS)
    yield problem, batch
    batch.close_arenas()


def slot_of(batch: Batch, name: str):  # type: ignore[no-untyped-def]
    return next(slot for slot in batch._layout.slots if slot.tensor.name == name)


def answer(batch: Batch) -> None:
    """The right answer to every call, by torch, in the arenas themselves."""
    for k in range(SETS):
        copy = batch._shared(slot_of(batch, "y"), k)
        carrier(copy).copy_(carrier(batch._shared(slot_of(batch, "x"), k)))
        batch._shared(slot_of(batch, "z"), k).copy_(batch._shared(slot_of(batch, "one"), k).expand(5))


def test_right_answers_pass_and_stay_inside(made: tuple[Problem, Batch]) -> None:
    problem, batch = made
    answer(batch)
    batch.snapshot()
    assert batch.out_of_bounds(range(SETS)) is None
    assert batch.inputs_changed() is None
    truth = Truth(Reference.load(problem), problem.resolve(problem.benchmarks[0]))
    checks = list(check_batch(batch, truth, range(SETS)))
    assert {check.output.split()[0] for check in checks} == {"state", "y", "z"}
    assert all(check.correct for check in checks)
    assert first_wrong(batch, truth, range(SETS)) is None
    assert first_wrong(batch, truth, [0, 3]) is None


def test_a_wrong_call_is_found_among_others(made: tuple[Problem, Batch]) -> None:
    problem, batch = made
    answer(batch)
    name = "y" if slot_of(batch, "y").tensor.elements else "z"
    batch._shared(slot_of(batch, name), 2).add_(2)
    batch.snapshot()
    truth = Truth(Reference.load(problem), problem.resolve(problem.benchmarks[0]))
    assert first_wrong(batch, truth, [0, 1, 3, 4]) is None
    wrong = first_wrong(batch, truth, range(SETS))
    assert wrong.output.startswith(name)


def test_compare_decides_where_the_first_result_has_no_elements(tmp_path: Path) -> None:
    folder = write(tmp_path, shape='["rows", "cols - 5"]')
    with (folder / "reference.py").open("a") as file:
        file.write("def compare(got, inputs, truth, usual):\n    return usual('z')\n")
    problem = load(folder)
    batch = Batch(layout_of(problem), "cpu", SETS)
    answer(batch)
    batch._shared(slot_of(batch, "z"), 2).add_(2)
    batch.snapshot()
    truth = Truth(Reference.load(problem), problem.resolve(problem.benchmarks[0]))
    assert [check.correct for check in check_batch(batch, truth, range(SETS))] == [True, True, False, True, True]
    batch.close_arenas()


def test_a_changed_input_is_found(made: tuple[Problem, Batch]) -> None:
    _, batch = made
    batch._shared(slot_of(batch, "one"), 4).add_(1)
    batch.snapshot()
    assert batch.inputs_changed() == "one"


def test_samples_are_of_elements_alone(made: tuple[Problem, Batch]) -> None:
    _, batch = made
    layout = batch._layout
    own = torch.ones(layout.output_stride, dtype=torch.bool)
    for zone in layout.red_zones():
        own.as_strided(zone.shape, zone.strides, zone.low).fill_(False)
    words = own.view(-1, 8).any(1)
    places = batch.draw_sample(range(SETS)).places % (layout.output_stride // 8)
    assert words[places].all()
    assert set(words.nonzero().view(-1).tolist()) == set(places.tolist()), "4,096 draws reach them all"


@pytest.mark.parametrize("name", ["y", "state"])
def test_a_write_between_the_elements_is_found(tmp_path: Path, name: str) -> None:
    batch = Batch(layout_of(load(write(tmp_path, strides=PITCHED))), "cpu", SETS)
    slot = slot_of(batch, name)
    at = 2 * batch._layout.output_stride + slot.offset + (1 * 8 + 6) * 4
    batch._arenas["outputs"].bytes[at] ^= 0xFF
    batch.snapshot()
    found = batch.out_of_bounds(range(SETS))
    batch.close_arenas()
    assert (found.set, found.text) == (
        2, f"wrote 1 byte outside its outputs, the first between the elements of `{name}`",
    )  # fmt: skip


def test_between_the_elements_of_an_input_are_random_bytes(tmp_path: Path) -> None:
    batch = Batch(layout_of(load(write(tmp_path, strides=PITCHED))), "cpu", 1)
    slot = slot_of(batch, "x")
    rows = batch._arenas["inputs"].bytes[slot.offset : slot.offset + 2 * 32].view(2, 32).clone()
    first, seed = rows[:, 20:].clone(), batch.seed
    batch.renew(seed=seed)
    again = batch._arenas["inputs"].bytes[slot.offset : slot.offset + 2 * 32].view(2, 32).clone()
    batch.close_arenas()
    assert torch.equal(rows[:, :20], again[:, :20]), "the elements follow from the seed"
    assert not torch.equal(first, again[:, 20:])


@pytest.mark.parametrize("strides", ["", PITCHED], ids=["contiguous", "pitched"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_goes_all_the_way(tmp_path: Path, dtype: str, strides: str) -> None:
    problem = load(write(tmp_path, dtype=dtype, strides=strides))
    batch = Batch(layout_of(problem), "cpu", SETS)
    answer(batch)
    batch.snapshot()
    truth = Truth(Reference.load(problem), problem.resolve(problem.benchmarks[0]))
    assert all(check.correct for check in check_batch(batch, truth, [0, 2]))
    assert batch.inputs_changed() is None
    assert batch.out_of_bounds([0, 1, 2, 3]) is not None, "one call was made too many"
    carrier(batch._shared(slot_of(batch, "y"), 2)).zero_()
    batch.snapshot()
    assert not all(check.correct for check in check_batch(batch, truth, [0, 2]))
    batch.close_arenas()


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_lint_examines_every_dtype(tmp_path: Path, dtype: str) -> None:
    findings = list(examine(load(write(tmp_path, dtype=dtype, strides=PITCHED, rows=40, cols=50, pitch=64))))
    errors = [f"{finding.kernel}: {finding.what}" for finding in findings if finding.level == "error"]
    # `state` stays as it is, so that a kernel that writes nothing has it right; everything else must be refused.
    assert not [text for text in errors if not text.startswith((": `z` holds", "half of `state`"))], errors
