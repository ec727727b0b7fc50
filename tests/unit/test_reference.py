"""Running a problem's `reference.py`: what it may return, and the one line for everything else."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import torch

from harness.errors import DeviceError, ProblemError
from harness.judge.correctness.truth import Truth
from harness.problem import load
from harness.problem.reference import Reference, _FullPrecision
from harness.problem.returned import Value
from tests.grading import written

TOML = """
title = "Everything at once"
entry = "mixed"
parameters = ["n"]

[[tensors]]
name = "x"
role = "input"
shape = ["n"]
dtype = "float16"

[[tensors]]
name = "state"
role = "inout"
shape = ["n"]
dtype = "float32"

[[tensors]]
name = "order"
role = "output"
shape = ["n"]
dtype = "int64"

[[tensors]]
name = "parts"
role = "output"
count = 2
shape = ["index + 1"]
dtype = "float16"

[[scalars]]
name = "alpha"
dtype = "float64"
value = 0.5

[cost]
bytes = "n"
flops = "n"

[[tests]]
name = "one"
params = { n = 4 }

[[benchmarks]]
name = "two"
params = { n = 4 }
"""

SIZES = """
[[tensors]]
name = "sizes"
role = "input"
shape = ["n"]
dtype = "int64"
fill = { kind = "generated" }

[[scalars]]
"""

GOOD = """
import torch

def reference(x, state, alpha):
    state += alpha * x
    return state, torch.argsort(x), [x[:1], x[:2]]
"""


def _reference(tmp_path: Path, source: str) -> Reference:
    return Reference.load(written(tmp_path / "mixed", TOML, source))


def _run(reference: Reference, tmp_path: Path, double: bool = False) -> dict[str, Value]:
    problem = load(tmp_path / "mixed")
    tensors: dict[str, Value] = {"x": torch.tensor([3, 1, 2, 0], dtype=torch.float16), "state": torch.ones(4)}
    if double:
        tensors = {name: t.double() for name, t in tensors.items() if isinstance(t, torch.Tensor)}
    before = {name: t.clone() for name, t in tensors.items() if isinstance(t, torch.Tensor)}
    results = reference(tensors, {"alpha": 0.5}, problem.resolve(problem.tests[0]))
    for name, tensor in before.items():
        kept = tensors[name]
        assert torch.equal(kept, tensor)
    return results


def _dtypes(results: dict[str, Value]) -> dict[str, list[torch.dtype]]:
    return {name: [t.dtype for t in (v if isinstance(v, list) else [v])] for name, v in results.items()}


@pytest.mark.parametrize("double", [False, True])
def test_a_good_reference(tmp_path: Path, double: bool) -> None:
    results = _run(_reference(tmp_path, GOOD), tmp_path, double)
    assert list(results) == ["state", "order", "parts"]
    state, order, parts = results["state"], results["order"], results["parts"]
    assert state.tolist() == [2.5, 1.5, 2.0, 1.0]
    assert order.tolist() == [3, 1, 2, 0]
    assert [t.tolist() for t in parts] == [[3.0], [3.0, 1.0]]
    half, single = (torch.float64, torch.float64) if double else (torch.float16, torch.float32)
    assert _dtypes(results) == {"state": [single], "order": [torch.int64], "parts": [half, half]}


@pytest.mark.parametrize(
    "raised",
    [
        "torch.OutOfMemoryError('CUDA out of memory.')",
        "RuntimeError('CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`')",
    ],
)
def test_a_lack_of_memory_is_not_the_authors_fault(tmp_path: Path, raised: str) -> None:
    reference = _reference(tmp_path, f"import torch\ndef reference(x, state, alpha):\n    raise {raised}\n")
    with pytest.raises(DeviceError, match="the device has too little free memory for the reference of mixed"):
        _run(reference, tmp_path)


def test_calls_can_be_vectorised(tmp_path: Path) -> None:
    """The judge maps the reference over a stack of calls; what comes back is what single calls give."""
    source = GOOD.replace("[x[:1], x[:2]]", "[x[:1], x[:2].clone()]")
    reference, problem = _reference(tmp_path, source), load(tmp_path / "mixed")
    case = problem.resolve(problem.tests[0])
    xs, states = torch.rand(5, 4).half(), torch.ones(5, 4)

    def call(x: torch.Tensor, state: torch.Tensor) -> tuple[Value, Value]:
        results = reference({"x": x, "state": state}, {"alpha": 0.5}, case)
        return results["state"], results["parts"][1]

    mapped = torch.vmap(call)(xs, states)
    for k in range(5):
        for got, expected in zip(mapped, call(xs[k], states[k]), strict=True):
            assert torch.equal(got[k], expected)
    assert torch.equal(states, torch.ones(5, 4))


def test_a_case_without_any_input_has_its_answers(tmp_path: Path) -> None:
    """Several calls at once, which torch cannot vectorise over nothing."""
    tensors = """tensors = [
        { name = "x", role = "input", shape = ["n"], dtype = "float32", present = "n - 4" },
        { name = "y", role = "output", shape = ["n"], dtype = "int64" },
    ]"""
    first, last = TOML.index("[[tensors]]"), TOML.index("[cost]")
    source = "import torch\ndef reference(x):\n    return torch.arange(4) if x is None else x.argsort()\n"
    problem = written(tmp_path / "mixed", f"{TOML[:first]}{tensors}\n{TOML[last:]}", source)
    expected = Truth(Reference.load(problem), problem.resolve(problem.tests[0]))({}, 5)
    assert expected.truth["y"].tolist() == 5 * [[0, 1, 2, 3]]


def test_an_own_dtype_run_is_rounded_to_the_output(tmp_path: Path) -> None:
    reference = _reference(tmp_path, GOOD.replace("[x[:1], x[:2]]", "[x.float()[:1], x[:2]]"))
    assert _dtypes(_run(reference, tmp_path))["parts"] == [torch.float16, torch.float16]


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    path = list(sys.path)
    _reference(tmp_path, GOOD)
    assert sys.path == path
    assert sorted(p.name for p in (tmp_path / "mixed").iterdir()) == ["problem.toml", "reference.py"]


def test_what_it_prints_goes_to_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _run(
        _reference(tmp_path, "print('loaded')\n" + GOOD.replace("    return", "    print('called')\n    return", 1)),
        tmp_path,
    )
    out, err = capsys.readouterr()
    assert (out, err.splitlines()[:2]) == ("", ["loaded", "called"])


def test_stale_bytecode_is_not_used(tmp_path: Path) -> None:
    """A `__pycache__` of the same size and time, but with other code, must not decide what is right."""
    import py_compile

    reference = _reference(tmp_path, GOOD)
    path = tmp_path / "mixed" / "reference.py"
    path.write_text(GOOD.replace("alpha * x", "alpha + x"))
    py_compile.compile(str(path), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    path.write_text(GOOD)
    state = _run(Reference.load(load(tmp_path / "mixed")), tmp_path)["state"]
    assert state.tolist() == [2.5, 1.5, 2.0, 1.0]
    assert not reference.compares


def test_dataclasses_can_be_defined(tmp_path: Path) -> None:
    source = (
        "from __future__ import annotations\nimport dataclasses\n@dataclasses.dataclass\nclass A:\n    x: int = 1\n"
    )
    assert _run(_reference(tmp_path, source + GOOD), tmp_path)


def test_a_change_after_loading_is_noticed(tmp_path: Path) -> None:
    _reference(tmp_path, GOOD)
    problem = load(tmp_path / "mixed")
    (tmp_path / "mixed" / "reference.py").write_text(GOOD + "# other\n")
    with pytest.raises(ProblemError, match="changed after it was loaded; load the problem again"):
        Reference.load(problem)


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (
            "def reference(",
            "def refrence(",
            " defines no function `reference`; define `def reference(x, state, alpha)`",
        ),
        ("state, alpha)", "state)", ":4: `reference` cannot be called with problem.toml's names"),
        ("import torch", "import torc", ":2 raised ModuleNotFoundError: No module named 'torc'"),
        ("import torch", "import (torch", ":2 raised SyntaxError"),
        ("import torch", "raise SystemExit(3)", ":2 raised SystemExit: 3"),
    ],
)
def test_a_file_that_cannot_be_used(tmp_path: Path, old: str, new: str, line: str) -> None:
    assert old in GOOD
    with pytest.raises(ProblemError) as caught:
        _reference(tmp_path, GOOD.replace(old, new, 1))
    assert str(caught.value).startswith(f"{tmp_path / 'mixed' / 'reference.py'}{line}")


@pytest.mark.parametrize(
    ("old", "new", "line", "double"),
    [
        ("alpha * x", "alpha * y", ":5 raised NameError: name 'y' is not defined", False),
        ("alpha * x", "torch.ones(3)", ":5 raised RuntimeError: The size of tensor", False),
        ("state += alpha * x", "raise SystemExit", ":5 raised SystemExit: (no message)", False),
        ("state += alpha * x", "x += 1", ":4: changes its input `x` in place; work on a clone", False),
        ("state, torch", "torch", ":4 returned 2 values for 3 outputs; return state, order, parts in this order",
         False),
        ("return state", "return 1.0", ":4 returned float for `state`; return a tensor", False),
        ("[x[:1], x[:2]]", "x", ":4 returned Tensor for the list `parts`; return a list of tensors", False),
        ("[x[:1], x[:2]]", "[x[:1]]", ":4 returned 1 tensors for the list `parts`; return 2", False),
        ("[x[:1], x[:2]]", "[x[:1], x]", ":4 returned `parts[1]` with the shape [4]; problem.toml says [2]", False),
        ("torch.argsort(x)", "x", ":4 returned `order` as float16; problem.toml says int64", False),
        ("x[:2]]", "x[:2].int()]", ":4 returned `parts[1]` as int32; problem.toml says float16", False),
        ("x[:2]]", "x[:2].float()]", ":4 returned `parts[1]` as float32 for float64 inputs; compute in the dtype",
         True),
    ],
)  # fmt: skip
def test_a_run_that_does_not_fit(tmp_path: Path, old: str, new: str, line: str, double: bool) -> None:
    assert old in GOOD
    reference = _reference(tmp_path, GOOD.replace(old, new, 1))
    directory = tmp_path / "mixed"
    problem = load(directory)
    dtype = torch.float64 if double else None
    tensors: dict[str, Value] = {
        "x": torch.ones(4, dtype=dtype or torch.float16),
        "state": torch.ones(4, dtype=dtype or torch.float32),
    }
    with pytest.raises(ProblemError) as caught:
        reference(tensors, {"alpha": 0.5}, problem.resolve(problem.tests[0]))
    assert str(caught.value).startswith(f"{directory / 'reference.py'}{line}")
    assert "\n" not in str(caught.value)


COMPARE = """
def compare(got, inputs, truth):
    if got["state"].sum() != truth["state"].sum():
        return f"the sum\\n is {got['state'].sum().item()}"
"""


def test_compare(tmp_path: Path) -> None:
    reference = _reference(tmp_path, GOOD + COMPARE)
    ones: dict[str, Value] = {"state": torch.ones(4)}
    assert reference.compares
    assert reference.compare(ones, {}, {"state": torch.ones(4)}) is None
    assert reference.compare(ones, {}, {"state": torch.zeros(4)}) == "the sum is 4.0"
    with pytest.raises(ProblemError, match=r"reference\.py:9 raised KeyError: 'state'"):
        reference.compare({}, {}, ones)


def test_compare_returns_text_or_none(tmp_path: Path) -> None:
    reference = _reference(tmp_path, GOOD + "\ndef compare(got, inputs, truth):\n    return True\n")
    with pytest.raises(
        ProblemError, match=r"reference\.py:8: `compare` returned bool; return None if right, else text"
    ):
        reference.compare({}, {}, {})


def test_reference_and_compare_get_the_case_on_request(tmp_path: Path) -> None:
    asking = GOOD.replace("alpha):", "alpha, case):").replace(
        "state +=", "state[0] = torch.finfo(case.dtypes['x']).eps\n    state +="
    )
    compare = (
        "\ndef compare(got, inputs, truth, case, usual):\n    return usual('order') or f'{case.params} {case.dtypes}'\n"
    )
    reference = _reference(tmp_path, asking + compare)
    results = _run(reference, tmp_path, double=True)
    assert results["state"].tolist()[0] == pytest.approx(2**-10 + 1.5), "in float64, of a case in float16"
    case, asked = load(tmp_path / "mixed").resolve(load(tmp_path / "mixed").tests[0]), list[str]()

    def usual(output: str) -> str | None:
        asked.append(output)
        return None if len(asked) == 1 else f"{output} is wrong"

    reason = reference.compare({}, {}, {}, case, usual)
    assert reason is not None
    assert (
        "{'n': 4} {'x': torch.float16, 'state': torch.float32, 'order': torch.int64, 'parts': torch.float16}" in reason
    )
    assert reference.compare({}, {}, {}, case, usual) == "order is wrong"
    assert asked == ["order", "order"]


def test_a_cost_is_the_least_over_drawn_inputs(tmp_path: Path) -> None:
    toml = TOML.replace('bytes = "n"', 'bytes = "4 * sum_of(sizes) + elements(x)"').replace("[[scalars]]", SIZES)
    toml = toml.replace('"float16"', '"complex64"', 1)  # another generated input, which has no sum
    generate = """
def generate(generator, n):
    sizes = torch.randint(1, 9, (n,), generator=generator)
    return {"sizes": sizes, "x": torch.randn(n, dtype=torch.complex64, generator=generator)}
"""
    problem = written(tmp_path / "mixed", toml, GOOD.replace("alpha):", "alpha, sizes):") + generate)
    case, seeds = problem.resolve(problem.tests[0]), range(3)
    drawn = [torch.randint(1, 9, (4,), generator=torch.Generator().manual_seed(seed)).sum() for seed in seeds]
    costed = Reference.load(problem).with_cost(case, (torch.Generator().manual_seed(seed) for seed in seeds))
    assert costed.minimum_bytes == 4 * min(drawn) + 4


def precision() -> tuple[object, ...]:
    """What torch keeps for the whole process."""
    cudnn = torch.backends.cudnn
    return (torch.get_float32_matmul_precision(), cudnn.allow_tf32, cudnn.deterministic, cudnn.benchmark, cudnn.enabled)


@pytest.fixture
def fast() -> Iterator[tuple[object, ...]]:
    """A process that allows TF32, as `torch.set_float32_matmul_precision` does for a user."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    yield precision()
    torch.set_float32_matmul_precision(before)


def test_references_in_several_threads_all_compute_without_tf32(fast: tuple[object, ...]) -> None:
    """Whoever leaves first does not give TF32 back to those who still compute."""
    full, begun, seen = _FullPrecision(), threading.Barrier(3), []
    leave = [threading.Event() for _ in range(2)]

    def compute(mine: int) -> None:
        with suppress(ValueError), full:
            begun.wait(10)
            leave[mine].wait(10)
            seen.append(precision()[:2])
            raise ValueError("a reference that fails leaves, too")

    threads = [threading.Thread(target=compute, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    begun.wait(10)
    assert precision()[:2] == ("highest", False)
    leave[0].set()
    threads[0].join(10)
    assert precision()[:2] == ("highest", False)
    leave[1].set()
    threads[1].join(10)
    assert precision() == fast
    assert seen == [("highest", False)] * 2
    with full, full:
        assert precision()[:2] == ("highest", False)
    assert precision() == fast


def test_a_reference_is_computed_without_tf32(tmp_path: Path, fast: tuple[object, ...]) -> None:
    asks = """
import torch

def reference(x, state, alpha):
    assert (torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32) == ("highest", False)
    raise LookupError("as it should be")
"""
    problem = written(tmp_path / "mixed", TOML, asks)
    tensors: dict[str, Value] = {"x": torch.zeros(4), "state": torch.zeros(4)}
    with pytest.raises(ProblemError, match="LookupError: as it should be"):
        Reference.load(problem)(tensors, {"alpha": 0.5}, problem.resolve(problem.tests[0]))
    assert precision() == fast
