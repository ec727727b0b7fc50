"""What `kernelmark export` writes and refuses, without running a submission."""

from __future__ import annotations

import ast
import hashlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from torch.utils import cpp_extension

from harness.errors import UsageError
from harness.problem import Problem, load
from harness.submission import Submission
from kernelmark.interop.exporting import FORMATS, export
from kernelmark.interop.exporting.adapter import literal, python
from tests.grading import written

TOML = """
title = "Everything that the call of an imported problem can have"
entry = "{entry}"
parameters = ["rows", "cols", "count", "pitch", "dtype", "out"]
tensors = [
    {{ name = "x", role = "input", shape = ["rows", "cols"], strides = ["1", "rows"], dtype = "dtype" }},
    {{ name = "parts", role = "input", shape = [3], dtype = "float32", count = "count" }},
    {{ name = "y", role = "output", shape = ["rows", "2 * cols"], dtype = "out" }},
    {{ name = "z", role = "output", shape = ["rows"], dtype = "int32" }},
]
call = {call}
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
[foreign]
form = "{project}"
files = [{{ name = "task.py", path = "reference.py", shown = true, sha256 = "{sha256}" }}]
"""
CALLS = {
    "popcorn": '{ style = "tree", data = { tuple = ["x", { dict = { "p{index}" = "parts" } }, '
    '{ fields = { z = "z", out = { param = "out" } } }] }, result = { dict = { y = "y", z = "z" } } }',
    "kernelbench": '{ style = "module", init = [3, { text = "mean" }], arguments = ["x", 1, "parts"] }',
}
ENTRIES = {"popcorn": "custom_kernel", "kernelbench": "ModelNew"}
PROJECTS = {"popcorn": "gpu-mode", "kernelbench": "kernelbench"}
REFERENCE = "def reference(x, parts): return x[:, 0], x[:, 1]\n"
KERNELS = {"popcorn": "def custom_kernel(data): return {}\n", "kernelbench": "class ModelNew: ...\n"}
WORD = "kernelbot refuses each file that has the word 'stream'; use the default stream alone"


def problem(folder: Path, form: str, entry: str | None = None, **more: str) -> Problem:
    keys = {"call": CALLS[form], "project": PROJECTS[form], "entry": entry or ENTRIES[form]} | more
    keys["sha256"] = hashlib.sha256(REFERENCE.encode()).hexdigest()
    return written(folder / "mix", TOML.format(**keys), REFERENCE)


def kernel(source: str, language: str = "py") -> Submission:
    return Submission.of(source, language, author="tester")


@pytest.mark.parametrize(
    ("text", "value"),
    [("ceil_div(n, 4) * sizeof(float16)", 4), ("min(n, 3) + max(1, n)", 8), ("-n ** 2", -25), ("n % 3", 2)],
)
def test_an_expression_means_the_same_in_python(text: str, value: int) -> None:
    assert eval(python(text), {"n": 5}) == value  # noqa: S307


@pytest.mark.parametrize("form", FORMATS)
def test_python_stays_as_it_is(form: str, tmp_path: Path) -> None:
    text = export(problem(tmp_path / "1", form), kernel(KERNELS[form]), form).text
    assert text.endswith(f"\n{KERNELS[form]}")
    assert all(line.startswith("#") for line in text.removesuffix(KERNELS[form]).splitlines())
    text = export(problem(tmp_path / "2", form, entry="mine"), kernel("mine = print\n"), form).text
    assert text.endswith(f"\nmine = print\n\n\n{ENTRIES[form]} = mine\n")


@pytest.mark.parametrize("form", FORMATS)
def test_parameters_without_a_shape_come_from_a_case(form: str, tmp_path: Path) -> None:
    mix, entry = problem(tmp_path, form), ENTRIES[form]
    source = kernel(f"void {entry}_float16_float32();", "cu")
    why = "mix: the parameter `pitch` cannot be read off the shape of an input; fix it as in .* --case 'large'"
    with pytest.raises(UsageError, match=why):
        export(mix, source, form)
    with pytest.raises(UsageError, match="--case: the case draws the parameter `pitch`"):
        export(mix, source, form, case="drawn")
    text = export(mix, source, form, case="large").text
    assert "\n    pitch = 2\n" in text.replace("        ", "    ")
    arguments = "void* x, void** parts, void* y, void* z, int64_t rows, int64_t cols, int64_t count, int64_t pitch"
    functions = [f"{entry}_{dtype}_float32" for dtype in ("float16", "float32")]
    declared = [line for line in text.splitlines() if line.startswith('extern "C"')]
    assert declared == [f'extern "C" void {name}({arguments}, void*);' for name in functions]
    assert f"(torch.float16, torch.float32,): _library.{functions[0]}" in text
    on_cpu = export(mix, kernel(f"void {entry}();", "cpp"), form, case="large")
    assert on_cpu.warnings[-1].startswith("C++ runs on the CPU")
    on_gpu = export(mix, source, form, case="large")
    assert [warning[:45] for warning in on_gpu.warnings] == (
        ["a .cu or .cpp does not get the model's weight"] if form == "kernelbench" else []
    )
    assert export(mix, kernel(KERNELS[form]), form).warnings == (), "Python draws the same weights"


@pytest.mark.parametrize("form", FORMATS)
def test_a_compiled_function_gets_addresses_and_sizes(form: str, tmp_path: Path) -> None:
    text = export(problem(tmp_path, form), kernel(f"void {ENTRIES[form]}();", "cu"), form, case="large").text
    calls: list[tuple[Any, ...]] = []
    written = ast.parse(text)
    # Without the imports and the compiler: what calls the library is run with one that notes its arguments.
    written.body = [node for node in written.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    functions = {(torch.float16, torch.float32): lambda *arguments: calls.append(arguments)}
    names: dict[str, Any] = {"torch": torch, "SimpleNamespace": SimpleNamespace, "_functions": functions}
    exec(compile(written, "exported", "exec"), names)
    x, parts = torch.rand(3, 4, dtype=torch.float16), [torch.ones(3), torch.ones(6)[::2]]
    z = torch.zeros(3, dtype=torch.int32)
    if form == "popcorn":
        data = (x, {"p0": parts[0], "p1": parts[1], "other": 1}, SimpleNamespace(z=z, out=torch.float32))
        result = names["custom_kernel"](data)
        assert result["z"] is z
        result = (result["y"], result["z"])
    else:
        names["torch"] = SimpleNamespace(**vars(torch))
        names["torch"].cuda = SimpleNamespace(current_stream=lambda: SimpleNamespace(cuda_stream=7))
        result = names["ModelNew"](3, "mean")(x, 1, parts)
    assert [(y.shape, y.dtype) for y in result] == [((3, 8), torch.float32), ((3,), torch.int32)]
    [(at_x, at_parts, *outputs)] = [call[:4] for call in calls]
    assert at_x != x.data_ptr(), "it was laid out in columns"
    assert (at_parts[0], len(at_parts)) == (parts[0].data_ptr(), 2)
    assert at_parts[1] != parts[1].data_ptr(), "it was not contiguous"
    assert outputs == [y.data_ptr() for y in result]
    assert [call[4:] for call in calls] == [(3, 4, 2, 2, 0 if form == "popcorn" else 7)]


@pytest.mark.parametrize(("capability", "flags"), [((9, 0), "sm_90a"), ((8, 6), "sm_86")])
@pytest.mark.parametrize("form", FORMATS)
def test_cuda_is_compiled_for_exactly_its_device(
    form: str, capability: tuple[int, int], flags: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise torch leaves out what only one architecture has, such as wgmma."""
    text = export(problem(tmp_path, form), kernel(f"void {ENTRIES[form]}();", "cu"), form, case="large").text
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "")
    monkeypatch.delenv("TORCH_CUDA_ARCH_LIST")  # and again at the end
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
    compiled: list[list[str]] = []

    def load_inline(**_: Any) -> Any:
        compiled.append(cpp_extension._get_cuda_arch_flags())  # what torch adds to nvcc's arguments
        return Mock()

    monkeypatch.setattr(cpp_extension, "load_inline", load_inline)
    exec(compile(text, "exported", "exec"), {})
    assert [flag.rpartition("=")[2] for [flag] in compiled] == [flags]


@pytest.mark.parametrize("source", ["plain\n", 'has """ in it', "ends in \\", 'ends in "', "a\r\nb", r"\n \x ü"])
def test_embedded_source_is_what_it_was(source: str) -> None:
    assert ast.literal_eval(literal(source)) == source


def test_the_header_names_a_leaderboard_and_gpus_once(tmp_path: Path) -> None:
    mix = problem(tmp_path, "popcorn")
    own = "#!POPCORN leaderboard mine\n#!POPCORN gpu H100\n"
    exported = export(mix, kernel(own + KERNELS["popcorn"]), "popcorn", leaderboard="other", gpus=["A100"])
    assert [line for line in exported.text.splitlines() if "POPCORN" in line] == own.splitlines()
    assert exported.warnings == ()
    cuda = kernel(f"{own.replace('#', '//')}void custom_kernel();", "cu")
    exported = export(mix, cuda, "popcorn", case="large", leaderboard="other")
    assert exported.text.splitlines()[:2] == ["#!POPCORN leaderboard mine", "#!POPCORN gpus H100"]
    assert exported.warnings == ()


@pytest.mark.parametrize(
    ("form", "source", "given", "message"),
    [
        ("popcron", "", {}, "--form: 'popcron' is not known; did you mean `popcorn`?"),
        ("popcorn", "", {"case": "smal"}, "--case: 'smal' is not a test or benchmark of mix; did you mean `sm"),
        ("popcorn", "", {"leaderboard": "a b"}, "--leaderboard: 'a b' is not a name; give one word"),
        ("kernelbench", "", {"leaderboard": "a"}, "--leaderboard: kernelbench has none; leave it out"),
        ("kernelbench", "", {"gpus": ["H100"]}, "--gpu: kernelbench has none; leave it out"),
        ("popcorn", "def mix(:\n", {}, "submission.py:1 is not Python (invalid syntax)"),
        ("popcorn", "def max(): pass\n", {}, "submission.py: no `custom_kernel` is defined at the top of the file; it"),
        ("popcorn", f"# a Stream\n{KERNELS['popcorn']}", {}, f"submission.py:1: {WORD}"),
    ],
)
def test_bad_exports_get_one_line(
    form: str, source: str, given: dict[str, object], message: str, tmp_path: Path
) -> None:
    mix = problem(tmp_path, form if form in FORMATS else "popcorn")
    with pytest.raises(UsageError) as error:
        export(mix, kernel(source or KERNELS.get(form, "")), form, **given)  # type: ignore[arg-type]  # keywords
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("form", FORMATS)
def test_a_header_of_the_submission_is_refused(form: str, tmp_path: Path) -> None:
    source = f'#include <vector>\n// #include "a.h"\n # include "tile.cuh"\nvoid {ENTRIES[form]}();'
    with pytest.raises(UsageError, match=r'^submission\.cu needs "tile.cuh", but what is exported is one file; put'):
        export(problem(tmp_path, form), kernel(source, "cu"), form, case="large")


def test_only_problems_of_the_project_that_has_the_form_are_exported(tmp_path: Path) -> None:
    softmax = load(Path(__file__).resolve().parents[2] / "problems" / "softmax")
    with pytest.raises(UsageError, match=r"softmax was not imported from gpu-mode, .* `kernelmark import gpu-mode`"):
        export(softmax, kernel("def softmax(x, y): ...\n"), "popcorn")
    mix = problem(tmp_path / "1", "popcorn")
    with pytest.raises(UsageError, match="mix was not imported from kernelbench"):
        export(mix, kernel(KERNELS["popcorn"]), "kernelbench")
    mix = problem(tmp_path / "2", "kernelbench", call='{ style = "returns" }')
    with pytest.raises(UsageError, match="mix is not called as it was when it was imported; import it again"):
        export(mix, kernel(KERNELS["kernelbench"]), "kernelbench")


def test_a_name_that_the_file_needs_is_refused(tmp_path: Path) -> None:
    mix = problem(tmp_path, "popcorn")
    text = (mix.directory / "problem.toml").read_text().replace('"x"', '"torch"')
    (mix.directory / "problem.toml").write_text(text)
    with pytest.raises(UsageError, match="an argument is called `torch`"):
        export(load(mix.directory), kernel("void custom_kernel();", "cpp"), "popcorn", case="large")
