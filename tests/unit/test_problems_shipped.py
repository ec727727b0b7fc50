"""The four problems of this repository, and every kernel in `reference/` against them.

Run as a program, it grades the Triton kernels in Triton's interpreter and prints JSON: the interpreter is chosen by an
environment variable that Triton reads at import, so it needs a process of its own.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from harness.compare import check_output
from harness.problem import Case, Problem, ResolvedCase, load
from harness.problem.fill import fill
from harness.problem.reference import Reference

ROOT = Path(__file__).resolve().parents[2]
SLUGS = ("gelu", "matmul", "softmax", "vector_add")
CPP = ("softmax", "vector_add")


def _problem(slug: str) -> Problem:
    return load(ROOT / "problems" / slug)


def _cases(problem: Problem, device: str) -> list[Case]:
    return [case for case in problem.tests + problem.benchmarks if device in case.devices]


def _module(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"shipped_{path.parent.name}_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _tensors(case: ResolvedCase) -> dict[str, torch.Tensor]:
    """Filled inputs, and outputs that hold NaN."""
    generator = torch.Generator().manual_seed(len(case.name))
    tensors = {t.name: torch.full(t.shape, torch.nan, dtype=getattr(torch, t.dtype)) for t in case.tensors}
    for spec in case.tensors:
        if spec.role != "output":
            fill(tensors[spec.name], spec.fill, generator)
    return tensors


def _flaw(problem: Problem, case: Case, run: Callable[[ResolvedCase, dict[str, torch.Tensor]], object]) -> str:
    """Why a kernel is wrong in one case; nothing if it is right."""
    resolved = problem.resolve(case)
    tensors = _tensors(resolved)
    reference = Reference.load(problem)
    inputs = {t.name: tensors[t.name] for t in resolved.tensors if t.role == "input"}
    truth = reference({name: t.double() for name, t in inputs.items()}, {}, resolved)
    honest = reference(inputs, {}, resolved)
    run(resolved, tensors)
    for name, right in truth.items():
        own = honest[name]
        assert isinstance(right, torch.Tensor)
        assert isinstance(own, torch.Tensor)
        check = check_output(name, tensors[name], right, own, problem.tolerance)
        if not check.correct:
            return f"{case.name}: {name}: largest error {check.max_error}, RMS {check.rms_error}"
    return ""


@pytest.mark.parametrize("slug", SLUGS)
def test_is_graded_on_both_devices_and_has_hidden_cases(slug: str) -> None:
    problem = _problem(slug)
    for device in ("cpu", "cuda"):
        assert 2 <= sum(device in case.devices for case in problem.benchmarks) <= 4
        assert any(case.hidden for case in problem.tests if device in case.devices)
    assert {p.name for p in problem.directory.iterdir()} >= {"problem.toml", "reference.py", "README.md"}


@pytest.mark.parametrize("slug", SLUGS)
def test_the_cpu_is_spared_what_the_interpreter_cannot_do(slug: str) -> None:
    for case in _cases(_problem(slug), "cpu"):
        resolved = _problem(slug).resolve(case)
        assert resolved.minimum_bytes <= 1 << 20
        assert resolved.minimum_flops <= 20_000_000
        assert all(t.dtype != "bfloat16" for t in resolved.tensors)


@pytest.mark.parametrize("slug", SLUGS)
def test_eager_kernel_is_right(slug: str) -> None:
    problem, entry = _problem(slug), getattr(_module(ROOT / "reference" / slug / "eager.py"), slug)
    for case in _cases(problem, "cpu"):
        assert _flaw(problem, case, lambda resolved, t: entry(*(t[s.name] for s in resolved.tensors))) == ""


@pytest.mark.parametrize("slug", CPP)
def test_cpp_kernel_is_right(slug: str, tmp_path: Path) -> None:
    library = tmp_path / "kernel.so"
    source = ROOT / "reference" / slug / "cpp.cpp"
    subprocess.run(["g++", "-shared", "-fPIC", "-O3", "-Wall", "-Werror", "-o", library, source], check=True)
    problem, code = _problem(slug), ctypes.CDLL(str(library))

    def run(resolved: ResolvedCase, tensors: dict[str, torch.Tensor]) -> None:
        numbers = [v for name in problem.parameters if isinstance(v := resolved.params[name], int)]
        pointers = [ctypes.c_void_p(tensors[s.name].data_ptr()) for s in resolved.tensors]
        getattr(code, resolved.symbol)(*pointers, *map(ctypes.c_int64, numbers))

    for case in _cases(problem, "cpu"):
        assert _flaw(problem, case, run) == ""


def test_triton_kernels_are_right_in_the_interpreter() -> None:
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, __file__]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    expected = [[slug, case.name] for slug in SLUGS for case in _cases(_problem(slug), "cpu")]
    assert [r["case"] for r in results] == expected
    assert [r["flaw"] for r in results if r["flaw"]] == []


def _by_halves(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
    """Sums in the dtype of the operands, one product after another."""
    c.zero_()
    for column, row in zip(a.unbind(1), b.unbind(0), strict=True):
        c += torch.outer(column, row)


def _unshifted_softmax(x: torch.Tensor, y: torch.Tensor) -> None:
    y.copy_(x.exp() / x.exp().sum(1, keepdim=True))


_WRONG: list[tuple[str, str, Callable[..., object]]] = [
    ("vector_add", "adds in float16", lambda x, y, out: out.copy_(x.half() + y.half())),
    ("vector_add", "skips the last element", lambda x, y, out: out[:-1].copy_((x + y)[:-1])),
    ("softmax", "does not subtract the maximum", _unshifted_softmax),
    ("softmax", "computes in bfloat16", lambda x, y: y.copy_(x.bfloat16().softmax(-1))),
    ("softmax", "gives 0 for masked rows", lambda x, y: y.copy_(x.softmax(-1).nan_to_num(0.0))),
    ("gelu", "is the erf form", lambda x, y: y.copy_(torch.nn.functional.gelu(x))),
    (
        "gelu",
        "rounds x to bfloat16",
        lambda x, y: torch.ops.aten.gelu.out(x.bfloat16().float(), approximate="tanh", out=y),
    ),
    (
        "matmul",
        "rounds operands to bfloat16",
        lambda a, b, c: c.copy_(a.bfloat16().to(a.dtype) @ b.bfloat16().to(a.dtype)),
    ),
    ("matmul", "sums in the operands' dtype", _by_halves),
]


@pytest.mark.parametrize(("slug", "flaw", "entry"), _WRONG)
def test_a_wrong_kernel_is_caught(slug: str, flaw: str, entry: Callable[..., object]) -> None:
    """The cases that every device runs catch it: no wrong kernel passes for want of a GPU."""
    problem = _problem(slug)
    caught = []
    for case in _cases(problem, "cpu"):
        if _flaw(problem, case, lambda resolved, t: entry(*(t[s.name] for s in resolved.tensors))):
            caught.append(case.name)
    assert caught
    assert any(case.hidden for case in problem.tests if case.name in caught) or "mask" in flaw


_COMPILED = [
    ("gelu", "gelu_kernel", {"x": "*fp32", "y": "*fp32", "n": "i32"}, {"BLOCK": 1024}),
    ("vector_add", "add_kernel", {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32"}, {"BLOCK": 1024}),
    ("softmax", "row_kernel", {"x": "*fp32", "y": "*fp32", "cols": "i32"}, {"BLOCK": 4096}),
    ("softmax", "long_row_kernel", {"x": "*fp32", "y": "*fp32", "cols": "i32"}, {"BLOCK": 8192}),
    *(
        (
            "matmul",
            "tile_kernel",
            {**dict.fromkeys("abc", f"*{kind}"), **dict.fromkeys("mnk", "i32")},
            {"TILE_M": tile, "TILE_N": tile, "TILE_K": tile // 2, "GROUP": 8},
        )
        for kind, tile in (("fp32", 64), ("fp16", 128), ("bf16", 128))
    ),
]


@pytest.mark.parametrize(("slug", "kernel", "arguments", "constants"), _COMPILED)
def test_triton_kernel_compiles_for_sm_90(
    slug: str, kernel: str, arguments: dict[str, str], constants: dict[str, int]
) -> None:
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    function = getattr(_module(ROOT / "reference" / slug / "triton.py"), kernel)
    signature = {**arguments, **dict.fromkeys(constants, "constexpr")}
    compiled = triton.compile(ASTSource(function, signature, constants), target=GPUTarget("cuda", 90, 32))
    assert f".entry {kernel}" in compiled.asm["ptx"]


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
@pytest.mark.parametrize("slug", SLUGS)
def test_cuda_kernel_compiles_for_sm_90_with_its_symbols(slug: str, tmp_path: Path) -> None:
    library = tmp_path / "kernel.so"
    source = ROOT / "reference" / slug / "cuda.cu"
    command = ["nvcc", "-shared", "-Xcompiler", "-fPIC", "-arch=sm_90", "-O3", "-Werror", "all-warnings"]
    subprocess.run([*command, "-o", library, source], check=True)
    problem, code = _problem(slug), ctypes.CDLL(str(library))
    for case in _cases(problem, "cuda"):
        assert getattr(code, problem.resolve(case).symbol)


def _grade_interpreted(slug: str) -> list[dict[str, Any]]:
    problem, entry = _problem(slug), getattr(_module(ROOT / "reference" / slug / "triton.py"), slug)
    results: list[dict[str, Any]] = []
    for case in _cases(problem, "cpu"):
        seconds = 0.0

        def run(resolved: ResolvedCase, tensors: dict[str, torch.Tensor]) -> None:
            nonlocal seconds
            start = time.perf_counter()
            entry(*(tensors[s.name] for s in resolved.tensors))
            seconds = time.perf_counter() - start

        results.append({"case": [slug, case.name], "flaw": _flaw(problem, case, run), "seconds": seconds})
    return results


if __name__ == "__main__":
    print(json.dumps([result for slug in SLUGS for result in _grade_interpreted(slug)]))
