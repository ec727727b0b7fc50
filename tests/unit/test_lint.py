"""The lint of problems: each null kernel has a problem that it passes, which must be found, and a good twin.

A problem is made from a base by replacing parts of its text; a good twin is the base, or the same with one part less.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch

from harness.errors import ProblemError, SandboxError, UsageError
from harness.problem import load
from harness.problem_lint.examine import examine
from harness.problem_lint.finding import LintFinding, folded
from harness.problem_lint.null_kernels import LOWER, kernels, to_tf32
from harness.sandbox import provider
from kernelmark.authoring import lint
from kernelmark.authoring.samples import as_submission, read_samples
from kernelmark.grading.setup import PreparedJob
from kernelmark.project.settings import Settings
from kernelmark.text.progress import BatchReporter
from tests.documents import items
from tests.grading import problem_folder
from tests.unit.conftest import Command

ROOT = Path(__file__).resolve().parents[2]
TOML = """
title = "A problem to be spoilt"
entry = "solve"
parameters = ["n", "dtype"]
tensors = [
    { name = "x", role = "input", shape = ["n"], dtype = "dtype" },
    { name = "b", role = "input", shape = ["n"], dtype = "dtype" },
    { name = "y", role = "output", shape = ["n"], dtype = "dtype" },
]
cost = { bytes = "3 * n * sizeof(dtype)", flops = "n" }
tolerance = {}
tests = [
    { name = "test", params = { n = 4099, dtype = "float32" } },
    { name = "hidden test", params = { n = 5003, dtype = "float32" }, hidden = true },
]
benchmarks = [{ name = "benchmark", params = { n = 8192, dtype = "float32" } }]
"""
REFERENCE = """
import torch


def reference(x, b):
    return x + b
"""
Change = tuple[str, str]
NO_OTHER_VALUES = "no test has other values"  # a warning of every problem made from the base

X, B = 'name = "x", ', 'name = "b", '
IN_BF16, IN_F16 = ('dtype = "float32" }', 'dtype = "bfloat16" }'), ('dtype = "float32" }', 'dtype = "float16" }')
IN_F64, IN_F8 = ('dtype = "float32" }', 'dtype = "float64" }'), ('dtype = "float32" }', 'dtype = "float8_e4m3fn" }')
ZERO_B = (B, f'{B}fill = {{ kind = "zeros" }}, ')
INPLACE: list[Change] = [('name = "y", role = "output"', 'name = "y", role = "inout"'), ("(x, b)", "(x, b, y)")]
SMALL_INTEGERS = (X, f'{X}fill = {{ kind = "integers", low = -2, high = 2 }}, ')
INTEGERS = [SMALL_INTEGERS, (B, f'{B}fill = {{ kind = "integers", low = -2, high = 2 }}, ')]
NARROW = (X, f'{X}fill = {{ kind = "uniform", low = 1.0, high = 1.02 }}, ')
UNIFORM = (X, f'{X}fill = {{ kind = "uniform", low = 0.0, high = 1.0 }}, ')
LARGE = ("n = 8192", "n = 65536"), ("n = 4099", "n = 65537"), ("n = 5003", "n = 65539")
SORT, TWICE = ("x + b", "torch.sort(x).values"), ("x + b", "2 * x")
OPTIONAL_B: list[Change] = [(B, f'{B}present = "n", '), ("x + b", "x if b is None else x + b")]
# torch does no arithmetic on eight bits.
WIDENED = ("x + b", "sum(t if t.dtype is torch.float64 else t.float() for t in (x, b))")
# Both inputs, and not the output.
INT_INPUTS = ('"input", shape = ["n"], dtype = "dtype"', '"input", shape = ["n"], dtype = "int32"')
MATRICES: tuple[Change, ...] = (
    ('shape = ["n"]', 'shape = ["n", "n"]'),
    ('"3 * n * sizeof(dtype)"', '"3 * n ** 2 * sizeof(dtype)"'),
    ("n = 4099", "n = 67"),
    ("n = 5003", "n = 71"),
    ("n = 8192", "n = 128"),
    ("x + b", "x @ b"),
)


def usual(condition: str) -> Change:
    old, new = compare(condition)
    return old, new.replace("truth):", "truth, usual):")


def compare(condition: str) -> Change:
    body = f'    return None if {condition} else "wrong"\n'
    return "    return x + b\n", f"    return x + b\n\n\ndef compare(got, inputs, truth):\n{body}"


def made(directory: Path, changes: Sequence[Change]) -> Path:
    """A problem's directory with the base's text changed; every change must meet something."""
    toml, reference = TOML, REFERENCE
    for old, new in changes:
        assert old in toml + reference, old
        toml, reference = toml.replace(old, new), reference.replace(old, new)
    return problem_folder(directory, toml, reference)


def found(directory: Path, changes: Sequence[Change] = ()) -> list[LintFinding]:
    return list(examine(load(made(directory, changes))))


def passing(findings: Sequence[LintFinding], case: str) -> set[str]:
    return {f.kernel for f in findings if f.level == "error" and case in f.cases}


def errors(findings: Sequence[LintFinding]) -> list[str]:
    return [f"{f.kernel}: {f.what}" for f in findings if f.level == "error"]


DRAWN = (
    'params = { n = 5003, dtype = "float32" }',
    'params = { dtype = "float32" }, draw = { n = { low = 9, high = 5003 } }',
)
# Whole numbers: the order of `x`.
ORDER: list[Change] = [
    ('"output", shape = ["n"], dtype = "dtype"', '"output", shape = ["n"], dtype = "int32"'),
    ("x + b", "torch.sort(x, stable=True).indices.int()"),
]
CLOSE = (X, f'{X}fill = {{ kind = "uniform", low = -1.01, high = -1.0 }}, ')
FINE = ("tolerance = {}", "tolerance = { floor_ulps = 1.0 }")  # four ulps of eight bits are half of a value
_BAD: list[tuple[str, list[Change], list[Change]]] = [
    # The null kernel that passes, what spoils the problem, and what the good twin has of that.
    ("nothing written", [*INPLACE, ("x + b", "y + 1e-9 * x")], [*INPLACE, ("x + b", "y + x")]),
    ("a copy of `y`", [*INPLACE, ("x + b", "y + 1e-9 * x")], [*INPLACE, ("x + b", "y + x")]),
    (
        "all zeros",
        [compare("(got['y'] - truth['y']).abs().max() < 20")],
        [compare("torch.equal(got['y'], sum(inputs.values()))")],
    ),
    ("a constant", [IN_BF16, NARROW, TWICE], [IN_BF16, TWICE]),
    ("the result of other inputs", [IN_BF16, UNIFORM, *LARGE, SORT], [IN_BF16, SORT, *LARGE]),
    ("a copy of `x`", [ZERO_B], []),
    ("`b` ignored", [ZERO_B, *OPTIONAL_B], OPTIONAL_B),
    ("half of `y` written", [compare("torch.equal(got['y'][::9][:99], truth['y'].float()[::9][:99])")], []),
    ("half of `y` written", [*INPLACE, ("x + b", "torch.where(torch.arange(len(x)) < len(x) // 2, x, y)")], INPLACE),
    ("matrix products in tf32", [*MATRICES, *INTEGERS], [*MATRICES]),
    ("matrix products in tf32", [*MATRICES, ("tolerance = {}", "tolerance = { factor = 1e4 }")], [*MATRICES]),
    ("operands in float16", INTEGERS, []),
    ("arithmetic in float16", INTEGERS, []),
    ("operands in bfloat16", INTEGERS, []),
    ("arithmetic in bfloat16", INTEGERS, []),
    ("operands in float16", [*ORDER, *INTEGERS], [*ORDER, CLOSE]),
    ("arithmetic in bfloat16", [*ORDER, *INTEGERS], [*ORDER, CLOSE]),
    ("operands in float32", [IN_F64, *INTEGERS], [IN_F64]),
    ("arithmetic in float32", [IN_F64, *INTEGERS], [IN_F64]),
    ("operands in float8_e4m3fn", [IN_BF16, *INTEGERS], [IN_BF16]),
    ("operands in float8_e4m3fn", [IN_F16, *INTEGERS], [IN_F16]),
    ("operands in float8_e5m2", [IN_F8, WIDENED, FINE, *INTEGERS], [IN_F8, WIDENED, FINE]),
]


@pytest.mark.parametrize(("kernel", "spoilt", "twin"), _BAD, ids=lambda part: part if isinstance(part, str) else "")
def test_a_passing_null_kernel_is_found(kernel: str, spoilt: list[Change], twin: list[Change], tmp_path: Path) -> None:
    bad, good = found(tmp_path / "bad", spoilt), found(tmp_path / "good", twin)
    assert kernel in passing(bad, "benchmark")
    assert kernel in passing(bad, "test") & passing(bad, "hidden test")
    assert all(f.remedy for f in bad if f.kernel)
    [mentioned] = {"tolerance.factor" in f.remedy for f in bad if f.kernel == kernel}
    assert mentioned == (kernel in LOWERED and ORDER[0] not in spoilt), "equal outputs have no tolerance to be lowered"
    assert errors(good) == []


LOWERED = {name for name, _, _ in _BAD if re.search(r" in (tf32|b?float\d+)", name)}


def test_every_null_kernel_has_a_problem_that_it_passes(tmp_path: Path) -> None:
    """So that one that is never tried, or that nothing accepts, cannot hide."""
    problem = load(made(tmp_path / "p", [*INPLACE, *OPTIONAL_B]))
    known = {kernel.name for kernel in kernels(problem)}
    assert known == {kernel for kernel, _, _ in _BAD} | {"a copy of `b`"}
    assert {low for lows in LOWER.values() for low in lows} == {k.precision for k in kernels(problem)} - {None}


OVERFLOWS = ("x + b", "torch.exp(99 + x) / torch.exp(99 + b)")
UNLIKE_SUM = [*ORDER, ("torch.sort(x,", "torch.sort(x + 1e5 + b,")]
REFUSED = "refused in its own dtype: "
_UNSOUND: list[tuple[str, list[Change]]] = [
    # What the finding and its remedy say, and what spoils the problem; all are errors.
    ("elements of `y` are NaN or infinite, all inputs are finite", [("x + b", "torch.exp(400 * x)")]),
    (
        "every element of `y` is NaN or infinite",
        [(X, f'{X}fill = {{ kind = "zeros", neg_inf = 0.5 }}, '), ("x + b", "x.sum() + b")],
    ),
    (f"{REFUSED}`y` is wrong; raise `tolerance`", [OVERFLOWS]),
    (f"{REFUSED}.*; raise `tolerance`", [("tolerance = {}", "tolerance = { rtol = 1e-12, atol = 0.0 }")]),
    (f"{REFUSED}.*integers have no tolerance", UNLIKE_SUM),
    (f"{REFUSED}wrong; mend `compare`", [compare("False")]),
    (f"{REFUSED}.*raised TypeError", [compare("len(None)")]),
    (f"{REFUSED}.*raised KeyError: 'z is no output'", [usual("usual('z') is None")]),
    ("`y` holds one value, whatever the inputs are", [("x + b", "torch.full_like(x, 3)")]),
    ("gives another `y` when it gets the same inputs again", [("x + b", "x + b + torch.rand(1, device=x.device)")]),
    ("changes its input `x` in place", [("x + b", "x.add_(b)")]),
    ("the reference changes its input `x`", [("return x + b", "x.data.add_(b)\n    return x * 1")]),
    ("`cost.bytes` is 131,072, where all tensors have 98,304", [("3 * n * sizeof", "4 * n * sizeof")]),
    ("`y` is a float, and no input is", [*INTEGERS, INT_INPUTS, ("x + b", "(x + b) / 3")]),
    ("returned `y` with the shape", [("x + b", "(x + b)[:7]")]),
]


@pytest.mark.parametrize(("says", "spoilt"), _UNSOUND)
def test_a_case_that_cannot_be_graded_is_found(says: str, spoilt: list[Change], tmp_path: Path) -> None:
    lines = [f"{f.what}; {f.remedy}" for f in found(tmp_path / "bad", spoilt) if f.level == "error"]
    assert any(re.search(says, line) for line in lines), lines
    assert REFUSED not in says or all(re.search(says, line) for line in lines if REFUSED in line)


@pytest.mark.parametrize("spoilt", [("x + b", "(x + b)[:7]"), ("3 * n * sizeof", "4 * n * sizeof")])
def test_one_cause_is_one_error_with_the_numbers_of_its_first_case(spoilt: Change, tmp_path: Path) -> None:
    """The hidden test draws its size, so that several draws of it are examined."""
    [error] = [finding for finding in found(tmp_path / "p", [DRAWN, spoilt]) if finding.level == "error"]
    assert error.cases == ("benchmark", "test", "hidden test")
    assert error.what.endswith(" (in `benchmark`)")
    assert "8192" in error.what or "98,304" in error.what


def test_only_numbers_are_folded() -> None:
    whats = ["returned `y` as int32", "returned `y` as int64", "r.py:3: failed on 7", "r.py:4: failed on 7"]
    findings = [LintFinding("error", (name,), "", what) for name in "ab" for what in whats]
    assert [(finding.cases, finding.what) for finding in folded(findings)] == [(("a", "b"), what) for what in whats]


def test_a_lower_precision_may_pass_where_the_problem_says_so(tmp_path: Path) -> None:
    change = ("tolerance = {}", 'tolerance = { lower_precision = ["float16", "bfloat16"] }')
    assert errors(found(tmp_path / "said", [*INTEGERS, change])) == []
    [values, one, other] = [f for f in found(tmp_path / "stale", [change]) if f.level == "warning"]
    assert values.what.startswith(NO_OTHER_VALUES)
    assert one.what == "`tolerance.lower_precision` names float16, which fails as it should"
    assert "bfloat16" in other.what


def test_each_device_and_each_dtype_needs_tests_of_its_own(tmp_path: Path) -> None:
    """A kernel may branch on either, so what the float32 tests of the CPU catch says nothing of float64 on a GPU."""
    zeros = 'fill = { x = { kind = "zeros" }, b = { kind = "zeros" } }'
    test = f'{{ name = "constant", params = {{ n = 512, dtype = "float64" }}, {zeros}, devices = ["cuda"] }}'
    findings = found(tmp_path / "p", [("]\nbenchmarks", f"{test}]\nbenchmarks")])
    unseen = [f for f in findings if f.kernel == "all zeros"]
    assert [(f.cases, f.what) for f in unseen] == [(("constant",), "passes every test of `solve_float64` on cuda")]
    assert [f.cases for f in findings if f.level == "note"] == [("constant",)]


def test_unexamined_cases_and_missing_hidden_tests_are_reported(tmp_path: Path) -> None:
    sizes = 'params = { n = 9_000_000, dtype = "float32" }, devices = ["cuda"]'
    more = "".join(f', {{ name = "{name}", {sizes} }}' for name in ("gpu", "gpu 2"))
    findings = found(tmp_path / "p", [("} }]", f"}} }}{more}]"), (", hidden = true", ""), ("8192", "8_000_000")])
    values = f"{NO_OTHER_VALUES}: a kernel that is right for those of the benchmark alone passes"
    assert [(f.level, f.cases, f.what) for f in findings] == [
        ("warning", (), "no test on cpu is hidden: its cases can be learnt by heart"),
        ("warning", (), "no test on cuda is hidden: its cases can be learnt by heart"),
        ("warning", ("benchmark", "gpu", "gpu 2"), values),
        ("note", ("benchmark",), "left out: too large to try null kernels on a CPU"),
        ("note", ("gpu", "gpu 2"), "left out: for CUDA only, and too large to try null kernels on a CPU"),
    ]


@pytest.mark.parametrize(
    ("elements", "noted"), [("200_000_000", False), ("300_000_000", True), ("3_000_000_000", False)]
)
def test_tensors_so_large_that_offsets_may_soon_overflow_are_noted(tmp_path: Path, elements: str, noted: bool) -> None:
    notes = [finding.what for finding in found(tmp_path / "p", [("8192", elements)]) if finding.level == "note"]
    assert any("offsets of 32 bits are never seen to overflow" in what for what in notes) is noted


def test_tf32_rounds_to_nearest_even_and_keeps_non_finite_values() -> None:
    ulp = 2.0**-10
    values = torch.tensor([1 + 0.49 * ulp, 1 + 0.5 * ulp, 1 + 1.5 * ulp, -1 - 0.51 * ulp, torch.inf, torch.nan])
    expected = torch.tensor([1, 1, 1 + 2 * ulp, -1 - ulp, torch.inf, torch.nan])
    torch.testing.assert_close(to_tf32(values), expected, rtol=0, atol=0, equal_nan=True)


_MADE = '[a]\nfile = "right.py"\noutcome = "accepted"\nreplace = '
_EXPECTED: list[tuple[str, str]] = [
    ('[a]\nfile = "gone.py"\noutcome = "accepted"', "sample `a` names gone.py, which is not there"),
    ('[a]\nfile = "../right.py"\noutcome = "accepted"', "key `a.file`: string should match"),
    ('[a]\nfile = "right.py"\noutcome = "fine"', "key `a.outcome`: should be 'accepted', "),
    (
        '[a]\nfile = "right.py"\noutcome = "accepted"\nmassage = "x"',
        "key `a.massage` is unknown; did you mean `message`?",
    ),
    ('[a]\nfile = "right.py"\noutcome = "accepted"\nmessage = "("', "sample `a`: `message` is not a regular expres"),
    (f'{_MADE}{{ "x - b" = "x" }}', "sample `a` replaces 'x - b', which occurs 0 times in right.py; give a text"),
    (f'{_MADE}{{ "x" = "b" }}', "sample `a` replaces 'x', which occurs 2 times in right.py; give a text"),
    (f'{_MADE}{{ "x + b" = 3 }}', "key `a.replace.x + b`: should be a valid string; it is 3"),
    (f'{_MADE}["x + b", "x"]', "key `a.replace`: should be a table"),
    ('[a]\nfile = "empty.py"\noutcome = "accepted"\nreplace = { "x" = "b" }', "sample `a`: "),
    ("[a", "cannot be read (it is not TOML: Expected ']'"),
    ("a = 3", "key `a`: should be a table; it is 3"),
]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the good problem `p`, whose folder of samples holds `right.py` and expects nothing yet."""
    (tmp_path / "kernelmark.toml").write_text('sandbox = "process"\ndevice = "cpu"\n')
    folder = made(tmp_path / "problems" / "p", []) / "samples"
    folder.mkdir()
    (folder / "right.py").write_text("def solve(x, b, y): y.copy_(x + b)\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def expect(project: Path, text: str) -> Path:
    path = project / "problems" / "p" / "samples" / "expected.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(("text", "says"), _EXPECTED)
def test_a_wrong_table_of_samples_is_an_error_that_names_it(project: Path, text: str, says: str) -> None:
    path = expect(project, text)
    (path.parent / "empty.py").touch()
    with pytest.raises(ProblemError, match=re.escape(says)) as error:
        read_samples(project / "problems" / "p")
    assert str(error.value).startswith(str(path))


def test_a_sample_is_made_from_a_file_by_replacements(project: Path) -> None:
    expect(project, f'{_MADE}{{ "x + b" = "x - b", "solve(x, b, y): " = """solve(x, b, y):\n    """ }}')
    problem = project / "problems" / "p"
    submission = as_submission(problem, "a", read_samples(problem)["a"])
    assert submission.name == "a.py"
    assert submission.source == b"def solve(x, b, y):\n    y.copy_(x - b)\n"


def test_samples_must_end_as_expected(project: Path, invoke: Command) -> None:
    samples = project / "problems" / "p" / "samples"
    (samples / "stray.py").write_text("")
    (samples / "kernel.cu").write_text("int x;\n")
    (samples / "half.py").write_text("def solve(x, b, y): y.copy_(x.half() + b.half())\n")
    half = 'file = "half.py"\noutcome = '
    expect(
        project,
        '[good]\nfile = "right.py"\noutcome = "accepted"\n'
        '[made]\nfile = "right.py"\nreplace = { "x + b" = "x - b" }\noutcome = "wrong_answer"\n'
        f'[caught]\n{half}"wrong_answer"\nmessage = "transposed"\n'
        f'[surprise]\n{half}"accepted"\n'
        f'[elsewhere]\n{half}"accepted"\ndevices = ["cuda"]\n'
        '[cuda]\nfile = "kernel.cu"\noutcome = "accepted"\n',
    )
    status, out, err = invoke("problems", "lint", "--format", "json", "p")
    [report] = items(out)
    said = [finding["what"] for finding in report["findings"]]
    assert (status, report["problem"], report["wrong"], report["samples"]) == (2, "p", True, 4)
    assert said.pop(0).startswith(NO_OTHER_VALUES)
    assert said[0] == "samples/stray.py is in no table of samples/expected.toml"
    assert said[1].startswith("sample `caught`: the message does not match 'transposed' (test test: y: ")
    assert said[2].startswith("sample `surprise` is wrong_answer, where accepted is expected (test test: y: ")
    assert len(said) == 3
    assert "p: sample good" in err
    assert "4/4 " in err, "no sample that fails clearly is graded again"


@pytest.mark.full
def test_a_sample_that_is_wrong_in_one_element_is_graded_again(project: Path, invoke: Command) -> None:
    """The sample counts its gradings, and every second one is right, as it would be by chance."""
    (project / "problems" / "p" / "samples" / "tail.py").write_text(f"""
from pathlib import Path
count = Path({str(project)!r}, "gradings")
with count.open("a") as file:
    file.write("x")
def solve(x, b, y):
    y.copy_(x + b)
    y[:1] += count.stat().st_size % 2
""")
    expect(project, '[tail]\nfile = "tail.py"\noutcome = "wrong_answer"\n')
    status, out, _ = invoke("problems", "lint", "p")
    assert (status, (project / "gradings").read_text()) == (2, "xxxxx")
    assert "1 sample graded" in out
    assert "sample `tail` is accepted in 2 of 5 gradings: at most 1 of its elements wrong in the others; give a" in out


def test_the_exit_status_is_2_where_any_problem_is_wrong(project: Path, invoke: Command) -> None:
    no_samples = ("problems", "lint", "--no-samples")
    status, out, _ = invoke(*no_samples)
    assert status == 0
    assert out.startswith(f"p: passed (1 warning, no samples graded)\n  warning: `benchmark`: {NO_OTHER_VALUES}: ")
    made(project / "problems" / "bad", [ZERO_B])
    made(project / "problems" / "broken", [("3 * n * sizeof(dtype)", "0 * n")])
    status, out, _ = invoke(*no_samples)
    lines = out.splitlines()
    assert status == 2
    assert "bad: FAILED (2 errors, 1 warning, no samples graded)" in lines, "a benchmark, and the tests of both devices"
    assert (
        '  error: `benchmark`: null kernel "a copy of `x`" passes this benchmark case; '
        "fill `x` so that the answer differs from it"
    ) in lines
    [cost] = [line for line in lines if "key `cost`" in line]
    assert "is 0 bytes" in cost
    assert cost.startswith("  error: problems/broken/problem.toml"), "relative to the project"
    assert "p: passed (1 warning, no samples graded)" in lines
    assert invoke(*no_samples, "p").code == 0
    status, _, err = invoke("problems", "lint", "q")
    assert (status, "no such problem" in err) == (2, True)


def test_our_own_failure_hides_no_finding(project: Path, invoke: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    expect(project, '[a]\nfile = "right.py"\noutcome = "accepted"\n')
    made(project / "problems" / "z", [ZERO_B])
    monkeypatch.setattr(PreparedJob, "check", Mock(side_effect=SandboxError("no room", "free some")))
    status, out, err = invoke("problems", "lint", "--format", "json")
    assert (status, err.count("kernelmark: error: p: no room; free some")) == (7, 1)
    assert [(report["problem"], report["wrong"], report["failure"]) for report in items(out)] == [
        ("p", False, "no room; free some"), ("z", True, ""),
    ]  # fmt: skip
    assert "p: not finished (1 warning, " in invoke("problems", "lint", "p").out


def test_samples_run_without_isolation_only_on_request(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expect(project, '[a]\nfile = "right.py"\noutcome = "accepted"\n')
    monkeypatch.setattr(lint, "providers", lambda _: [provider("process")])
    settings, problems = Settings.load(sandbox="auto"), [project / "problems" / "p"]
    with pytest.raises(UsageError, match="no sandbox for samples and foreign references works here; install Docker"):
        lint.lint(settings, problems, with_samples=True, reporter=BatchReporter())


@pytest.mark.parametrize("size", ["== 9", "== 5003", "not in (9, 5003, 4099, 8192)"])
def test_extremes_and_draws_of_a_case_are_examined(tmp_path: Path, size: str) -> None:
    assert not any(finding.level == "error" for finding in found(tmp_path / "right", [DRAWN]))
    failing = ("    return x + b\n", f"    return x[:1] if x.shape[0] {size} else x + b\n")
    errors = [finding for finding in found(tmp_path / "wrong", [DRAWN, failing]) if finding.level == "error"]
    assert {finding.cases for finding in errors} == {("hidden test",)}
    assert all("problem.toml says" in finding.what for finding in errors)
