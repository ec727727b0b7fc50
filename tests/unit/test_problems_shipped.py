"""The problems of this repository, and every kernel in `reference/` against them, as far as a CPU can tell."""

from __future__ import annotations

import ctypes
import json
import os
import select
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from harness.problem import Problem, ResolvedCase
from kernelmark.authoring.samples import read_samples
from tests.shipped import ROOT, SLUGS, call, cases, flaw, module, problem, small_case

CPP = sorted(path.parent.name for path in (ROOT / "reference").glob("*/cpp.cpp"))
TUNED = sorted(path.parent.name for path in (ROOT / "reference").glob("*/max_autotune.py"))
CUDA = sorted(path.parent.name for path in (ROOT / "reference").glob("*/cuda.cu"))


@pytest.mark.parametrize("slug", SLUGS)
def test_a_problem_is_complete(slug: str) -> None:
    found = problem(slug)
    for device in ("cpu", "cuda"):
        assert 2 <= sum(device in case.devices for case in found.benchmarks) <= 6
        assert any(case.hidden for case in found.tests if device in case.devices)
    statement = (found.directory / "README.md").read_text()
    assert all(f"**{part}.**" in statement for part in ("What is hard", "Precision", "Where it is used", "Topics"))
    samples = read_samples(found.directory)
    assert {sample.outcome for sample in samples.values()} - {"runtime_error"} == {"accepted", "wrong_answer"}
    assert len(samples) >= 4
    kernels = {path.name for path in (ROOT / "reference" / slug).iterdir()}
    assert kernels >= {"eager.py", "compiled.py", "triton.py"}


@pytest.mark.parametrize("slug", SLUGS)
def test_cpu_cases_are_within_the_interpreters_abilities(slug: str) -> None:
    found = problem(slug)
    for resolved in (found.resolve(extreme) for case in cases(found, "cpu") for extreme in case.extremes()):
        assert resolved.minimum_bytes <= 2 << 20
        assert resolved.minimum_flops <= 50_000_000  # half a second in the interpreter


def _is_right(found: Problem, kernel: str) -> None:
    entry = getattr(module(ROOT / "reference" / found.slug / f"{kernel}.py"), found.slug)
    for case in cases(found, "cpu"):
        assert flaw(found, case, lambda resolved, tensors: call(entry, found, resolved, tensors)) == ""


@pytest.mark.parametrize("slug", SLUGS)
def test_the_eager_kernel_is_right(slug: str) -> None:
    _is_right(problem(slug), "eager")


def test_the_gelu_of_separate_operations_is_right() -> None:
    _is_right(problem("gelu"), "manual")


@pytest.mark.full
@pytest.mark.parametrize("slug", TUNED)
def test_the_tuned_kernel_is_right_in_a_small_case(slug: str) -> None:
    tuned, found = module(ROOT / "reference" / slug / "max_autotune.py"), problem(slug)
    for tuned.SEARCHED in (1 << 40, 0):  # without a search, and with one
        entry = getattr(tuned, slug)
        assert flaw(found, small_case(found), lambda case, tensors, to=entry: call(to, found, case, tensors)) == ""


@pytest.fixture(scope="module")
def interpreter() -> Iterator[subprocess.Popen[str]]:
    """One process for all problems: importing torch and Triton takes longer than most kernels."""
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(ROOT)}
    command, pipe = [sys.executable, "-m", "tests.shipped"], subprocess.PIPE
    with subprocess.Popen(command, env=environment, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as process:
        yield process
        process.kill()


@pytest.mark.full
@pytest.mark.parametrize("slug", SLUGS)
def test_the_triton_kernel_is_right(interpreter: subprocess.Popen[str], slug: str) -> None:
    assert interpreter.stdin is not None
    print(slug, file=interpreter.stdin, flush=True)
    assert select.select([interpreter.stdout], [], [], 300)[0], "it takes more than five minutes"
    line = interpreter.stdout.readline()
    assert line, "it has ended; what it printed is on stderr"
    results = json.loads(line)
    assert [result["case"] for result in results] == [[slug, case.name] for case in cases(problem(slug), "cpu")]
    assert [result["flaw"] for result in results if result["flaw"]] == []


@pytest.mark.parametrize("slug", CPP)
def test_the_cpp_kernel_is_right(slug: str, tmp_path: Path) -> None:
    library = tmp_path / "kernel.so"
    source = ROOT / "reference" / slug / "cpp.cpp"
    subprocess.run(["g++", "-shared", "-fPIC", "-O3", "-Wall", "-Werror", "-o", library, source], check=True)
    found, code = problem(slug), ctypes.CDLL(str(library))

    def run(resolved: ResolvedCase, tensors: dict[str, torch.Tensor]) -> None:
        numbers = [v for name in found.parameters if isinstance(v := resolved.params[name], int)]
        pointers = [ctypes.c_void_p(tensors[s.name].data_ptr()) for s in resolved.tensors]
        getattr(code, resolved.symbol)(*pointers, *map(ctypes.c_int64, numbers))

    for case in cases(found, "cpu"):
        assert flaw(found, case, run) == ""


_FLOATS = ("fp32", "fp16", "bf16")
# Problem, kernel, the types of its arguments, and its constants.
_COMPILED: list[tuple[str, str, str, dict[str, int]]] = [
    ("gelu", "gelu_kernel", "x y: *fp32; n: i32", {"BLOCK": 1024}),
    ("vector_add", "add_kernel", "x y out: *fp32; n: i32", {"BLOCK": 1024}),
    ("softmax", "row_kernel", "x y: *fp32; cols: i32", {"BLOCK": 4096}),
    ("quantize_dynamic", "row_kernel", "x: *fp16; q: *i8; scale: *fp32; k: i32", {"BLOCK": 4096}),
    ("quantize_dynamic", "tile_kernel",
     "q w: *i8; q_scale w_scale: *fp32; y: *fp16; q_tiles w_tiles: *i8; m n k: i32",
     {"COPIED": False, "TILE_M": 64, "TILE_N": 128, "TILE_K": 128, "GROUP": 8}),
    ("sparsify_24_transpose", "tile_kernel",
     "x values: *i16; indices: *u8; values_t: *i16; indices_t: *u8; rows cols: i32",
     {"MAGNITUDE": 0x7FFF, "DOWN": 32, "OVER": 16}),
    *(
        (
            "matmul_block_sparse",
            "tile_kernel",
            f"x: tensordesc<bf16[{m}, {block}]>; values: tensordesc<bf16[{n}, {block}]>; indices: *i32; "
            f"y: tensordesc<bf16[{m}, {n}]>; k slots last: i32",
            {"TILE_M": m, "TILE_N": n, "BLOCK": block},
        )
        for m, n, block in ((16, 16, 64), (64, 32, 64), (128, 64, 64), (128, 32, 32))
    ),
    *(
        (
            "matmul_int4_asymmetric",
            "tile_kernel",
            f"tokens: *{kind}; weights: *u8; parted: *{kind}; packed: *u8; scale: *{kind}; zero: *u8; y: *{kind}; "
            "parts: *fp32; m n nbytes per_group: i32",
            {"COPIED": False, "TILE_M": 64, "TILE_N": 128, "TILE_K": 64, "SPLIT": 8, "GROUP": 8},
        )
        for kind in ("fp16", "bf16")
    ),
    ("matmul_int4_asymmetric", "row_kernel",
     "x: *bf16; packed: *u8; scale: *bf16; zero: *u8; y: *bf16; n nbytes per_group: i32", {"ROWS": 4, "BLOCK": 512}),
    ("matmul_int4_int8", "halves_kernel", "x parted: *i8; m k nbytes: i32", {"BLOCK": 1024}),
    *(
        (
            "matmul_int4_int8",
            "tile_kernel",
            "tokens: *i8; weights: *u8; parted: *i8; packed: *u8; x_scale w_scale: *fp32; y: *fp16; parts: *i32; "
            "m n nbytes: i32",
            {"COPIED": False, "TILE_M": 64, "TILE_N": 128, "TILE_K": 128, "SPLIT": split, "GROUP": 8},
        )
        for split in (1, 8)
    ),
    ("matmul_int4_int8", "add_kernel", "parts: *i32; x_scale w_scale: *fp32; y: *fp16; m n: i32",
     {"SPLIT": 8, "BLOCK": 1024}),
    ("segment_scan", "block_kernel", "x: *fp32; marks: *u8; y totals: *fp32; opens: *i32; n: i32", {"BLOCK": 2048}),
    ("segment_scan", "carry_kernel", "y totals: *fp32; opens: *i32; n: i32", {"BLOCK": 2048, "WIDE": 1024}),
    *(
        (
            "cross_entropy",
            "row_kernel",
            f"logits: *{kind}; target: *i64; upstream loss gradient: *{kind}; classes: i32",
            {"BLOCK": 4096},
        )
        for kind in _FLOATS
    ),
    *(
        (
            "paged_attention",
            "part_kernel",
            f"q k_pages v_pages: *{kind}; table lengths: *i32; sums tops totals: *fp32; scale: fp32; "
            "most_pages kv_heads page part parts: i32",
            {"GROUP": 4, "M": 16, "N": 64, "SIZE": 128},
        )
        for kind in _FLOATS
    ),
    ("paged_attention", "join_kernel", "sums tops totals: *fp32; lengths: *i32; o: *bf16; heads part parts: i32",
     {"SIZE": 128}),
    *(
        (
            "matmul",
            "tile_kernel",
            f"a b c: *{kind}; m n k: i32",
            {"TILE_M": tile, "TILE_N": tile, "TILE_K": tile // 2, "GROUP": 8},
        )
        for kind, tile in zip(_FLOATS, (64, 128, 128), strict=True)
    ),
]  # fmt: skip


@pytest.mark.parametrize(("slug", "kernel", "arguments", "constants"), _COMPILED)
def test_a_triton_kernel_compiles_for_sm_90(slug: str, kernel: str, arguments: str, constants: dict[str, int]) -> None:
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    function = getattr(module(ROOT / "reference" / slug / "triton.py"), kernel)
    groups = (group.split(": ") for group in arguments.split("; "))
    types = {name: kind for names, kind in groups for name in names.split()}
    signature = {**types, **dict.fromkeys(constants, "constexpr")}
    compiled = triton.compile(ASTSource(function, signature, constants), target=GPUTarget("cuda", 90, 32))
    assert f".entry {kernel}" in compiled.asm["ptx"]


@pytest.mark.full
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
@pytest.mark.parametrize("slug", CUDA)
def test_a_cuda_kernel_compiles_for_sm_90_with_its_symbols(slug: str, tmp_path: Path) -> None:
    library = tmp_path / "kernel.so"
    source = ROOT / "reference" / slug / "cuda.cu"
    how = "-shared -Xcompiler -fPIC -arch=compute_90a -code=sm_90a,compute_90a -O3 -std=c++17 -Werror all-warnings"
    subprocess.run(["nvcc", *how.split(), "-o", library, source], check=True)
    found, code = problem(slug), ctypes.CDLL(str(library))
    for case in cases(found, "cuda"):
        assert getattr(code, found.resolve(next(case.extremes())).symbol)
