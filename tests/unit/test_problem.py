"""Loading a problem: the meaning of a valid file, and the one line that every invalid one gets."""

from __future__ import annotations

import random
import subprocess
import sys
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.errors import ProblemError
from harness.files.identity import length_prefixed_sha256
from harness.problem import Case, Problem, load
from harness.problem.load import identify
from harness.problem.resolve import costs_of_data
from harness.problem.spec import json_schema, schema_document
from tests.grading import problem_folder

ROOT = Path(__file__).resolve().parents[2]

GOOD = """
title = "Scaled rows"
entry = "scale_rows"
parameters = ["rows", "cols", "dtype"]
visibility = "after_deadline"
deadline = 2027-01-31T23:59:00+01:00

[[tensors]]
name = "x"
role = "input"
shape = ["rows", "cols"]
dtype = "dtype"
fill = { kind = "uniform", low = -1.0, high = 1.0 }

[[tensors]]
name = "ids"
role = "input"
shape = ["rows"]
dtype = "int32"
fill = { kind = "integers", low = 0, high = 9 }

[[tensors]]
name = "parts"
role = "inout"
count = "rows + 1"
shape = ["index + 1", 4]
dtype = "float32"

[[tensors]]
name = "out"
role = "output"
shape = ["ceil_div(rows, 2) * cols"]
dtype = "dtype"

[[scalars]]
name = "alpha"
dtype = "float64"
value = 0.5

[[scalars]]
name = "total"
dtype = "int64"
value = "rows * cols"

[cost]
bytes = "rows * cols * sizeof(dtype)"
flops = 0

[tolerance]
factor = 2

[limits]
memory_bytes = 300_000_000

[[tests]]
name = "small"
params = { rows = 3, cols = 5, dtype = "float32" }

[[tests]]
name = "masked"
params = { rows = 3, cols = 5, dtype = "float16" }
fill = { x = { kind = "normal", neg_inf = 0.1 } }
devices = ["cuda"]
hidden = true

[[benchmarks]]
name = "large"
params = { rows = 200, cols = 50, dtype = "bfloat16" }
"""


def _write(directory: Path, toml: str, reference: str = "def reference(x, ids, parts, alpha, total): ...\n") -> Path:
    return problem_folder(directory, toml, reference)


@pytest.fixture
def good(tmp_path: Path) -> Problem:
    return load(_write(tmp_path / "scale_rows", GOOD))


def test_a_good_file(good: Problem) -> None:
    assert good.slug == "scale_rows"
    assert good.tolerance.factor == 2.0
    assert good.tolerance.floor_ulps == 4.0
    assert good.resolve(good.tests[0]).tolerance == good.tolerance
    assert good.limits.memory_bytes == 300_000_000
    assert good.limits.call_s == 30.0
    assert [case.devices for case in good.tests] == [("cpu", "cuda"), ("cuda",)]
    assert not good.closed(datetime(2027, 1, 31, 22, 59, tzinfo=UTC))
    assert good.closed(datetime(2027, 1, 31, 22, 59, 1, tzinfo=UTC))
    toml, reference = ((good.directory / name).read_bytes() for name in ("problem.toml", "reference.py"))
    lines = [line for line in toml.splitlines(keepends=True) if not line.startswith((b"visibility", b"deadline"))]
    assert good.sha256 == length_prefixed_sha256(b"".join(lines), reference)


RULES = 'visibility = "after_deadline"\ndeadline = 2027-01-31T23:59:00+01:00\n'


def test_deadline_and_visibility_are_not_part_of_the_hash(tmp_path: Path, good: Problem) -> None:
    bare = _write(tmp_path / "bare", GOOD.replace(RULES, ""))
    raw = [(bare / name).read_bytes() for name in ("problem.toml", "reference.py")]
    assert load(bare).sha256 == length_prefixed_sha256(*raw) == good.sha256, "a file without rules keeps its hash"
    for number, rules in enumerate(
        (
            "deadline = 2030-01-01T00:00:00Z # moved\n",
            'tags = []\nvisibility="never"\n',
            'submission = { file = "kernel.cu" }\n',
            RULES.replace("\n", "\r\n"),
            f'{RULES}grace = "1h30m"\nlate = {{ days = 2, penalty_per_day = 0.3 }}\n',
        )
    ):
        directory = _write(tmp_path / f"other_{number}", "")
        (directory / "problem.toml").write_bytes(GOOD.replace(RULES, rules).encode())
        assert load(directory).sha256 == identify(directory) == good.sha256
    other = _write(tmp_path / "other", GOOD.replace("Scaled", "Rescaled"))
    assert load(other).sha256 != good.sha256


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (RULES, 'visibility = """\npublic"""\n'),
        (RULES, '"visibility" = "public"\n'),
        (RULES, 'tags = [\n"scan"]\n'),
        ('title = "Scaled rows"', 'title = """Scaled \\\ndeadline = 1"""'),
    ],
)
def test_a_rule_that_is_no_line_of_its_own_is_refused(tmp_path: Path, old: str, new: str) -> None:
    directory = _write(tmp_path / "odd", GOOD.replace(old, new))
    for read in (load, identify):
        with pytest.raises(ProblemError, match="is not on a line of its own"):
            read(directory)


DENSE = """
[[baselines]]
name = "dense"
kind = "dense"
entry = "plain"

[[baselines.tensors]]
name = "a"
role = "input"
shape = ["rows", "cols"]
dtype = "float16"

[[baselines.tensors]]
name = "b"
role = "output"
shape = ["rows"]
dtype = "dtype"
"""


def test_baselines_are_not_part_of_the_hash(tmp_path: Path, good: Problem) -> None:
    problem = load(_write(tmp_path / "compared", GOOD + DENSE))
    assert problem.sha256 == identify(problem.directory) == good.sha256
    assert problem.of_baseline("eager") is problem
    assert problem.baseline_label("eager") == "eager"
    plain = problem.of_baseline("dense")
    assert problem.baseline_label("dense") == "dense (another computation)"
    [large] = plain.benchmarks
    resolved = plain.resolve(large)
    assert (plain.entry, resolved.symbol) == ("plain", "plain_bfloat16")
    assert [(t.name, t.shape, t.dtype) for t in resolved.tensors] == [
        ("a", (200, 50), "float16"),
        ("b", (200,), "bfloat16"),
    ]
    moved = _write(tmp_path / "moved", GOOD.replace("[cost]", f"{DENSE}\n[cost]"))
    for read in (load, identify):
        with pytest.raises(ProblemError, match="key `baselines` is not at the end; move "):
            read(moved)


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ('"dense"\nentry', '"sparse"\nentry', "`baselines[0].kind`: should be 'dense'; it is 'sparse'"),
        ('["rows"]', '["row"]', "`baselines[0]` does not suit case 'small': key `tensors[1].shape[0]` has no value"),
        ('"a"', '"rows"', "`baselines[0].tensors[0].name` is 'rows', as is `baselines[0].parameters[0]`"),
        ('"float16"', '"float16"\nfill = { kind = "generated" }', "`baselines[0].tensors` has `a` generated;"),
        ("\n[[base", DENSE + "\n[[base", "`baselines[0].name` is 'dense', as is another's; every baseline needs"),
    ],
)
def test_a_bad_baseline_gets_one_line(tmp_path: Path, old: str, new: str, line: str) -> None:
    assert old in DENSE
    with pytest.raises(ProblemError) as caught:
        load(_write(tmp_path / "bad", GOOD + DENSE.replace(old, new, 1)))
    assert f"problem.toml: key {line}" in str(caught.value)


def test_a_case_resolves(good: Problem) -> None:
    case = good.resolve(good.tests[0])
    assert case.symbol == "scale_rows_float32"
    assert [(t.name, t.role, t.shape, t.dtype, t.list_name) for t in case.tensors] == [
        ("x", "input", (3, 5), "float32", None),
        ("ids", "input", (3,), "int32", None),
        ("parts[0]", "inout", (1, 4), "float32", "parts"),
        ("parts[1]", "inout", (2, 4), "float32", "parts"),
        ("parts[2]", "inout", (3, 4), "float32", "parts"),
        ("parts[3]", "inout", (4, 4), "float32", "parts"),
        ("out", "output", (10,), "float32", None),
    ]
    assert [(s.name, s.dtype, s.value, type(s.value)) for s in case.scalars] == [
        ("alpha", "float64", 0.5, float),
        ("total", "int64", 15, int),
    ]
    assert (case.minimum_bytes, case.minimum_flops) == (60, 0)


def test_a_float64_scalar_may_follow_from_the_sizes(tmp_path: Path) -> None:
    toml = GOOD.replace("value = 0.5", 'value = "1 / sqrt(cols)"')
    problem = load(_write(tmp_path / "scale_rows", toml))
    assert problem.resolve(problem.tests[0]).scalars[0].value == 5**-0.5


def test_a_cost_counts_the_elements_of_a_list(tmp_path: Path) -> None:
    toml = GOOD.replace('bytes = "rows * cols * sizeof(dtype)"', 'bytes = "4 * elements(parts) + elements(ids)"')
    assert toml != GOOD
    problem = load(_write(tmp_path / "scale_rows", toml))
    assert problem.resolve(problem.tests[0]).minimum_bytes == 4 * 4 * (1 + 2 + 3 + 4) + 3


def test_outputs_may_have_tolerances_of_their_own(tmp_path: Path) -> None:
    own = "[tolerance.parts]\nfactor = 8\n\n[tolerance.out]\noff_by = 1\nshare = 0.001\n\n[limits]"
    problem = load(_write(tmp_path / "own", GOOD.replace("[limits]", own)))
    tolerance = problem.resolve(problem.tests[0]).tolerance
    assert [tolerance.of_output(name).factor for name in ("parts[2]", "out", "x")] == [8, 2, 2]
    assert (tolerance.of_output("out").off_by, tolerance.of_output("out").share) == (1, 0.001)
    assert tolerance.of_output("x") is tolerance
    assert (tolerance.off_by, problem.exact_outputs) == (None, [])


def test_a_cost_may_depend_on_generated_inputs(tmp_path: Path) -> None:
    cost = 'bytes = "4 * sum_of(ids) + elements(out)"'
    toml = GOOD.replace('bytes = "rows * cols * sizeof(dtype)"', cost)
    toml = toml.replace('{ kind = "integers", low = 0, high = 9 }', '{ kind = "generated" }')
    problem = load(_write(tmp_path / "of_data", toml))
    case = problem.resolve(problem.benchmarks[0])
    assert case.minimum_bytes == 5000, "before anything is generated"
    assert costs_of_data(problem, case, {"ids": 100}) == (5400, 0)


def test_a_case_may_lack_an_input(tmp_path: Path) -> None:
    text = GOOD.replace('name = "ids"', 'name = "ids"\npresent = "rows - 200"')
    problem = load(_write(tmp_path / "optional", text.replace("flops = 0", 'flops = "elements(ids)"')))
    small, large = problem.resolve(problem.tests[0]), problem.resolve(problem.benchmarks[0])
    assert (small.absent, large.absent) == ({}, {"ids": 1})
    assert (small.minimum_flops, large.minimum_flops) == (3, 0)
    assert [tensor.name for tensor in large.tensors if tensor.role == "input"] == ["x"]


def test_a_case_may_replace_a_fill(good: Problem) -> None:
    assert [good.resolve(case).tensors[0].fill.neg_inf for case in good.tests] == [0.0, 0.1]
    assert good.resolve(good.tests[1]).hidden


def test_bounds_of_a_fill_follow_from_the_parameters(tmp_path: Path) -> None:
    toml = GOOD.replace("high = 9 }", 'high = "rows * cols - 1" }').replace("low = -1.0,", 'low = "-1 / sqrt(cols)",')
    problem = load(_write(tmp_path / "scale_rows", toml))
    resolved = problem.resolve(problem.tests[0])
    assert [tensor.fill.bounds for tensor in resolved.tensors[:2]] == [(-1 / 5**0.5, 1.0), (0, 14)]


def test_a_foreign_case_is_refused(good: Problem) -> None:
    with pytest.raises(ProblemError, match=r"key `case 'mine'.params` lacks `dtype`"):
        good.resolve(Case(name="mine", params={"rows": 1, "cols": 1}))


def test_a_case_draws_its_sizes(tmp_path: Path) -> None:
    text = 'params = { rows = 3, dtype = "float32" }\ndraw = { cols = { low = 5, high = 33, multiple_of = 8 } }'
    fixed = 'params = { rows = 3, cols = 5, dtype = "float32" }'
    problem = load(_write(tmp_path / "drawn", GOOD.replace(fixed, text)))
    case, other = problem.tests
    assert [extreme.params["cols"] for extreme in case.extremes()] == [8, 32]
    seen = {problem.resolve(case.drawn(random.SystemRandom())).params["cols"] for _ in range(300)}
    assert seen == {8, 16, 24, 32}
    assert case.drawn(random.Random(1)).params.keys() == {"rows", "cols", "dtype"}
    assert other.drawn(random.Random(1)) is other
    assert list(other.extremes()) == [other]
    with pytest.raises(ProblemError, match="was not drawn from"):
        problem.resolve(case)


def test_a_problem_cannot_be_changed(good: Problem) -> None:
    with pytest.raises(ValueError, match="frozen"):
        good.title = "Other"


def drawn(draw: str, line: str) -> tuple[str, str, str]:
    """A case of `BAD` whose first test draws its columns from these ranges."""
    text = 'rows = 3, dtype = "float32" }'
    return text.replace("3,", "3, cols = 5,"), f"{text}\ndraw = {draw}", line


INTEGERS, DEADLINE = 'kind = "integers", low = 0, high = 9', "2027-01-31T23:59:00+01:00"
# What is replaced in GOOD, by what, and which key the line must name, and say of it.
BAD: list[tuple[str, str, str]] = [
    # Keys and types.
    ("title =", "titel =", "`titel` is unknown; did you mean `title`?"),
    ('title = "Scaled rows"', "", "`title` is missing; it is one line for people"),
    ('title = "Scaled rows"', "title = 3", "`title`: should be a valid string; it is 3"),
    ('title = "Scaled rows"', 'title = "Scaled\\nrows"', "`title`: a title is one line of text; it is"),
    ('role = "output"', 'rolle = "output"', "`tensors[3].rolle` is unknown; did you mean `role`?"),
    ("rows = 200", "rwos = 300", "`benchmarks[0].params.rwos` is unknown; did you mean `rows`?"),
    ("rows = 200, ", "", "`benchmarks[0].params` lacks `rows`; give every parameter a value"),
    ("rows = 200", "rows = 3.5",
     "`benchmarks[0].params.rows`: should be a valid integer, or should be a valid string; it is 3.5"),
    ("rows = 200", "rows = true", "`benchmarks[0].params.rows`: should be a valid integer"),
    ("hidden = true", 'hidden = "yes"', "`tests[1].hidden`: should be a valid boolean; it is 'yes'"),
    ("factor = 2", "factor = 0", "`tolerance.factor`: should be greater than 0; it is 0"),
    ("factor = 2", "factor = nan", "`tolerance.factor`: should be"),
    ('name = "large"', 'name = "large"\ndeadline = 2027-01-31T23:59:00Z',
     "`benchmarks[0].deadline` is unknown; `deadline` belongs above the first table: move the line there"),
    ('role = "output"', 'role = "output"\ntolerance = { off_by = 1 }',
     "`tensors[3].tolerance` is unknown; `tolerance` is a table of its own: write it below a line [tolerance]"),
    ('role = "output"', 'role = "ouput"', "`tensors[3].role`: should be 'input', 'output' or 'inout'; it is 'ouput'"),
    ('"cuda"', '"gpu"', "`tests[1].devices[0]`: should be 'cpu' or 'cuda'; it is 'gpu'"),
    ('devices = ["cuda"]', "devices = []", "`tests[1].devices`: "),
    ("neg_inf = 0.1", "neg_inf = 1.1", "`tests[1].fill.x.neg_inf`: should be less than or equal to 1; it is 1.1"),
    # Names.
    ('name = "x"', 'name = "x y"', "`tensors[0].name`: 'x y' is not a valid name"),
    ('name = "x"', 'name = "lambda"', "`tensors[0].name`: 'lambda' is a keyword"),
    ('name = "x"', 'name = "template"', "`tensors[0].name`: 'template' is a keyword"),
    ('name = "x"', 'name = "index"', "`tensors[0].name`: 'index' has a meaning"),
    ('name = "x"', 'name = "out"', "`tensors[3].name` is 'out', as is `tensors[0].name`"),
    ('name = "x"', 'name = "rows"', "`tensors[0].name` is 'rows', as is `parameters[0]`"),
    ('name = "large"', 'name = "small"', "`benchmarks[0].name` is 'small', as is `tests[0].name`"),
    ('name = "large"', 'name = ""', "`benchmarks[0].name`: a case's name is one line"),
    ('entry = "scale_rows"', 'entry = "scale-rows"', "`entry`: 'scale-rows' is not a valid name"),
    # Shapes, dtypes, expressions.
    ('"cols"]', '"columns"]',
     "`tensors[0].shape[1]` has no value: `columns`: `columns` is not a parameter; parameters that hold"),
    ('"cols"]', '"dtype"]', "`tensors[0].shape[1]` has no value: `dtype`: `dtype` holds 'float32', not a number"),
    ('"cols"]', '"cols / 2"]',
     "`tensors[0].shape[1]`: `cols / 2`: only + - * // % ** are allowed; write `//` for whole-number division\n"),
    ('["rows", "cols"]\ndtype', '"rows"\ndtype', '`tensors[0].shape`: should be a list; write ["rows"]\n'),
    ("cols = 50", "cols = -1", "`tensors[0].shape[1]` is -1 in benchmarks[0]; a dimension is at least 0"),
    ("cols = 50", "cols = 5_550_000_000",
     "`tensors[0].shape` has 1,110,000,000,000 elements in benchmarks[0]; a tensor has at most 2⁴⁰"),
    ('"rows + 1"', '"rows - 3"', "`tensors[2].count` is 0 in tests[0]; a list has 1 to 8192 tensors"),
    ("int32", "int31", "`tensors[1].dtype` is 'int31', neither a dtype nor a parameter; did you mean `int32`?"),
    ('dtype = "int32"', 'dtype = "rows"', "`tensors[1].dtype` names the parameter `rows`, which holds 3"),
    ("bfloat16", "bfloat61", "`benchmarks[0].params.dtype` is 'bfloat61', not a dtype; did you mean `bfloat16`?"),
    ('dtype = "bfloat16"', "dtype = 16", "`tensors[0].dtype` names the parameter `dtype`, which holds 16"),
    ('"rows * cols"', '"rows * kols"', "`scalars[1].value` has no value: `rows * kols`: `kols` is not a parameter"),
    ('"rows * cols"', '"rows / cols"', "`scalars[1]`: `rows / cols`: only + - * // % ** are allowed; write `//`"),
    ("value = 0.5", 'value = "1 / (rows - 3)"', "`scalars[0].value` has no value: `1 / (rows - 3)`: division by zero"),
    ('"rows * cols"', "1.5", "`scalars[1]`: an int64 scalar needs a whole number"),
    ("sizeof(dtype)", "sizeof(dytpe)",
     "`cost.bytes` has no value: `rows * cols * sizeof(dytpe)`: sizeof(dytpe): 'dytpe' is not a dtype"),
    ("flops = 0", "flops = -1", "`cost` is 60 bytes and -1 flops in tests[0]"),
    # Drawn sizes.
    ("cols = 5,", 'cols = 5, dtpye = "int8",', "`tests[0].params.dtpye` is unknown"),
    drawn("{ cols = { low = 1, hihg = 5 } }", "`tests[0].draw.cols.hihg` is unknown; did you mean `high`?"),
    drawn("{ cols = { low = 1 } }", "`tests[0].draw.cols.high` is missing; it is the greatest"),
    drawn("{ cols = { low = 5, high = 5 } }", "`tests[0].draw.cols` holds fewer than two numbers"),
    drawn("{ cols = { low = 1, high = 15, multiple_of = 8 } }", "`tests[0].draw.cols` holds fewer than two numbers"),
    drawn(
        "{ cols = { low = -9223372036854775807, high = 9223372036854775807 } }",
        "`tensors[0].shape[1]` is -9223372036854775807 in tests[0]",
    ),
    drawn("{ cols = { low = -1, high = 5 } }", "`tensors[0].shape[1]` is -1 in tests[0]; a dimension is at least"),
    drawn("{ cols = { low = 1, high = 400_000_000_000 } }", "`tensors[0].shape` has 1,200,000,000,000 elements"),
    drawn("{ kols = { low = 1, high = 5 } }", "`tests[0].draw.kols` is unknown; did you mean `cols`?"),
    drawn("{ rows = { low = 1, high = 5 } }", "`tests[0].draw.rows` has a value in `params` as well"),
    drawn("{}", "`tests[0].params` lacks `cols`; give every parameter a value"),
    ('rows = 3, cols = 5, dtype = "float32" }', "rows = 3, cols = 5 }\ndraw = { dtype = { low = 1, high = 2 } }",
     "`tensors[0].dtype` names the parameter `dtype`, which holds 1"),
    ('rows = 200, cols = 50, dtype = "bfloat16" }',
     'rows = 200, dtype = "bfloat16" }\ndraw = { cols = { low = 1, high = 5 } }',
     "`benchmarks[0].draw` is given; only tests can draw sizes: a benchmark's are fixed"),
    # Fills.
    ('dtype = "dtype"\n\n[[scalars]]', 'dtype = "dtype"\nfill = { kind = "zeros" }\n\n[[scalars]]',
     "`tensors[3]`: an output has no `fill`"),
    ("fill = { x =", "fill = { out =", "`tests[1].fill.out` fills an output; outputs are poisoned"),
    ("fill = { x =", "fill = { y =", "`tests[1].fill.y` names no tensor"),
    ("fill = { x =", "fill = { ids =", "`tests[1].fill.ids.neg_inf` asks for -inf, which int32 does not have"),
    ('"float16"', '"float8_e4m3fn"', "`tests[1].fill.x.neg_inf` asks for -inf, which float8_e4m3fn does not have"),
    ('fill = { kind = "integers", low = 0, high = 9 }', "",
     "`tensors[1].fill` is 'normal' for `ids`, which is int32; use { kind = \"integers\""),
    ('bytes = "rows * cols * sizeof(dtype)"', 'bytes = "elements(part)"',
     "`cost.bytes` has no value: `elements(part)`: `part` is not a tensor; parameters that hold a number: rows"),
    ('["rows"]', '["elements(x)"]',
     "`tensors[1].shape[0]` has no value: `elements(x)`: `elements` works only in costs"),
    (INTEGERS, 'kind = "choice", values = [1, 2.5]',
     "`tensors[1].fill` is 'choice' for `ids`, which is int32; use { kind = \"integers\""),
    (INTEGERS, 'kind = "choice", values = [1, 3_000_000_000]', "`tensors[1].fill` goes beyond what int32 can hold"),
    ("high = 9 }", "high = -9 }", "`tensors[1].fill`: `low` must not be above `high`"),
    (INTEGERS, 'kind = "powers", low = 0', "`tensors[1].fill` is 'powers' for `ids`"),
    ("low = 0, high = 9", "low = 0.5, high = 9", "`tensors[1].fill`: kind 'integers' needs whole numbers"),
    *(
        ('dtype = "int32"\nfill = { kind = "integers", low = 0, high = 9 }', f"dtype = {dtype!r}\nfill = {fill}", line)
        for dtype, fill, line in (
            ("uint16", '{ kind = "integers", high = 65536 }', "`tensors[1].fill` goes beyond what uint16 can hold"),
            ("complex64", '{ neg_inf = 0.1, kind = "zeros" }', "`tensors[1].fill.neg_inf` asks for -inf"),
            ("float8_e8m0fnu", '{ kind = "zeros" }', "`tensors[1].fill` is 'zeros' for `ids`, which is float8"),
            ("float8_e8m0fnu", '{ kind = "choice", values = [3] }', "`tensors[1].fill` is 'choice' for `ids`, whi"),
            ("float8_e8m0fnu", '{ kind = "powers", low = -128 }', "`tensors[1].fill` goes below 2^-127, the least"),
            ("float8_e8m0fnu", '{ kind = "powers", high = 128 }', "`tensors[1].fill` goes beyond what float8_e8m0"),
            ("float4_e2m1fn_x2", '{ kind = "choice", values = [5] }', "`tensors[1].fill` goes beyond what float4_"),
            ("float4_e2m1fn_x2", '{ kind = "choice", values = [2.5] }', "`tensors[1].fill` has values that float4"),
            ("float64", '{ kind = "powers", high = 5000 }', "`tensors[1].fill` goes beyond what float64 can hold"),
            ("complex64", '{ kind = "uniform", low = -2e38, high = 2e38 }', "`tensors[1].fill` spans more than the"),
            ("float64", '{ kind = "powers", high = "ids" }', "`tensors[1].fill.high` has no value: "),
        )
    ),
    (INTEGERS, 'kind = "choice"', "`tensors[1].fill`: kind 'choice' needs `values`"),
    ("high = 9 }", "high = 9, scale = 2.0 }", "`tensors[1].fill`: kind 'integers' does not use `scale`"),
    ("low = -1.0, high = 1.0", "low = 1.0, high = 1.0", "`tensors[0].fill`: `low` must be below `high`"),
    ('"integers", low = 0', '"generated"', "`tensors[1].fill`: kind 'generated' does not use `high`"),
    ("high = 9 }", 'high = "rows -" }', "`tensors[1].fill`: `rows -` is not an expression"),
    ("high = 9 }", 'high = "row" }', "`tensors[1].fill.high` has no value: `row`: `row` is not a parameter"),
    ("low = 0, high = 9", 'low = 4, high = "rows"',
     "`tensors[1].fill` has `low` = 4 and `high` = 3 in tests[0]; `low` must not be above `high`"),
    ("high = 9 }", 'high = "cols ** 20" }', "`tensors[1].fill` goes beyond what int32 can hold"),
    ('"float32" }', '"float32" }\noptions = { cols = 3 }',
     "`tests[0].options.cols` has the name of a parameter that `generate` gets anyway; choose another name"),
    ('"normal", neg_inf = 0.1', '"normal", scale = 1e4', "`tests[1].fill.x` goes beyond what float16 can hold"),
    ('"normal", neg_inf = 0.1', '"uniform", low = -4e4, high = 4e4', "`tests[1].fill.x` spans more than the largest"),
    ('"float32" }', '"float32" }\ndraw = { rows = [1, 3] }', "`tests[0].draw.rows`: should be a table"),
    ('"float32" }', '"float32" }\nmemory_gib = 8',
     '`tests[0].memory_gib` is given; only a test with devices = ["cuda"]'),
    ('entry = "scale_rows"', 'entry = "scale_rows"\nsubmission = { file = "a/b.py" }',
     "`submission.file`: string should match pattern"),
    ("memory_bytes = 300_000_000", "memory_bytes = 8192",
     "`limits.memory_bytes`: should be greater than 268435455; it is 8192"),
    ("[limits]", "[limits]\ntime_s = 1e10", "`limits.time_s`: should be less than or equal to 1000000000"),
    # Tolerances of single outputs.
    ("factor = 2", "factr = 2", "`tolerance.factr` is unknown; did you mean `factor`?"),
    ("factor = 2", "[tolerance.y]\nfactor = 2", "`tolerance.y` names no output; known: `parts`, `out`"),
    ("factor = 2", "[tolerance.out]\nof_by = 2", "`tolerance.out.of_by` is unknown; did you mean `off_by`?"),
    ("factor = 2", "[tolerance.out]\noff_by = -1", "`tolerance.out.off_by`: should be greater than or equal to 0"),
    ("factor = 2", "[tolerance.out]\nshare = 0.5", "`tolerance.out`: `share` is of the elements that may be off: add"),
    ("factor = 2", "[tolerance.out]\nrtol = 0.1", "`tolerance.out.rtol` is unknown; known: `factor`, `off_by`, `sh"),
    ("factor = 2", "[tolerance.out]\nfactor = 2\noff_by = 1", "`tolerance.out`: `off_by` decides in place of `factor`"),
    ("factor = 2", "off_by = 1\nrtol = 0.1\natol = 0.1", "`tolerance`: `off_by` decides in place of `rtol`: remove"),
    ('"rows * cols * sizeof(dtype)"', '"sum_of(x)"', "`cost.bytes` has no value: `sum_of(x)`: `sum_of` works"),
    # Inputs that a case may lack.
    ('role = "output"', 'role = "output"\npresent = "rows"',
     "`tensors[3]`: an output is in every call: remove `present`, which only an input can have"),
    ('role = "output"', 'role = "output"\nmemory = "host"', "`tensors[3]`: an output is in the device's memory:"),
    # Layouts of results.
    ('shape = ["ceil_div(rows, 2) * cols"]', 'shape = ["rows", "cols"]\nlayouts = ["column_major"]',
     "`tensors[3].layouts` are given for `out`, which no call returns; remove them, or choose the style"),
    ('role = "output"', 'role = "output"\nlayouts = ["rows"]',
     "`tensors[3].layouts[0]`: should be 'column_major' or 'channels_last'; it is 'rows'"),
    ('name = "x"', 'name = "x"\nlayouts = ["column_major"]',
     "`tensors[0]`: only an output without `strides` and `count` has `layouts`: remove one of them"),
    ('role = "output"', 'role = "output"\nlayouts = ["channels_last"]',
     "`tensors[3]`: channels_last needs 3 dimensions: remove it from `layouts`"),
    ('name = "x"', 'name = "x"\nmemory = "hbm"', "`tensors[0].memory`: should be 'device' or 'host'; it is 'hbm'"),
    ('name = "x"', 'name = "x"\npresent = "row"', "`tensors[0].present` has no value: `row`: `row` is not a parame"),
    # What must agree.
    ('"bfloat16" }', '"bfloat16" }\ndevices = ["cpu", "cpu"]', "`benchmarks[0].devices`: "),
    (f"deadline = {DEADLINE}", "", "`visibility` is 'after_deadline', but there is no `deadline`"),
    ("entry", 'tags = ["Big"]\nentry', "`tags[0]`: 'Big' is not a valid tag: use up to 24 lower-case letters"),
    ("23:59:00+01:00", "23:59:00", "`deadline`: should have timezone info"),
    (DEADLINE, "2027-01-31", "`deadline`: a date and time with its offset is needed"),
    (DEADLINE, "1801436340", "`deadline`: a date and time with its offset is needed"),
    (DEADLINE, f'"{DEADLINE}"', "`deadline`: a date and time is written without quotation marks"),
    ('"bfloat16" }', '"bfloat16" }\nweight = 0', "`benchmarks[0].weight`: should be greater than 0; it is 0"),
    ('"float32" }', '"float32" }\nweight = 2.0', "`tests[0].weight` is given; only benchmarks have weights"),
    ('"bfloat16" }', '"bfloat16" }\nhidden = true', "`benchmarks[0].hidden` is true; only tests can be hidden"),
    ('"bfloat16" }', '"bfloat16" }\ndevices = ["cuda"]', "`benchmarks` has no case for cpu, but `tests` does"),
    ('"float32" }', '"float32" }\ndevices = ["cuda"]', "`tests` has no case for cpu, but `benchmarks` does"),
    ('"cols", "dtype"]', '"cols", "cols"]', "`parameters[2]` is 'cols', as is `parameters[1]`"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "line"), BAD)
def test_a_bad_file_gets_one_line(tmp_path: Path, old: str, new: str, line: str) -> None:
    assert old in GOOD
    directory = _write(tmp_path / "bad", GOOD.replace(old, new, 1))
    with pytest.raises(ProblemError) as caught:
        load(directory)
    text = str(caught.value)
    assert f"{text}\n".startswith(f"{directory / 'problem.toml'}: key {line}")
    assert "\n" not in text


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('entry = "scale_rows"', "entry = scale_rows", "Invalid value"),
        ("[cost]", "[cost", "Expected ']'"),
        ('entry = "scale_rows"', 'title = "Again"', "Cannot overwrite a value"),
        ("high = 9 }", "high = 9 ", "Unclosed inline table"),
    ],
)
def test_bad_toml_names_its_line(tmp_path: Path, old: str, new: str, why: str) -> None:
    assert old in GOOD
    with pytest.raises(ProblemError) as caught:
        load(_write(tmp_path / "bad", GOOD.replace(old, new, 1)))
    number = GOOD[: GOOD.index(old)].count("\n") + 1
    assert str(caught.value).startswith(f"{tmp_path / 'bad' / 'problem.toml'}:{number} is not TOML: {why}")


def test_text_that_is_not_utf_8_names_its_line(tmp_path: Path) -> None:
    directory = _write(tmp_path / "bad", GOOD)
    (directory / "problem.toml").write_bytes(b"title = 'a'\nentry = '\xff'\n")
    with pytest.raises(ProblemError, match=r"problem\.toml:2 is not UTF-8 text"):
        load(directory)


def test_inputs_alone_are_no_problem(tmp_path: Path) -> None:
    toml = GOOD.replace('role = "inout"', 'role = "input"').replace('role = "output"', 'role = "input"')
    with pytest.raises(ProblemError, match="key `tensors` has no output"):
        load(_write(tmp_path / "bad", toml))


def test_a_dtype_must_reach_the_kernel(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match=r"key `parameters\[2\]` `dtype` is no tensor's dtype"):
        load(_write(tmp_path / "bad", GOOD.replace('dtype = "dtype"', 'dtype = "float32"')))


def test_missing_files(tmp_path: Path) -> None:
    directory = _write(tmp_path / "softmax", GOOD)
    with pytest.raises(ProblemError, match=r"sofmax is not a directory; did you mean `softmax`\?"):
        load(tmp_path / "sofmax")
    (directory / "reference.py").unlink()
    with pytest.raises(ProblemError, match=r"reference\.py does not exist; a problem is a directory with"):
        load(directory)
    (directory / "problem.toml").unlink()
    with pytest.raises(ProblemError, match=r"problem\.toml does not exist"):
        load(directory)


@pytest.mark.parametrize("name", ["Softmax", "soft-max", "soft max", "ßoftmax"])
def test_a_slug_is_plain(tmp_path: Path, name: str) -> None:
    with pytest.raises(ProblemError, match="is not a valid slug; use lower-case letters"):
        load(_write(tmp_path / name, GOOD))


def test_the_example_in_the_documents_is_a_problem(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "problems.md").read_text()
    toml = text.split("```toml\n")[1].split("```")[0]
    problem = load(_write(tmp_path / "softmax", toml, text.split("```python\n")[1].split("```")[0]))
    assert [case.name for case in problem.tests] == ["primes"]


TABLES = [json_schema(), *(table for name, table in json_schema()["$defs"].items() if name != "Late")]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table["title"])
def test_the_documents_name_every_key(table: dict[str, Any]) -> None:
    text = (ROOT / "docs" / "problems.md").read_text()
    assert [key for key in table["properties"] if f"`{key}`" not in text] == []


def test_the_schema_file_is_up_to_date() -> None:
    stored = (ROOT / "problems" / "problem.schema.json").read_text()
    assert stored == schema_document(), "run `make schemas`"


def test_the_schema_agrees_with_the_loader() -> None:
    validator = jsonschema.Draft202012Validator(json_schema())
    data = tomllib.loads(GOOD)
    data["deadline"] = data["deadline"].isoformat()
    validator.validate(data)
    for path in (ROOT / "problems").glob("*/problem.toml"):
        validator.validate(tomllib.loads(path.read_text()))
    assert not validator.is_valid({**data, "titel": "x"})
    assert not validator.is_valid({**data, "tests": []})


def test_importing_it_is_light() -> None:
    code = "import sys, harness.problem; print([m for m in ('torch', 'docker', 'numpy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('title = "Scaled rows"', "title = " + "[" * 5000, "nested too deeply"),
        ('title = "Scaled rows"', "title = " + "{a=" * 5000, "nested too deeply"),
        ("flops = 0", "flops = " + "9" * 5000, "too many digits"),
        ("flops = 0", "flops = 0x" + "f" * 5000, "key `cost.flops`"),
        ("factor = 2", "factor = 0x" + "f" * 5000, "key `tolerance.factor`"),
        ("flops = 0", "flops = { a = 1 }", "key `cost.flops`: "),
        ("value = 0.5", "value = { a = 1 }", "key `scalars[0].value`: "),
        ('value = "rows * cols"', 'value = "-9223372036854775808"', "exceeds"),
        ('rows = 3, cols = 5, dtype = "float32"', 'rows = {}, cols = 5, dtype = "float32"', "params.rows`: "),
    ],
)
def test_files_found_by_fuzzing_get_one_line(tmp_path: Path, old: str, new: str, why: str) -> None:
    assert old in GOOD
    with pytest.raises(ProblemError) as caught:
        load(_write(tmp_path / "made", GOOD.replace(old, new)))
    assert why in str(caught.value)
    assert "constrained" not in str(caught.value), "keys are those of the file"
    assert "\n" not in str(caught.value)


@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.integers(0, len(GOOD)),
    st.integers(0, 40),
    st.one_of(
        st.text(max_size=20),
        st.sampled_from(["-9223372036854775808", "1e308", "inf", "nan", "{ a = 1 }", "[]", "[[tests]]\n", '"', "0xff"]),
    ),
)
def test_a_file_with_a_piece_replaced_loads_or_gets_one_line(tmp_path: Path, place: int, cut: int, put: str) -> None:
    folder = problem_folder(tmp_path / "made", "", "def reference(): ...\n")
    (folder / "problem.toml").write_bytes((GOOD[:place] + put + GOOD[place + cut :]).encode("utf-8", "surrogatepass"))
    try:
        problem = load(folder)
    except ProblemError as error:
        message = str(error)
        assert "\n" not in message
        return
    for case in problem.tests + problem.benchmarks:
        resolved = problem.resolve(next(case.extremes()))
        assert all(size >= 1 for tensor in resolved.tensors for size in tensor.shape)
        assert all(s.dtype == "float64" or -(2**63) <= s.value < 2**63 for s in resolved.scalars)
