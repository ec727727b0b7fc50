"""What `kernelmark export` writes and refuses, without running it."""

from __future__ import annotations

import ast
import hashlib
import re
import runpy
from pathlib import Path

import pytest
import torch

from harness.errors import UsageError
from harness.problem import Problem, load
from harness.submission import Submission
from kernelmark.authoring.expressions import python, solved
from kernelmark.interop.exporting import FORMS, export
from kernelmark.interop.exporting.library import literal
from kernelmark.interop.exporting.parameters import solutions

TOML = """
title = "Everything that a call can have"
entry = "mix"
parameters = ["rows", "cols", "count", "pitch", "dtype", "out"]
tensors = [
    {{ name = "x", role = "input", shape = ["rows", "{cols}"], strides = ["1", "rows"], dtype = "dtype" }},
    {{ name = "parts", role = "input", shape = ["index + 1"], dtype = "float32", count = "count" }},
    {{ name = "state", role = "inout", shape = ["cols"], dtype = "int32", fill = {{ kind = "zeros" }} }},
    {{ name = "y", role = "output", shape = ["rows"], strides = ["{pitch}"], dtype = "out" }},
]
scalars = [
    {{ name = "alpha", dtype = "float64", value = "1 / sqrt(cols)" }},
    {{ name = "number", dtype = "int64", value = "ceil_div(cols, 4)" }},
]
cost = {{ bytes = "1", flops = "0" }}
benchmarks = [
    {{ name = "large", params = {{ rows = 5, cols = 8, count = 2, pitch = 2, dtype = "float32", out = "float32" }} }},
]
[[tests]]
name = "small"
params = {{ rows = 3, cols = 4, count = 2, pitch = 1, dtype = "float16", out = "float32" }}
[[tests]]
name = "drawn"
params = {{ rows = 3, cols = 4, count = 2, dtype = "float16", out = "float32" }}
draw = {{ pitch = {{ low = 1, high = 3 }} }}
"""
REFERENCE = "def reference(x, parts, state, alpha, number): return x[:, 0]\n"
FOREIGN = """
[foreign]
form = "gpu-mode"
files = [{{ name = "task.py", path = "reference.py", shown = true, sha256 = "{}" }}]
"""
KERNEL = "def mix(x, parts, state, y, alpha, number): y.copy_(x[:, 0] * alpha)\n"
WORD = "kernelbot refuses each file that has the word 'stream'; use the default stream alone"
CUDA = 'extern "C" void mix_float16_float32(...) {}\nextern "C" void mix_float32_float32(...) {}\n'


def problem(folder: Path, cols: str = "cols", pitch: str = "pitch", more: str = "") -> Problem:
    directory = folder / "mix"
    directory.mkdir(parents=True)
    (directory / "problem.toml").write_text(TOML.format(cols=cols, pitch=pitch) + more)
    (directory / "reference.py").write_text(REFERENCE)
    return load(directory)


def kernel(source: str, language: str = "py") -> Submission:
    return Submission.of(source, language, author="tester")


@pytest.mark.parametrize(
    ("text", "name", "solution"),
    [
        ("n", "n", "S"),
        ("2 * n", "n", "(S // (2))"),
        ("n + k", "n", "(S - (k))"),
        ("k - n", "n", "((k) - S)"),
        ("3 * (n - 1)", "n", "((S // (3)) + (1))"),
        ("n // 2", "n", None),
        ("n * n", "n", None),
        ("ceil_div(n, 2)", "n", None),
    ],
)
def test_an_expression_is_solved_where_there_is_one_solution(text: str, name: str, solution: str | None) -> None:
    assert solved(text, name, "S") == solution
    if solution is not None:
        values = {"n": 6, "k": 10}
        values["S"] = eval(text, {}, values)  # noqa: S307 - the texts are above
        assert eval(solution, {}, values) == 6  # noqa: S307


@pytest.mark.parametrize(
    ("text", "value"),
    [("ceil_div(n, 4) * sizeof(float16)", 4), ("min(n, 3) + max(1, n)", 8), ("-n ** 2", -25), ("n % 3", 2)],
)
def test_an_expression_means_the_same_in_python(text: str, value: int) -> None:
    assert eval(python(text), {"n": 5}) == value  # noqa: S307


def test_parameters_are_read_off_what_is_given(tmp_path: Path) -> None:
    found = {name: text for name, (text, _) in solutions(problem(tmp_path), {"x", "parts", "state"}, {}).items()}
    assert found == {"dtype": "x.dtype", "rows": "x.shape[0]", "cols": "x.shape[1]", "count": "len(parts)"}


def test_a_parameter_that_is_read_through_another_comes_after_it(tmp_path: Path) -> None:
    found = solutions(problem(tmp_path, cols="pitch * rows"), {"x", "parts", "state"}, {})
    assert found["pitch"] == ("(x.shape[1] // (rows))", frozenset({"rows"}))
    text = export(problem(tmp_path / "2", cols="pitch * rows"), kernel(KERNEL), "popcorn", case="large").text
    assert text.index("rows = x.shape[0]") < text.index("pitch = (x.shape[1] // (rows))")


@pytest.mark.parametrize("form", FORMS)
def test_what_no_shape_tells_comes_from_a_case(form: str, tmp_path: Path) -> None:
    mix = problem(tmp_path)
    why = "mix: the parameter `pitch` cannot be read off the shape of an input; fix it as in .* --case 'large'"
    with pytest.raises(UsageError, match=why):
        export(mix, kernel(KERNEL), form)
    with pytest.raises(UsageError, match="--case: the case draws the parameter `pitch`"):
        export(mix, kernel(KERNEL), form, case="drawn")
    text = export(mix, kernel(KERNEL), form, case="large").text
    assert re.search(r"^ +pitch = 2$", text, re.MULTILINE)
    assert re.search(r"^ +out = torch\.float32$", text, re.MULTILINE)
    assert "count = " not in text, "nothing needs it"
    ast.parse(text)


@pytest.mark.parametrize("form", FORMS)
def test_tensors_are_laid_out_and_inputs_stay(form: str, tmp_path: Path) -> None:
    kernel_of_strides = """
def mix(x, parts, state, y, alpha, number):
    assert x.stride() == (1, 3) and y.stride() == (2,) and all(each.is_contiguous() for each in parts)
    y.copy_(x[:, 0] * alpha + sum(each.sum() for each in parts))
    state.add_(number)
"""
    file = tmp_path / "exported.py"
    file.write_text(export(problem(tmp_path), kernel(kernel_of_strides), form, case="large").text)
    module = runpy.run_path(str(file))
    x, parts, state = torch.rand(3, 16), [torch.ones(1), torch.ones(4)[::2]], torch.zeros(16, dtype=torch.int32)
    if form == "popcorn":
        y = module["custom_kernel"]((x, parts, state))
    else:
        state_after, y = module["ModelNew"]()(x, parts, state)
        assert torch.equal(state, torch.zeros(16)), "KernelBench uses it again"
        state = state_after
    assert torch.allclose(y, x[:, 0] / 4 + 3)
    assert torch.equal(state, torch.full((16,), 4))


@pytest.mark.parametrize("form", FORMS)
def test_the_c_functions_are_declared_as_the_documents_say(form: str, tmp_path: Path) -> None:
    text = export(problem(tmp_path), kernel(CUDA, "cu"), form, case="large").text
    ast.parse(text)
    arguments = "void* x, void** parts, void* state, void* y, double alpha, int64_t number"
    arguments += ", int64_t rows, int64_t cols, int64_t count, int64_t pitch, void*"
    declared = re.findall(r'^extern "C" void (\w+)\((.*)\);$', text, re.MULTILINE)
    assert declared == [("mix_float16_float32", arguments), ("mix_float32_float32", arguments)]
    assert "(torch.float16, torch.float32,): _library.mix_float16_float32" in text
    last = "0" if form == "popcorn" else "torch.cuda.current_stream().cuda_stream"
    call = (
        "_functions[dtype, out,](x.data_ptr(), [_each.data_ptr() for _each in parts], state.data_ptr(), y.data_ptr(), "
    )
    assert f"{call}alpha, number, rows, cols, count, pitch, {last})" in text


@pytest.mark.parametrize("source", ["plain\n", 'has """ in it', "ends in \\", 'ends in "', "a\r\nb", r"\n \x ü"])
def test_embedded_source_is_what_it_was(source: str) -> None:
    assert ast.literal_eval(literal(source)) == source


def test_what_kernelbot_would_refuse_is_said(tmp_path: Path) -> None:
    mix = problem(tmp_path)
    told = export(mix, kernel(KERNEL), "popcorn", case="large").warnings
    assert told == ("the file names no leaderboard: give --leaderboard, or name one when you hand it in",)
    own = "#!POPCORN leaderboard mine\n#!POPCORN gpu H100\n"
    exported = export(mix, kernel(own + KERNEL), "popcorn", case="large", leaderboard="other", gpus=["A100"])
    assert [line for line in exported.text.splitlines() if "POPCORN" in line] == own.splitlines()
    assert exported.warnings == ()


@pytest.mark.parametrize(
    ("form", "source", "given", "said"),
    [
        ("popcron", KERNEL, {}, "--form: 'popcron' is not known; did you mean `popcorn`?"),
        ("popcorn", KERNEL, {"case": "smal"}, "--case: 'smal' is not a test or benchmark of mix; did you mean `sm"),
        ("popcorn", KERNEL, {"leaderboard": "a b"}, "--leaderboard: 'a b' is not a name; give one word"),
        ("kernelbench", KERNEL, {"leaderboard": "a"}, "--leaderboard: kernelbench has none; leave it out"),
        ("kernelbench", KERNEL, {"gpus": ["H100"]}, "--gpu: kernelbench has none; leave it out"),
        ("popcorn", "def mix(:\n", {}, "submission.py:1: is not Python (invalid syntax)"),
        (
            "popcorn",
            "def max(): pass\n",
            {},
            "submission.py: no `mix` is defined at the top of the file; it is called as",
        ),
        ("popcorn", f"# a Stream\n{KERNEL}", {}, f"submission.py:1: {WORD}"),
        ("kernelbench", f"from task import A\n{KERNEL}", {}, "submission.py:1: imports 'task', which is not there"),
    ],
)
def test_what_cannot_be_exported_is_one_line(
    form: str, source: str, given: dict[str, object], said: str, tmp_path: Path
) -> None:
    mix = problem(tmp_path, more=FOREIGN.format(hashlib.sha256(REFERENCE.encode()).hexdigest()))
    with pytest.raises(UsageError) as told:
        export(mix, kernel(source), form, **{"case": "large"} | given)  # type: ignore[arg-type]  # a table of keywords
    assert str(told.value).startswith(said)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("form", FORMS)
def test_names_of_the_submission_keep_their_meaning(form: str, tmp_path: Path) -> None:
    before = '"""\nimport torch\n"""\n_entry = _model = _laid_out = _data = 1\n'
    added = export(problem(tmp_path), kernel(before + KERNEL), form, case="large").text.partition(KERNEL)[2]
    tree = ast.parse(added).body
    names = {
        each.id for node in tree if isinstance(node, ast.Assign) for each in node.targets if isinstance(each, ast.Name)
    }
    names |= {node.name for node in tree if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    assert {name for name in names if not name.startswith("_kernelmark_")} <= {"custom_kernel", "ModelNew"}
    assert "\nimport torch\n" in added, "the line in the docstring imports nothing"


def test_a_name_that_the_file_needs_is_refused(tmp_path: Path) -> None:
    mix = problem(tmp_path)
    text = (mix.directory / "problem.toml").read_text().replace('"state"', '"torch"')
    (mix.directory / "problem.toml").write_text(text)
    with pytest.raises(UsageError, match="an argument is called `torch`"):
        export(load(mix.directory), kernel(KERNEL), "popcorn", case="large")
