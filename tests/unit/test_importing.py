"""What `kernelmark import` makes of a checkout and of the importer's answers, without a sandbox."""

from __future__ import annotations

import json
import math
import re
import time
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import ProblemError, UsageError
from harness.problem import Problem, load
from harness.problem.foreign_files import foreign_files
from harness.sandbox import provider
from harness.shared.foreign import ForeignForm
from kernelmark.interop.importing import Importer, baselines, folder, gpu_mode, kernelbench
from kernelmark.interop.importing.answer import ImporterAnswer, check
from kernelmark.interop.importing.checkout import (
    Candidate,
    ForeignFile,
    ForeignProblem,
    NotImportedError,
    chosen,
    slug_of,
)
from kernelmark.interop.importing.draft import draft
from kernelmark.interop.importing.folder import name_checkout, refuse_another_checkout
from kernelmark.interop.importing.toml import written
from kernelmark.project.problems import find_baselines, find_problem
from kernelmark.project.settings import Settings
from tests.integration.test_foreign import gpu_mode as gpu_mode_problem
from tests.integration.test_foreign import kernelbench as kernelbench_problem

FOREIGN = Path(__file__).parents[1] / "foreign"
SETS = FOREIGN / "reference-kernels"
Drafted = tuple[ForeignProblem, dict[str, Any]]


def tensor(number: int, *shape: int, dtype: str = "float32", strides: tuple[int, ...] | None = None) -> dict[str, Any]:
    """As the importer tells of one; its rows follow one another unless strides are given."""
    strides = strides or tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
    return {"tensor": {"id": str(number), "dtype": dtype, "shape": list(shape), "strides": list(strides)}}


def number(value: float) -> dict[str, Any]:
    return {"number": value}


def answered(cases: list[tuple[Any, Any]], **more: Any) -> ImporterAnswer:
    document = {"cases": [{"data": data, "result": result} for data, result in cases], **more}
    return check(json.dumps(document).encode(), len(cases))


def stated(tmp_path: Path, tests: list[dict[str, Any]], form: ForeignForm = "gpu-mode") -> ForeignProblem:
    file = tmp_path / "reference.py"
    file.write_bytes(b"# theirs")
    files = (ForeignFile("reference.py", file, b"# theirs", False),)
    candidate = Candidate(form, "a/b", "a/b", "a_b", "b", file)
    return ForeignProblem(candidate, files, tests=tuple(tests), benchmarks=tuple(tests))


def drafted(tmp_path: Path, tests: list[dict[str, Any]], cases: list[tuple[Any, Any]], **more: Any) -> dict[str, Any]:
    return draft(stated(tmp_path, tests), answered([*cases, *cases], **more))


def test_a_dimension_is_a_number_a_parameter_or_a_new_parameter(tmp_path: Path) -> None:
    made = drafted(
        tmp_path,
        [{"rows": 2, "cond": 1}, {"rows": 3, "cond": 1}],
        [
            ({"tuple": [tensor(0, 2, 7, 5), number(2), number(5)]}, tensor(1, 5)),
            ({"tuple": [tensor(0, 3, 7, 9), number(3), number(9)]}, tensor(1, 9)),
        ],
        names=["x", "n", "m"],
    )
    assert made["parameters"] == ["rows", "cond", "d0"]
    assert [spec["shape"] for spec in made["tensors"]] == [["rows", 7, "d0"], ["d0"]]
    assert made["call"] == {"style": "tree", "data": {"tuple": ["x", {"param": "rows"}, {"param": "d0"}]}}
    params = [{"rows": 2, "cond": 1, "d0": 5}, {"rows": 3, "cond": 1, "d0": 9}]
    assert [case["params"] for case in made["tests"]] == params
    names = ["rows=2", "rows=3", "rows=2 (2)", "rows=3 (2)"]
    assert [case["name"] for case in made["tests"] + made["benchmarks"]] == names


def test_text_and_flags_are_options_and_a_dtype_that_varies_is_a_parameter(tmp_path: Path) -> None:
    made = drafted(
        tmp_path,
        [{"n": 2, "half": False}, {"n": 2, "half": True, "case": "plain"}],
        [(tensor(0, 2), tensor(1, 2)), (tensor(0, 2, dtype="float16"), tensor(1, 2, dtype="float16"))],
    )
    assert [case.get("options") for case in made["tests"]] == [{"half": False}, {"half": True, "case": "plain"}]
    assert [spec["dtype"] for spec in made["tensors"]] == ["dtype0", "dtype0"]
    assert made["cost"]["bytes"] == "(elements(x) + elements(out)) * sizeof(dtype0)"


@pytest.mark.parametrize(
    ("filled", "result", "roles", "form"),
    [
        ({"1": "yes"}, tensor(1, 4), ["input", "output"], None),  # it returns what it was given
        ({"1": "yes"}, tensor(2, 4, dtype="float64"), ["input", "output"], None),  # it returns something like it
        ({"1": "no"}, tensor(1, 4), ["input", "input", "output"], None),  # changed in place: read as well
        ({}, {"list": [tensor(2, 4), tensor(3, 4)]}, ["input", "input", "output", "output"], ["out0", "out1"]),
        ({}, {"dict": {"a": tensor(2, 4)}}, ["input", "input", "output"], {"dict": {"a": "out"}}),
    ],
)
def test_room_for_the_result_is_an_output(
    tmp_path: Path, filled: dict[str, str], result: Any, roles: list[str], form: Any
) -> None:
    cases = [({"tuple": [tensor(0, 4), tensor(1, 4)]}, result)]
    made = drafted(tmp_path, [{"n": 4}], cases, filled=filled, names=["x", "y"])
    assert [spec["role"] for spec in made["tensors"]] == roles
    assert made["call"].get("result") == form


def test_a_module_has_the_arguments_of_its_class_and_one_parameter(tmp_path: Path) -> None:
    foreign = stated(tmp_path, [{}], "kernelbench")
    init = [number(8), {"tuple": [number(1), number(8)]}, {"text": "mean"}, {"none": True}, {"number": True}]
    data = {"tuple": [tensor(0, 3, 800, strides=(1, 3)), number(2)]}
    made = draft(
        foreign,
        answered([(data, tensor(1, 3, 4, strides=(1, 3)))] * 2, init=init, names=["x", "steps"], weight_bytes=3 << 30),
    )
    assert made["call"] == {
        "style": "module",
        "init": [8, {"tuple": [1, 8]}, {"text": "mean"}, {"none": True}, True],
        "arguments": ["x", 2],
    }
    assert made["parameters"] == ["d0"]
    assert made["tensors"][0]["shape"] == [3, "d0"]
    assert made["tensors"][0]["strides"] == [1, 3]
    assert "strides" not in made["tensors"][1]
    assert made["tensors"][1]["layouts"] == ["column_major"]
    assert made["tolerance"] == {"rtol": 1e-4, "atol": 1e-4}
    assert made["limits"] == {"memory_bytes": 20 << 30}  # 3 GiB of weights, four times, and what every runner has


CHANNELS_LAST, IN_ROWS, WITH_GAPS = (30, 1, 10, 2), (30, 15, 5, 1), (60, 30, 10, 2)


@pytest.mark.parametrize(
    ("over_cases", "layouts"),
    [
        ([IN_ROWS, IN_ROWS], None),
        ([CHANNELS_LAST, IN_ROWS], ["channels_last"]),
        ([CHANNELS_LAST, WITH_GAPS], None),
    ],
)
def test_a_result_may_come_in_the_layouts_of_the_reference(
    tmp_path: Path, over_cases: list[tuple[int, ...]], layouts: list[str] | None
) -> None:
    cases = [(tensor(0, 5), tensor(1, 4, 2, 3, 5, strides=strides)) for strides in over_cases]
    made = drafted(tmp_path, [{"n": 5}] * 2, cases, names=["x"])
    assert made["tensors"][1].get("layouts") == layouts


@pytest.mark.parametrize(("took_gib", "limit_gib"), [(1, None), (5, None), (6, 16), (10, 16), (14, 32)])
def test_code_that_took_much_memory_may_take_it_again(tmp_path: Path, took_gib: int, limit_gib: int | None) -> None:
    foreign = stated(tmp_path, [{"n": 4}])
    answer = answered([(tensor(0, 4), tensor(1, 4))] * 2, names=["x"], host_bytes=took_gib << 30)
    limits = draft(foreign, answer).get("limits", {})
    assert limits.get("memory_bytes") == (limit_gib << 30 if limit_gib else None)


REFUSED: list[tuple[list[tuple[Any, Any]], dict[str, Any], str]] = [
    ([({"tuple": [number(1)]}, tensor(1, 2)), ({"list": [number(1)]}, tensor(1, 2))], {}, "has another structure"),
    ([(tensor(0, 2), tensor(1, 2)), (tensor(0, 2, 2), tensor(1, 2))], {}, "the number of dimensions of 'x' differs"),
    ([({"list": [number(1)]}, tensor(1, 2)), ({"list": []}, tensor(1, 2))], {}, "has another length"),
    ([({"dict": {"a": number(1)}}, tensor(1, 2)), ({"dict": {"b": number(1)}}, tensor(1, 2))], {}, "other keys"),
    ([(number(0.5), tensor(1, 2)), (number(0.25), tensor(1, 2))], {}, "is no whole number"),
    ([({"text": "a"}, tensor(1, 2)), ({"text": "b"}, tensor(1, 2))], {}, "differs from case to case"),
    ([({"other": "KVCache"}, tensor(1, 2))] * 2, {}, "a KVCache, for which the format has no form"),
    ([(tensor(0, 2), {"other": "Cache"})] * 2, {}, "its result holds a Cache"),
    ([(tensor(0, 2), {"tuple": [tensor(1, 2), number(3)]})] * 2, {}, "its result holds a number"),
    ([(tensor(0, 2), {"none": True})] * 2, {}, "its result holds no tensor"),
    ([(tensor(0, 2, dtype="complex32"), tensor(1, 2))] * 2, {}, "is complex32, which the format does not"),
    ([(tensor(0, 2), tensor(0, 2))] * 2, {"filled": {"0": "RuntimeError: a newer GPU"}}, "cannot run here .RuntimeErr"),
]


@pytest.mark.parametrize(("cases", "more", "why"), REFUSED, ids=[why for *_, why in REFUSED])
def test_inexpressible_problems_are_refused(
    tmp_path: Path, cases: list[tuple[Any, Any]], more: dict[str, Any], why: str
) -> None:
    with pytest.raises(NotImportedError, match=why):
        drafted(tmp_path, [{"n": 1}, {"n": 2}], cases, **more)


def several(count: int, *shape: int) -> dict[str, Any]:
    listed = tensor(1, *shape)
    listed["tensor"]["count"] = count
    return listed


def test_a_folded_entry_is_a_list_with_a_count(tmp_path: Path) -> None:
    cases = [
        ({"tuple": [tensor(0, 4), {"dict": {"e.{index}.w": several(n, 4, width), "n": number(n)}}]}, tensor(2, 4))
        for n, width in ((2, 5), (3, 6))
    ]
    made = drafted(tmp_path, [{"experts": 2}, {"experts": 3}], cases, names=["x", "weights"])
    weights = {"name": "e_w", "role": "input", "count": "experts", "shape": [4, "d0"], "dtype": "float32"}
    assert made["tensors"][1] == {**weights, "fill": {"kind": "generated"}}
    entries = {"dict": {"e.{index}.w": "e_w", "n": {"param": "experts"}}}
    assert made["call"] == {"style": "tree", "data": {"tuple": ["x", entries]}}
    unnamed = drafted(tmp_path, [{"kind": "a"}, {"kind": "b"}], cases)
    assert unnamed["tensors"][1]["count"] == unnamed["parameters"][0]
    with pytest.raises(NotImportedError, match="is several tensors in some cases only"):
        drafted(tmp_path, [{"n": 1}, {"n": 2}], [(several(2, 3), tensor(0, 3)), (tensor(1, 3), tensor(0, 3))])


def test_names_that_are_taken_or_no_names_are_replaced_and_an_argument_needs_one(tmp_path: Path) -> None:
    with pytest.raises(NotImportedError, match="its argument 'index' cannot be a parameter"):
        drafted(tmp_path, [{"index": 1}], [(tensor(0, 2), tensor(1, 2))])
    data = {"tuple": [tensor(0, 5), {"dict": {"norm.weight": tensor(1, 5)}}, tensor(2, 5), tensor(3, 5)]}
    made = drafted(tmp_path, [{"k": 5}], [(data, tensor(4, 5))], names=["k", "w", "_", "float"])
    assert [spec["name"] for spec in made["tensors"]] == ["k0", "norm_weight", "x", "float0", "out"]


def test_a_reason_from_the_sandbox_is_one_printable_line() -> None:
    with pytest.raises(NotImportedError) as error:
        check(json.dumps({"refused": "a\nb\x1b[31m"}).encode(), 1)
    assert str(error.value) == "a b\\x1b[31m"


BAD_TASKS = [
    (b"a: " + b"x" * (1 << 20), "larger than 1 MiB"),
    (b"a: &x [1]\nb: *x", "has an alias"),
    (b"a: !!python/object/apply:os.system [ls]", "has a tag"),
    (b"a: !!int 3", "has a tag"),
    (b"[" * 1000, "nested more than 20 deep"),
    (b"a: [" + b"1," * 200_000 + b"]", "more than 50,000 values"),
    (b"a: " + b"9" * 5000, "not YAML"),
    (b"a: 2026-99-99", "not YAML"),
    (b"a: [1", "not YAML at line 1"),
    (b"- a", "not a table"),
    (b"\xff\xfe\x00", "not UTF-8"),
]


@pytest.mark.parametrize(("raw", "why"), BAD_TASKS, ids=[why for _, why in BAD_TASKS])
def test_a_task_file_that_is_not_plain_is_refused_soon(raw: bytes, why: str) -> None:
    begun = time.process_time()
    with pytest.raises(NotImportedError, match=why):
        gpu_mode.parse_task(raw)
    assert time.process_time() - begun < 20


TASK = 'files:\n  - {"name": "reference.py", "source": "reference.py"}\ntests: [{"n": 1}]\nbenchmarks: [{"n": 2}]\n'
BAD_FOLDERS = {
    TASK.replace('"source": "reference.py"', '"source": "../../secret.py"'): "its file '../../secret.py' is outside",
    TASK.replace('"source": "reference.py"', '"source": "/etc/passwd"'): "its file '/etc/passwd' is outside",
    TASK.replace('"source": "reference.py"', '"source": "link.py"'): "its file 'link.py' is outside",
    TASK.replace('"source": "reference.py"', '"source": "none.py"'): "its file 'none.py' does not exist",
    TASK.replace('"source": "reference.py"', '"source": "large.py"'): "its file 'large.py' is larger than 1 MiB",
    TASK.replace('"source": "reference.py"', '"source": "broken.py"'): "its file 'reference.py' is not Python",
    TASK.replace('"reference.py", ', '"other.py", '): "lists no reference.py",
    TASK.replace('"name": "reference.py", ', ""): "a file without name or source",
    TASK.partition("tests")[2].replace(":", "tests:", 1): "lists no files",
    TASK.replace('tests: [{"n": 1}]', ""): "has no tests",
    TASK.replace('[{"n": 2}]', "[3]"): "benchmarks that are not tables",
    TASK.replace('[{"n": 2}]', '[{"m": [1, 2]}]'): "the argument 'm' is a list",
    TASK.replace('[{"n": 2}]', "[{a: 2026-01-01}]"): "the argument 'a' is a date",
    TASK.replace('[{"n": 1}]', f"[{', '.join(['{n: 1}'] * 201)}]"): "more than 200 tests",
    TASK + "lang: cuda\n": "its submissions are in 'cuda', not in Python",
    TASK + "multi_gpu: true\n": "it runs on several GPUs at once",
}


@pytest.mark.parametrize(("task", "why"), BAD_FOLDERS.items(), ids=BAD_FOLDERS.values())
def test_a_folder_with_an_unreadable_task_is_left_out(tmp_path: Path, task: str, why: str) -> None:
    root, problem = tmp_path / "root", tmp_path / "root" / "problem"
    problem.mkdir(parents=True)
    (tmp_path / "secret.py").write_text("")
    (problem / "task.yml").write_text(task)
    (problem / "reference.py").write_text("import task")
    (problem / "broken.py").write_text("def")
    (problem / "large.py").write_bytes(b"#" * ((1 << 20) + 1))
    (problem / "link.py").symlink_to(tmp_path / "secret.py")
    [candidate] = gpu_mode.candidates(root)
    with pytest.raises(NotImportedError, match=why):
        gpu_mode.read(root, candidate)

    (tmp_path / "task.yml").write_text(task)
    (problem / "task.yml").unlink()
    (problem / "task.yml").symlink_to(tmp_path / "task.yml")
    with pytest.raises(NotImportedError, match="outside the checkout"):
        gpu_mode.read(root, candidate)


def test_a_task_file_gives_files_tests_and_limits() -> None:
    candidates = gpu_mode.candidates(SETS)
    slugs = [f"gpu_mode_small_{name}" for name in ("bins", "experts", "moments", "scale", "total")]
    assert [found.slug for found in candidates] == slugs
    read = gpu_mode.read(SETS, candidates[3])
    shown = {"reference.py": False, "task.py": True, "utils.py": True}
    assert {file.name: file.shown for file in read.files} == shown
    assert read.tests[0] == {"rows": 3, "cols": 5, "factor": 0.5}  # without the seed
    assert read.limits == {"build_s": 240.0, "time_s": 120.0}
    assert read.needs_gpu
    assert not gpu_mode.read(SETS, candidates[0]).needs_gpu


def test_problems_are_chosen_by_name_or_group() -> None:
    candidates = [*gpu_mode.candidates(SETS), *kernelbench.candidates(FOREIGN / "KernelBench")]
    small, one = (
        [f"small/{name}" for name in ("bins", "experts", "moments", "scale_py", "total")],
        ["1/1", "1/2", "1/3"],
    )
    for names, expected in {
        (): [*small, *one],
        ("small/scale",): ["small/scale_py"],
        ("1/2", "small/bins", "1/2"): ["1/2", "small/bins"],
        ("1",): one,
        ("1/3 Values",): ["1/3"],
        ("small",): small,
    }.items():
        picked, unknown = chosen(candidates, names, FOREIGN)
        assert ([found.name for found in picked], unknown) == (expected, {}), names
    picked, unknown = chosen(candidates, ("1/33", "1/2", "zzz"), FOREIGN)
    assert [found.name for found in picked] == ["1/2"], "a bad name stops only itself"
    assert unknown["1/33"] == "no such problem; did you mean `1/3`?"
    _, many = chosen([replace(candidates[0], name=f"a/{number}") for number in range(12)], ("zzz",), FOREIGN)
    assert many["zzz"].endswith("`a/8`, `a/9` and 2 more"), "ten at most are named"
    with pytest.raises(UsageError, match="holds no such problem"):
        chosen([], (), FOREIGN)
    assert kernelbench.candidates(FOREIGN / "KernelBench")[1] == Candidate(
        "kernelbench",
        "1/2",
        "1/2 Recurrent_Net",
        "kernelbench_1_2_recurrent_net",
        "Recurrent Net (KernelBench 1/2)",
        FOREIGN / "KernelBench" / "level1" / "2_Recurrent_Net_.py",
    )


@given(st.lists(st.text(max_size=80), min_size=1, max_size=3))
def test_a_slug_is_valid_whatever_a_folder_is_called(words: list[str]) -> None:
    slug = slug_of("kernelbench", *words)
    assert re.fullmatch(r"[a-z0-9_]{1,64}", slug)


_leaves = (
    st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
_tables = st.dictionaries(st.text(), _leaves | st.lists(_leaves) | st.dictionaries(st.text(), _leaves), max_size=4)


@given(_tables, _tables, st.lists(_tables.filter(lambda table: len(table) > 1), min_size=1, max_size=3))
def test_written_toml_is_read_back(plain: dict[str, Any], table: dict[str, Any], tables: list[Any]) -> None:
    document = {**{f"k{key}": value for key, value in plain.items()}, "table": table, "tables": tables}
    assert tomllib.loads(written(document)) == document


@pytest.fixture
def ready(tmp_path: Path) -> Drafted:
    foreign = stated(tmp_path, [{"n": 4}])
    return foreign, draft(
        foreign, answered([({"tuple": [tensor(0, 4), tensor(1, 4)]}, tensor(1, 4))] * 2, filled={"1": "yes"})
    )


def test_a_folder_is_written_once_and_points_to_the_files(tmp_path: Path, ready: Drafted) -> None:
    foreign, keys = ready
    at = tmp_path / "problems" / "a_b"
    problem = folder.write(at, foreign, keys, tmp_path, tmp_path, force=False)
    assert problem == load(at)
    assert sorted(path.name for path in at.parent.iterdir()) == ["a_b"]  # no temporary folder
    assert sorted(path.name for path in at.iterdir()) == ["README.md", "problem.toml"]
    assert problem.foreign is not None
    assert problem.foreign.files[0].path == "../../reference.py"
    assert "| `x0` | input | `[4]` | float32 |" in (at / "README.md").read_text()
    with pytest.raises(NotImportedError, match="a_b exists; --force"):
        folder.write(at, foreign, keys, tmp_path, tmp_path, force=False)
    (at / "samples").mkdir()
    folder.write(at, foreign, {**keys, "title": "again"}, tmp_path, tmp_path, force=True)
    assert load(at).title == "again"
    assert (at / "samples").is_dir()


def test_own_problems_stay_and_one_that_would_not_load_leaves_nothing(tmp_path: Path, ready: Drafted) -> None:
    foreign, keys = ready
    own, bad = tmp_path / "a_b", {**keys, "cost": {"bytes": "x", "flops": 0}}
    own.mkdir()
    (own / "problem.toml").write_text('title = "mine"')
    with pytest.raises(NotImportedError, match="was not imported; move it away"):
        folder.write(own, foreign, keys, tmp_path, tmp_path, force=True)
    assert (own / "problem.toml").read_text() == 'title = "mine"'
    with pytest.raises(NotImportedError, match=r"would not be valid: key `cost\.bytes`"):
        folder.write(tmp_path / "into" / "a_b", foreign, bad, tmp_path, tmp_path, force=False)
    assert not (tmp_path / "into").exists()


@pytest.mark.parametrize("made", [gpu_mode_problem, kernelbench_problem])
def test_the_baselines_are_the_problem_s_own_reference(tmp_path: Path, made: Callable[[Path], Problem]) -> None:
    problem, reference = made(tmp_path), tmp_path / "reference"
    settings = Settings(root=tmp_path)
    assert baselines.write(problem, reference / problem.slug) == ""
    [eager] = find_baselines(settings, problem, "cuda")  # the default on a GPU
    assert eager.name == "eager.py"
    assert f"{problem.entry}(" in eager.source.decode()
    assert "torch.compile(" not in eager.source.decode()
    assert "torch.compile(" in (reference / problem.slug / "compiled.py").read_text()


def test_importing_again_overwrites_only_the_baselines_that_it_wrote(tmp_path: Path) -> None:
    problem, folder = kernelbench_problem(tmp_path), tmp_path / "reference"
    baselines.write(problem, folder)
    eager, compiled = folder / "eager.py", folder / "compiled.py"
    first = eager.read_bytes()
    compiled.write_bytes(compiled.read_bytes() + b"\n# mine now\n")
    changed, renamed = compiled.read_bytes(), problem.model_copy(update={"slug": "another"})
    assert baselines.write(renamed, folder) == ""
    before, after = (text.partition(b"\n") for text in (first, eager.read_bytes()))
    assert before[0][-64:] != after[0][-64:], "the hash"
    assert after[2] == before[2].replace(problem.slug.encode(), b"another")
    assert compiled.read_bytes() == changed


def test_a_reference_that_cannot_be_a_submission_is_no_baseline_and_its_old_ones_go(tmp_path: Path) -> None:
    source = "from hidden import f\ndef ref_kernel(data): return f(data)\n"
    problem, folder = gpu_mode_problem(tmp_path), tmp_path / "reference"
    assert baselines.write(problem, folder) == ""
    assert problem.foreign is not None
    (tmp_path / "other.py").write_text(source)
    first = problem.foreign.files[0].model_copy(update={"path": str(tmp_path / "other.py")})
    kept_back = first.model_copy(update={"name": "hidden.py"})
    foreign = problem.foreign.model_copy(update={"files": (first, kept_back)})
    why = baselines.write(problem.model_copy(update={"foreign": foreign}), folder)
    assert why == "needs hidden.py, which submissions cannot import"
    assert not [*folder.glob("*.py")]


ANSWER = [(tensor(0, 4), tensor(1, 4))] * 2


def outside(tmp_path: Path) -> tuple[Path, Path, Problem]:
    """A project and a checkout beside it, and a problem that was imported from the one into the other."""
    project, checkout = tmp_path / "project", tmp_path / "checkout"
    for made_folder in (project, checkout / "set" / "p"):
        made_folder.mkdir(parents=True)
    foreign = stated(checkout / "set" / "p", [{"n": 4}])
    made = folder.write(
        project / "problems" / "a_b", foreign, draft(foreign, answered(ANSWER)), checkout, project, force=False
    )
    return project, checkout, made


def test_a_problem_from_outside_the_project_holds_no_path_of_this_machine(tmp_path: Path) -> None:
    project, checkout, made = outside(tmp_path)
    text = (project / "problems" / "a_b" / "problem.toml").read_text()
    assert str(tmp_path) not in text
    assert 'path = "set/p/reference.py"' in text
    moved = checkout.rename(tmp_path / "elsewhere")
    again = load(made.directory, checkouts={"gpu-mode": moved})
    assert again.sha256 == made.sha256
    assert foreign_files(again.directory, again.foreign) == {"reference.py": b"# theirs"}  # type: ignore[arg-type]
    (moved / "set/p/reference.py").rename(moved / "renamed.py")
    (moved / "set/p/reference.py").write_text("# another")
    again = load(made.directory, checkouts={"gpu-mode": moved})
    assert again.foreign is not None
    assert again.foreign.files[0].path == str(moved / "renamed.py"), "it is found by its content"


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda checkout: checkout.rename(checkout.with_name("gone")), "checkout, which is not there; set `gpu_mode_c"),
        (lambda checkout: (checkout / "set/p/reference.py").unlink(), "set/p/reference.py is not in the checkout"),
        (lambda checkout: (checkout / "set/p/reference.py").write_text("x"), "has changed since it was imported; imp"),
    ],
)
def test_a_missing_foreign_file_is_reported(tmp_path: Path, change: Callable[[Path], object], line: str) -> None:
    _, checkout, made = outside(tmp_path)
    change(checkout)
    with pytest.raises(ProblemError) as refused:
        load(made.directory, checkouts={"gpu-mode": checkout})
    assert line in str(refused.value)
    with pytest.raises(ProblemError, match="or KERNELMARK_GPU_MODE_CHECKOUT, to a checkout on this machine"):
        load(made.directory)


def test_a_foreign_file_that_is_gone_is_not_a_problem_without_its_files(tmp_path: Path) -> None:
    problem = gpu_mode_problem(tmp_path, "# theirs")  # with absolute paths, as older versions wrote them
    (tmp_path / "reference.py").unlink()
    with pytest.raises(ProblemError) as refused:
        load(problem.directory)
    assert str(refused.value).endswith(
        "(No such file or directory); restore the file, or import the problem again from where it is"
    )


@pytest.mark.parametrize(
    "text", ["", "# none\n", 'author = "ada"', 'author = "ada"\n\n# of us\n[teams]\nours = ["ada", "bob"]\n']
)
def test_the_import_names_the_checkout_in_the_settings(tmp_path: Path, text: str) -> None:
    project, checkout, _ = outside(tmp_path)
    (project / "kernelmark.toml").write_text(text)
    before, into = Settings.load(project), project / "problems"
    refuse_another_checkout(before, "gpu-mode", checkout, into)
    assert "KERNELMARK_GPU_MODE_CHECKOUT" in name_checkout(before, "gpu-mode", checkout, into)
    after = Settings.load(project)
    assert after.checkouts == {"gpu-mode": checkout}
    assert {**after.model_dump(), "gpu_mode_checkout": None} == before.model_dump()
    assert find_problem(after, "a_b").slug == "a_b"
    assert name_checkout(after, "gpu-mode", checkout, into) == ""
    with pytest.raises(UsageError, match="is not the checkout that the settings name"):
        refuse_another_checkout(after, "gpu-mode", tmp_path / "another", into)


def test_a_checkout_in_the_project_needs_no_setting(tmp_path: Path, ready: Drafted) -> None:
    into = tmp_path / "problems"
    made = folder.write(into / "a_b", *ready, tmp_path, tmp_path, force=False)
    assert load(made.directory).sha256 == made.sha256
    assert name_checkout(Settings(root=tmp_path), "gpu-mode", tmp_path, into) == ""
    assert not (tmp_path / "kernelmark.toml").exists()


FACTS = b'{"tensor": {"id": "0", "dtype": "float32", "shape": [%b], "strides": [%b]}}'
CASE = b'{"data": %b, "result": {"none": true}}'
FORGED_VALUES = [
    b'{"number": 1e999}',
    b'{"number": 1%b}' % (b"0" * 400),
    FACTS % (b"-1", b"1"),
    FACTS % (b"1", b""),
    b'{"eval": "1"}',
    b'{"list": [' * 30 + b"]}" * 30,
    b'{"text": "%b"}' % (b"x" * 2000),
]
FORGED = [b"", b"\xff", b"null", b"1" * 5000, b"[" * 100_000, b'{"cases": %b' % (b"[" * 100_000), b'{"cases": []}']
FORGED += [b'{"cases": [%b, %b]}' % (CASE % value, CASE % value) for value in FORGED_VALUES]
UNLIKE = b'{"cases": [%b, %b]}' % (CASE % b'{"list": []}', CASE % b'{"text": "x"}')


@pytest.mark.parametrize(
    ("forged", "why"),
    [*((raw, "what came out of the sandbox is not an answer") for raw in FORGED), (UNLIKE, "has another structure")],
    ids=range(len(FORGED) + 1),
)
def test_a_forged_answer_fails_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forged: bytes, why: str) -> None:
    level = tmp_path / "checkout" / "level1"
    level.mkdir(parents=True)
    for name in ("1_Hostile.py", "2_Honest.py"):
        (level / name).write_text("class Model: pass\n")
    shape = {"cases": [{"data": {"tuple": [tensor(0, 4)]}, "result": tensor(1, 4)}] * 2, "names": ["x"]}
    honest = json.dumps(shape).encode()
    monkeypatch.setattr(
        "kernelmark.interop.importing.ask",
        lambda provider, device, problem, limit_s: forged if problem.candidate.name == "1/1" else honest,
    )
    ours = Importer(provider("process"), "cpu", tmp_path / "problems", tmp_path)
    hostile, other = ours.all("kernelbench", tmp_path / "checkout", (), 1)
    assert hostile.problem is None
    assert why in hostile.reason
    assert other.problem is not None, other.reason
