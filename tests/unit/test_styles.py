"""How a Python submission is called in each style, and what happens to what it returns."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from harness.problem.dtypes import DTYPES
from harness.problem.elements import same_bits
from harness.recording.schema import Returned
from harness.runner.build import import_python
from harness.runner.compiling import CompileError
from harness.runner.devices import RunnerCpu
from harness.runner.faults import describe
from harness.runner.kernel import CallError
from harness.runner.results import Results
from harness.runner.styles import PythonKernel
from harness.shared.call import Form, Forms, Style
from harness.shared.layouts import strides_of
from harness.wire import commands


def bind(forms: Forms, *scalars: float, seed: int = 0) -> commands.Bind:
    passed = tuple(commands.Scalar(dtype="float64", value=scalar) for scalar in scalars)
    return commands.Bind("entry", passed, (), 1, 0, 0, 0, 0, inputs_writable=False, forms=forms, seed=seed)


def declared(*names: str) -> list[commands.TensorArgument]:
    """Float32 tensors; a name with an index is a member of a list."""
    groups = [name.partition("[")[0] if "[" in name else "" for name in names]
    return [
        commands.TensorArgument(n, "float32", (3,), False, 0, group) for n, group in zip(names, groups, strict=True)
    ]


def prepared(
    entry: Callable[..., Any], style: Style, forms: Forms, *, x: Tensor, y: Tensor, seed: int = 0
) -> Callable[[], object]:
    kernel = PythonKernel(entry, style=style, signature="entry(x) -> y", device="cpu")
    return kernel.bind(bind(forms, seed=seed), declared("x", "y"))([x, y])


RETURNS = Forms(arguments=("x",), result="y")


def test_in_writes_all_tensors_and_scalars_are_passed_and_nothing_is_done_with_a_result() -> None:
    x, y = torch.arange(3.0), torch.zeros(3)
    kernel = PythonKernel(lambda x, y, a: 2 * y.copy_(a * x), style="writes", signature="", device="cpu")
    kernel.bind(bind(Forms(), 0.5), declared("x", "y"))([x, y])()
    assert y.tolist() == [0, 0.5, 1]


@pytest.mark.parametrize("style", ["writes", "returns"])
def test_an_absent_tensor_is_none_in_its_place(style: Style) -> None:
    x, y = torch.arange(3.0), torch.zeros(3)
    places: list[bool] = []

    def entry(*arguments: Any) -> Tensor:
        places[:] = [argument is None for argument in arguments]
        return y.copy_(2 * x)

    forms = Forms(arguments=("x", {"none": True}), result="y") if style == "returns" else Forms()
    kernel = PythonKernel(entry, style=style, signature="", device="cpu")
    kernel.bind(bind(forms), declared("x", "y"))([x, None, y])()
    assert places == ([False, True] if style == "returns" else [False, True, False])
    assert y.tolist() == [0, 2, 4]


def test_with_returns_the_result_is_put_into_the_output() -> None:
    x, y = torch.arange(3.0), torch.zeros(3)
    call = prepared(lambda x: 2 * x, "returns", RETURNS, x=x, y=y)
    for factor in (1, 10):  # the same call on new inputs in the same memory
        x.copy_(factor * torch.arange(3.0))
        call()
        assert y.tolist() == [0, 2 * factor, 4 * factor]


def test_only_writes_may_record_gradients() -> None:
    seen: list[bool] = []

    def entry(x: Tensor, y: Tensor | None = None) -> Tensor:
        seen.append(torch.is_grad_enabled())
        return x

    prepared(entry, "returns", RETURNS, x=torch.ones(3), y=torch.ones(3))()
    prepared(entry, "writes", RETURNS, x=torch.ones(3), y=torch.ones(3))()
    assert seen == [False, True]


class Weighted(torch.nn.Module):
    """Draws weights, and counts how often it is made."""

    made = 0

    def __init__(self, n: int, mode: str) -> None:
        super().__init__()
        type(self).made += 1
        self.weights, self.mode = torch.nn.Parameter(torch.rand(n)), mode

    def forward(self, x: Tensor) -> Tensor:
        return self.weights * x


def test_a_module_is_made_once_with_weights_that_follow_from_the_seed() -> None:
    forms = Forms(init=(3, {"text": "mean"}), arguments=("x",), result="y")
    kernel = PythonKernel(Weighted, style="module", signature="", device="cpu")
    before = Weighted.made
    results = []
    for seed in (7, 7, 8):
        prepare = kernel.bind(bind(forms, seed=seed), declared("x", "y"))
        outputs = [torch.zeros(3), torch.zeros(3)]
        calls = [prepare([torch.ones(3), y]) for y in outputs]
        for call in calls * 2:
            call()
        assert torch.equal(*outputs)
        results.append(outputs[0])
    assert Weighted.made - before == 3, "once for all sets of a bind"
    assert torch.equal(results[0], results[1])
    assert torch.equal(results[0], torch.rand(3, generator=torch.Generator().manual_seed(7)))
    assert not torch.equal(results[0], results[2])


def test_a_class_need_not_be_a_torch_module() -> None:
    class Doubler:
        def __init__(self, factor: int) -> None:
            self.factor = factor

        def __call__(self, x: Tensor) -> Tensor:
            return self.factor * x

    y = torch.zeros(3)
    prepared(Doubler, "module", Forms(init=(2,), arguments=("x",), result="y"), x=torch.ones(3), y=y)()
    assert y.tolist() == [2, 2, 2]


def test_a_tree_is_made_anew_for_each_set_and_not_for_each_call() -> None:
    data: Form = {"tuple": ["x", {"dict": {"w": "x"}}, {"fields": {"n": 3, "kind": {"dtype": "float16"}}}, ["y"]]}
    seen: list[Any] = []
    kernel = PythonKernel(seen.append, style="tree", signature="", device="cpu")
    prepare = kernel.bind(bind(Forms(arguments=(data,))), declared("x", "y"))
    x, y = torch.ones(3), torch.zeros(3)
    first, second = prepare([x, y]), prepare([x, y])
    for call in (first, first, second):
        call()
    assert seen[0][0] is x
    assert seen[0][1] == {"w": x}
    assert seen[0][2] == SimpleNamespace(n=3, kind=torch.float16)
    assert seen[0][3][0] is y
    assert seen[0] is seen[1]
    assert seen[0] is not seen[2]


def test_lists_of_tensors_are_handed_over_and_taken_back() -> None:
    forms = Forms(arguments=("xs",), result={"tuple": ["ys", "z"]})
    names = declared("xs[0]", "xs[1]", "ys[0]", "ys[1]", "z")
    kernel = PythonKernel(lambda xs: ([2 * x for x in xs], sum(xs)), style="returns", signature="", device="cpu")
    xs, ys, z = [torch.ones(3), torch.ones(3)], [torch.zeros(3), torch.zeros(3)], torch.zeros(3)
    kernel.bind(bind(forms), names)([xs, ys, z])()
    assert [output.tolist() for output in (*ys, z)] == [[2] * 3] * 3


# ---- results ------------------------------------------------------------------------------------------------------


def copies(results: Results, returned: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which methods that copy are called while results are taken."""
    done: list[str] = []
    for name in ("copy_", "clone"):
        honest = getattr(Tensor, name)

        def counted(*args: Any, honest: Any = honest, name: str = name) -> Any:
            done.append(name)
            return honest(*args)

        monkeypatch.setattr(Tensor, name, counted)
    results.take(returned)
    return done


def test_a_result_that_is_the_output_itself_is_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    y = torch.zeros(2, 3)
    for same in (y, y.view(2, 3), y.reshape(6).view(2, 3)):
        assert copies(Results("y", {"y": y}), same, monkeypatch) == []


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x,  # the input itself
        lambda x: x.t().contiguous().t(),  # not contiguous
        lambda x: x[:1].expand(2, 2),  # strides of 0
        lambda x: torch.cat([x, x])[1:3],  # a part of something larger
        lambda x: torch.nn.Parameter(x + 1),
    ],
)
def test_a_result_anywhere_else_is_copied_once(
    make: Callable[[Tensor], Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y = torch.arange(4.0).view(2, 2), torch.zeros(2, 2)
    with torch.no_grad():
        expected = make(x).clone()
        assert copies(Results("y", {"y": y}), make(x), monkeypatch) == ["copy_"]
    assert torch.equal(y, expected)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda y, z: (z, y), ([2, 3], [0, 1])),
        (lambda y, z: (y, y), ([0, 1], [0, 1])),
        (lambda y, z: (y.flip(0), z), ([1, 0], [2, 3])),
    ],
)
def test_overlapping_results_are_read_first(
    make: Callable[[Tensor, Tensor], Any], expected: Sequence[list[int]]
) -> None:
    memory = torch.arange(4.0)
    y, z = memory[:2], memory[2:]
    Results({"tuple": ["y", "z"]}, {"y": y, "z": z}).take(make(y, z))
    assert (y.tolist(), z.tolist()) == expected


def laid(y: Tensor, *layouts: str) -> tuple[Results, dict[str, str]]:
    """Results that may have these layouts, and where they note which one they had."""
    chosen: dict[str, str] = {}
    return Results("y", {"y": y}, allowed={"y": layouts}, chosen=chosen), chosen


def test_a_result_in_an_allowed_layout_is_copied_as_it_lies(monkeypatch: pytest.MonkeyPatch) -> None:
    y = torch.zeros(2, 3)
    results, chosen = laid(y, "column_major")
    assert copies(results, torch.arange(6.0).view(3, 2).t(), monkeypatch) == ["copy_"]
    assert (y.view(-1).tolist(), chosen) == ([0, 1, 2, 3, 4, 5], {"y": "column_major"})


def test_a_result_in_an_allowed_layout_stays_in_new_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    y, value = torch.zeros(2, 3), torch.arange(6.0).view(3, 2).t()
    place = Returned(value.data_ptr(), y.data_ptr(), 24)
    results, chosen = laid(y, "column_major")
    assert results.take(value, lambda low, high: True) == [place]
    assert (bool(y.any()), chosen) == (False, {"y": "column_major"})
    assert Results("y", {"y": y}).take(value, lambda low, high: True) == [], "the problem allows only rows"
    assert y.tolist() == value.tolist()


def test_a_transposed_result_in_the_memory_of_the_output_is_read_first() -> None:
    y = torch.arange(6.0).view(2, 3)
    results, _ = laid(y, "column_major")
    results.take(y.view(-1).flip(0).view(3, 2).t())
    assert y.view(-1).tolist() == [5, 4, 3, 2, 1, 0]


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (1, 3, 4), (2, 1, 1, 3), (2, 0, 3), (1, 1, 1)], ids=str)
def test_the_layouts_are_those_of_torch(shape: tuple[int, ...]) -> None:
    x = torch.arange(float(math.prod(shape))).view(shape)
    channels_last = x.movedim(1, -1).contiguous().movedim(-1, 1)
    for value, name in ((x, "row_major"), (x.mT.contiguous().mT, "column_major"), (channels_last, "channels_last")):
        y = torch.zeros(shape)
        results, chosen = laid(y, "column_major", "channels_last")
        results.take(value)
        own = strides_of(chosen["y"], shape)
        assert torch.equal(y.as_strided(shape, own), x)
        assert chosen["y"] == name or strides_of(name, shape) == own or 1 in shape or 0 in shape


def test_a_transposed_output_is_read_before_it_is_written() -> None:
    y = torch.arange(10_000.0).view(100, 100)
    expected = y.t().clone()
    Results("y", {"y": y}).take(y.t())
    assert torch.equal(y, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 4)], ids=str)
def test_every_element_type_and_shape_can_be_returned(dtype: str, shape: tuple[int, ...]) -> None:
    torch_dtype: torch.dtype = getattr(torch, dtype)
    nbytes = math.prod(shape) * torch_dtype.itemsize
    value, y = (torch.full((nbytes,), byte, dtype=torch.uint8).view(torch_dtype).view(shape) for byte in (1, 0))
    Results("y", {"y": y}).take(value)
    assert torch.equal(y.view(-1).view(torch.uint8), torch.ones(nbytes, dtype=torch.uint8))


@pytest.mark.parametrize(
    ("converts", "taken"),
    [
        ("never", {"float"}),
        ("widening", {"half", "float", "double"}),
        ("always", {"half", "float", "double", "cfloat"}),
    ],
)
def test_other_dtypes_are_converted_as_the_problem_says(converts: Any, taken: Any) -> None:
    for name in ("half", "float", "double", "cfloat"):
        y, value = torch.zeros(3), torch.ones(3, dtype=getattr(torch, name))
        if name in taken:
            Results("y", {"y": y}, converts=converts).take(value)
            assert y.tolist() == [1, 1, 1]
        else:
            with pytest.raises(CallError, match="returned"):
                Results("y", {"y": y}, converts=converts).take(value)


EIGHT_BITS = {"float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "int8", "uint8"}
SMALL = {*EIGHT_BITS, "float16", "bfloat16", "float8_e8m0fnu", "int16", "uint16"}


@pytest.mark.parametrize(
    ("wanted", "held"),
    [
        ("float32", {*SMALL, "float64"}),
        ("float16", EIGHT_BITS),
        ("int32", {"int16", "int8", "uint8", "uint16"}),
        ("complex64", {*SMALL, "float32"}),
        ("bool", set()),
        ("float4_e2m1fn_x2", set()),
    ],
)
def test_a_type_is_held_by_one_that_has_all_its_numbers(wanted: str, held: set[str]) -> None:
    torch_dtype: torch.dtype = getattr(torch, wanted)
    y = torch.zeros(4 * torch_dtype.itemsize, dtype=torch.uint8).view(torch_dtype)
    for name in DTYPES:
        value = torch.zeros(4 * getattr(torch, name).itemsize, dtype=torch.uint8).view(getattr(torch, name))
        if name in held or name == wanted:
            Results("y", {"y": y}, converts="widening").take(value)
        else:
            with pytest.raises(CallError, match=f"returned {name}, `y` is {wanted}"):
                Results("y", {"y": y}, converts="widening").take(value)


def test_a_conjugate_of_the_output_is_not_the_output() -> None:
    y = torch.tensor([1 + 2j])
    Results("y", {"y": y}).take(y.conj())
    assert y.tolist() == [1 - 2j]


ONE, TWO, LIST = "y", {"tuple": ["y", "z"]}, "ys"


@pytest.mark.parametrize(
    ("form", "returned", "message"),
    [
        (ONE, None, "returned None, `y` is a tensor of float32"),
        (ONE, 3.5, "returned float, `y` is a tensor of float32"),
        (ONE, (torch.ones(3),), "returned tuple, `y` is a tensor of float32"),
        (ONE, torch.ones(3, dtype=torch.float16), "returned float16, `y` is float32"),
        (ONE, torch.ones(3, dtype=torch.float64), "returned float64, `y` is float32"),
        (ONE, torch.ones(1), "returned the shape [1], `y` has [3]"),
        (ONE, torch.ones(1, 3), "returned the shape [1, 3], `y` has [3]"),
        (ONE, torch.ones(3, device="meta"), "returned a tensor on meta, `y` is on cpu"),
        (TWO, torch.ones(2, 3), "what it returned should be a tuple of 2, and is Tensor"),
        (TWO, None, "what it returned should be a tuple of 2, and is NoneType"),
        (TWO, (torch.ones(3),), "what it returned should be a tuple of 2, and is 1 values"),
        (TWO, (torch.ones(3), None), "returned None, `z` is a tensor of int64"),
        (TWO, (torch.ones(3), torch.ones(2)), "returned float32, `z` is int64"),
        ({"dict": {"out": "y"}}, {"y": torch.ones(3)}, "what it returned lacks 'out'"),
        (LIST, torch.ones(2, 3), "returned Tensor, `ys` is a list of 2"),
        (LIST, [torch.ones(3)], "returned 1 values, `ys` is a list of 2"),
        (LIST, [torch.ones(3), torch.ones(4)], "returned the shape [4], `ys[1]` has [3]"),
    ],
)
def test_a_wrong_result_gets_one_line_and_nothing_is_written(form: Form, returned: Any, message: str) -> None:
    y, z, ys = torch.zeros(3), torch.zeros(2, dtype=torch.int64), [torch.zeros(3), torch.zeros(3)]
    with pytest.raises(CallError) as refused:
        Results(form, {"y": y, "z": z, "ys": ys}).take(returned)
    assert str(refused.value) == message
    failed = describe(refused.value, building=False)
    assert (failed.outcome, failed.message, failed.traceback) == ("runtime_error", message, "")
    assert not any(output.any() for output in (y, z, *ys))


# ---- what cannot be called ----------------------------------------------------------------------------------------


class Two(torch.nn.Module):
    def __init__(self, *given: int) -> None:
        super().__init__()

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return x + y


@pytest.mark.parametrize(
    ("entry", "style", "why"),
    [
        (lambda x, y: None, "returns", "missing a required argument: 'y'"),
        (lambda: None, "returns", "too many positional arguments"),
        (lambda x: x, "module", "too many positional arguments"),
        (lambda x: x, "writes", "too many positional arguments"),
        (Two, "module", "missing a required argument: 'y'"),
    ],
)
def test_wrong_parameters_get_the_right_signature(entry: Callable[..., Any], style: Style, why: str) -> None:
    forms = Forms(init=(1, 2), arguments=("x",), result="y")
    with pytest.raises(CallError) as refused:
        prepared(entry, style, forms, x=torch.ones(3), y=torch.ones(3))
    assert str(refused.value) == f"cannot be called as entry(x) -> y ({why})"


def test_a_wrapper_is_judged_by_its_own_arguments_and_a_builtin_is_called() -> None:
    def inner(x: Tensor, factor: int) -> Tensor:
        return factor * x

    @functools.wraps(inner)
    def outer(x: Tensor) -> Tensor:
        return inner(x, 3)

    for entry, expected in ((outer, 3), (torch.neg, -1)):  # a builtin has no signature
        y = torch.zeros(3)
        prepared(entry, "returns", RETURNS, x=torch.ones(3), y=y)()
        assert y.tolist() == [expected] * 3


def test_an_instance_that_cannot_be_called_is_refused() -> None:
    with pytest.raises(CallError, match="dict is not callable; it is called as entry"):
        prepared(dict, "module", RETURNS, x=torch.ones(3), y=torch.ones(3))


@pytest.mark.parametrize(
    ("style", "message"),
    [
        ("writes", "no function `entry` is defined (found: main); it is called as entry(x) -> y"),
        ("module", "no class `entry` is defined (found: Other); it is called as entry(x) -> y"),
    ],
)
def test_a_file_without_the_entry_learns_how_it_would_be_called(style: Style, message: str, tmp_path: Any) -> None:
    path = tmp_path / "submission.py"
    path.write_text("def main(): pass\nclass Other: pass\n")
    command = commands.Build("py", ("entry",), "", style=style, signature="entry(x) -> y")
    with pytest.raises(CompileError) as refused:
        import_python(path, command, RunnerCpu())
    assert refused.value.message == message


@pytest.mark.parametrize("name", DTYPES)
def test_a_result_of_any_type_goes_into_an_output_with_strides(name: str) -> None:
    dtype, size = getattr(torch, name), DTYPES[name].size_bytes
    raw = torch.arange(6 * size, dtype=torch.uint8) % 2
    value = raw.view(dtype).view(3, 2)
    memory = torch.zeros(2 * 4 * size, dtype=torch.uint8).view(dtype)
    y = memory.as_strided((3, 2), (1, 4))
    Results("y", {"y": y}).take(value)
    assert same_bits(y, value)
    assert not memory.view(torch.uint8).view(2, 4, size)[:, 3].any(), "what is between the elements was written"


def test_packed_results_in_each_others_memory_are_read_first() -> None:
    memory = torch.arange(8, dtype=torch.uint8)
    y, z = (memory[first : first + 4].view(torch.float4_e2m1fn_x2) for first in (0, 4))
    Results({"tuple": ["y", "z"]}, {"y": y, "z": z}).take((z, y))
    assert memory.tolist() == [4, 5, 6, 7, 0, 1, 2, 3]


def everything(low: int, high: int) -> bool:
    return True


def test_results_in_new_memory_stay_there() -> None:
    y, z, new = torch.zeros(2, 3), torch.zeros(3), torch.ones(2, 3)
    results = Results({"tuple": ["y", "z"]}, {"y": y, "z": z})
    left = results.take((new, torch.ones(3)), lambda low, high: low == new.data_ptr())
    assert left == [Returned(source=new.data_ptr(), target=y.data_ptr(), nbytes=24)]
    assert (y.sum(), z.sum()) == (0, 3)


@pytest.mark.parametrize(
    "make",
    [lambda y: y, lambda y: y.new_ones(3, 3).t(), lambda y: torch.full_like(y, 1j).conj()],
    ids=["the output itself", "transposed", "a conjugate"],
)
def test_only_a_result_that_is_laid_out_like_its_output_stays(make: Callable[[Tensor], Tensor]) -> None:
    y = torch.zeros(3, 3, dtype=torch.complex64)
    value = make(y)
    expected = value.clone()
    assert Results("y", {"y": y}).take(value, everything) == []
    assert torch.equal(y, expected)


def test_a_result_with_other_bytes_between_its_elements_is_copied() -> None:
    whole = torch.zeros(2, 8)
    assert Results("y", {"y": whole[:, :6]}).take(torch.ones(2, 8)[:, :6], everything) == []
    assert whole.sum(1).tolist() == [6, 6]


def test_of_two_results_in_the_same_memory_one_is_copied() -> None:
    y, z, new = torch.zeros(3), torch.zeros(3), torch.arange(4.0)
    results = Results({"tuple": ["y", "z"]}, {"y": y, "z": z})
    [left] = results.take((new[:3], new[1:]), everything)
    assert (left.source, left.target) == (new.data_ptr(), y.data_ptr())
    assert (y.tolist(), z.tolist()) == ([0, 0, 0], [1, 2, 3])


def test_the_stride_of_a_dimension_of_one_says_nothing() -> None:
    y, value = torch.zeros(3, 1), torch.ones(3, 1).as_strided((3, 1), (1, 7))
    assert len(Results("y", {"y": y}).take(value, everything)) == 1


def test_a_converted_result_is_new() -> None:
    y, value = torch.zeros(3), torch.ones(3, dtype=torch.half)
    [left] = Results("y", {"y": y}, converts="widening").take(value, everything)
    assert left.source not in (value.data_ptr(), y.data_ptr())


def test_results_without_elements_are_not_left_in_place() -> None:
    assert Results("y", {"y": torch.zeros(0)}).take(torch.ones(0), everything) == []
