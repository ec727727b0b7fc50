"""Problems in foreign forms: the reference draws, answers and judges in a sandbox of its own."""

from __future__ import annotations

import hashlib
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
import torch

from harness.errors import ProblemError
from harness.judge.correctness import oracle as oracle_module
from harness.judge.correctness.oracle import Oracle
from harness.problem import Problem, ResolvedCase, load
from harness.problem.lists import grouped
from harness.problem_lint.foreign import examine_foreign
from harness.profiling.watch import visible_cases, watch
from harness.sandbox import Watcher, provider
from harness.verdict import Outcome
from tests.grading import checked, graded, submission

SANDBOX = provider("bwrap")  # which keeps a hostile reference from the machine
FORKED = provider("process")  # where only what is said of a reference and of a kernel matters
FOREIGN = Path(__file__).resolve().parents[1] / "foreign"

GPU_MODE, KERNELBENCH = ((FOREIGN / form / "problem.toml").read_text() for form in ("gpu_mode", "kernelbench"))
RIGHT = """
from task import SCALE

def custom_kernel(data):
    x, config, out = data
    return x * config["factor"] * SCALE
"""
IN_PLACE = "def custom_kernel(data):\n    x, _, out = data\n    out.copy_(x * 6)\n    return out\n"
NOTHING = "def custom_kernel(data):\n    return data[2]\n"
CLOSE = "def custom_kernel(data):\n    return data[0] * 6.0005\n"
MODEL = (FOREIGN / "kernelbench/1_Linear.py").read_text()
NEW = MODEL.replace("class Model(", "class ModelNew(")
NO_RELU = NEW.replace("torch.relu(self.layers(x))", "self.layers(x)")
OTHER_WEIGHTS = NEW.replace("        super()", "        torch.manual_seed(0)\n        super()")


def problem(folder: Path, toml: str, form: str, *files: Path) -> Problem:
    """A problem folder that points to foreign files."""
    folder.mkdir()
    text = f'{toml}\n[foreign]\nform = "{form}"\n'
    for file in files:
        shown = str(file.name in ("task.py", "utils.py")).lower()
        name = file.name if file.name[0].isalpha() else "reference.py"
        sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
        text += f'[[foreign.files]]\nname = "{name}"\npath = "{file}"\nsha256 = "{sha256}"\nshown = {shown}\n'
    (folder / "problem.toml").write_text(text)
    return load(folder)


def gpu_mode(tmp_path: Path, reference: str | None = None) -> Problem:
    first = FOREIGN / "gpu_mode/reference.py"
    if reference is not None:
        first = tmp_path / "reference.py"
        first.write_text(reference)
    rest = [FOREIGN / "gpu_mode" / name for name in ("task.py", "utils.py")]
    return problem(tmp_path / "scaled", GPU_MODE, "gpu-mode", first, *rest)


def kernelbench(tmp_path: Path) -> Problem:
    return problem(tmp_path / "linear", KERNELBENCH, "kernelbench", FOREIGN / "kernelbench/1_Linear.py")


def test_their_check_accepts_what_is_written_in_place(tmp_path: Path) -> None:
    verdict = checked(gpu_mode(tmp_path), IN_PLACE, "bwrap")
    assert verdict.outcome is Outcome.ACCEPTED, verdict.message
    assert [test.name for test in verdict.tests] == ["plain", "shifted"]


@pytest.mark.full
def test_their_answer_may_have_another_dtype(tmp_path: Path) -> None:
    double = (FOREIGN / "gpu_mode/reference.py").read_text().replace("    return out\n", "    return out.double()\n")
    double = double.replace("match(ref_kernel(data)", "match(ref_kernel(data).float()")
    verdict = checked(gpu_mode(tmp_path, double), RIGHT)
    assert verdict.outcome is Outcome.ACCEPTED, verdict.message


@pytest.mark.full
@pytest.mark.parametrize(
    ("source", "outcomes"),
    [("x if bias is None else x + bias", ["accepted", "accepted"]), ("x", ["accepted", "wrong_answer"])],
)
def test_their_data_may_lack_a_tensor(source: str, outcomes: list[str], tmp_path: Path) -> None:
    reference = tmp_path / "optional.py"
    reference.write_text("""
import torch

def ref_kernel(data):
    x, config, out = data
    return x if config["bias"] is None else x + config["bias"]

def generate_input(rows, seed, shift=False):
    gen = torch.Generator().manual_seed(seed)
    bias = torch.randn(8, generator=gen) if rows > 3 else None
    return torch.randn(rows, 8, generator=gen), {"bias": bias}, torch.empty(rows, 8)

def check_implementation(data, output):
    return "" if torch.allclose(ref_kernel(data), output) else "they differ"
""")
    bias = (
        '{ name = "bias", role = "input", shape = [8], dtype = "float32", present = "rows - 3" },\n    { name = "out"'
    )
    toml = GPU_MODE.replace("factor = 3.0", 'bias = "bias"').replace('{ name = "out"', bias)
    kernel = f"def custom_kernel(data):\n    x, bias = data[0], data[1]['bias']\n    return {source}\n"
    their = problem(tmp_path / "optional", toml, "gpu-mode", reference)
    verdict = checked(their, kernel)
    assert [test.outcome for test in verdict.tests] == outcomes, verdict.message


def test_their_check_refuses_what_was_not_written(tmp_path: Path) -> None:
    verdict = checked(gpu_mode(tmp_path), NOTHING)
    assert verdict.outcome is Outcome.WRONG_ANSWER
    assert "mismatch found: they differ" in verdict.message


@pytest.mark.parametrize(
    ("source", "outcome"),
    [
        pytest.param(NEW, Outcome.ACCEPTED, id="right", marks=pytest.mark.full),
        pytest.param(NO_RELU, Outcome.WRONG_ANSWER, id="no relu", marks=pytest.mark.full),
        pytest.param(OTHER_WEIGHTS, Outcome.WRONG_ANSWER, id="other weights"),
    ],
)
def test_a_model_has_the_weights_of_the_reference(tmp_path: Path, source: str, outcome: Outcome) -> None:
    verdict = checked(kernelbench(tmp_path), source)
    assert verdict.outcome is outcome, verdict.message


@pytest.mark.full
def test_a_tool_watches_calls_on_inputs_that_the_reference_draws(tmp_path: Path) -> None:
    program = tmp_path / "tool" / "stand-in"
    program.parent.mkdir(mode=0o755)
    program.write_text('#!/bin/sh\n"$@"\necho "the runner ended with $?"\n')
    program.chmod(0o755)
    given, watcher = gpu_mode(tmp_path), Watcher((str(program),), program.parent)
    cases = visible_cases(given, "cpu", tests=True)
    watched = watch(given, submission(RIGHT), watcher, cases, provider=SANDBOX, device="cpu")
    assert (watched.calls, watched.fault) == (2, "")
    assert "the runner ended with 0" in watched.text("tool output")


@pytest.mark.full  # each call of a round is drawn, answered and checked by the reference
def test_what_only_their_tolerance_accepts_is_doubted(tmp_path: Path) -> None:
    verdict = graded(gpu_mode(tmp_path), CLOSE)
    assert verdict.outcome is Outcome.ACCEPTED, verdict.message
    [text] = [doubt.text for doubt in verdict.doubts if doubt.code == "beyond_budget"]
    # 0.0005 / 6 is 700 ulps of float32, and its RMS may be 16.
    assert re.fullmatch(r"test (plain|shifted): the error of `out` is 4\d(\.\d)? times the error budget", text)


HOSTILE = {
    "reads files": ("open('/etc/shadow').read()", "PermissionError|FileNotFoundError"),
    "never ends": ("while True: pass", "gave no answer"),
    "ends its process": ("import os; os._exit(0)", "exited with 0|ended"),
    "another shape": ("return torch.zeros(1), {'factor': 3.0}, torch.zeros(1)", r"made torch.float32 \[1\] for `x`"),
    "no tensors": ("return 5", "should be a tuple of 3"),
}


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=() if each == "reads files" else pytest.mark.full) for each in HOSTILE]
)
def test_a_hostile_reference_ends_in_one_line(tmp_path: Path, name: str) -> None:
    statement, what = HOSTILE[name]
    reference = (FOREIGN / "gpu_mode/reference.py").read_text()
    reference = reference.replace("    gen = torch.Generator", f"    {statement}\n    gen = torch.Generator")
    given = gpu_mode(tmp_path, reference)
    if name == "never ends":
        given = given.model_copy(update={"limits": given.limits.model_copy(update={"build_s": 5.0, "call_s": 1.0})})
    with pytest.raises(ProblemError, match=what) as error:
        checked(given, RIGHT, "bwrap" if name == "reads files" else "process")
    assert "\n" not in str(error.value)
    assert "reference.py" in str(error.value)


@pytest.mark.parametrize("large_bytes", [0, 1 << 30], ids=["large", "small"])
def test_threads_may_share_a_reference(tmp_path: Path, large_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A baseline is recorded in a thread of its own, on inputs of another case than the one being judged."""
    monkeypatch.setattr(oracle_module, "LARGE_BYTES", large_bytes)
    foreign_problem = gpu_mode(tmp_path, (FOREIGN / "gpu_mode/reference.py").read_text())
    with closing(Oracle(foreign_problem, SANDBOX, "cpu")) as oracle, ThreadPoolExecutor(2) as threads:
        first, second = (foreign_problem.resolve(case) for case in foreign_problem.tests[:2])

        def shapes(case: ResolvedCase, seed: int) -> dict[str, tuple[int, ...]]:
            drawn = oracle.generate(case, torch.Generator().manual_seed(seed))
            oracle.release_large()
            answer = oracle(grouped(drawn, case), {}, case)
            oracle.release_large()
            assert oracle.compare(answer, grouped(drawn, case), answer, case) is None
            return {name: tuple(tensor.shape) for name, tensor in drawn.items()}

        found = [(case, threads.submit(shapes, case, seed)) for seed in range(10) for case in (first, second)]
        for case, got in found:
            assert got.result() == {each.name: each.shape for each in case.tensors if each.role == "input"}


@pytest.mark.full
def test_the_lint_names_the_null_kernels_that_pass(tmp_path: Path) -> None:
    [seeds] = examine_foreign(gpu_mode(tmp_path), FORKED, "cpu")
    assert "drawn from 65,536 seeds alone" in seeds.what
    constant = (FOREIGN / "gpu_mode/reference.py").read_text().replace('x * config["factor"] * SCALE', "0 * x")
    (tmp_path / "constant").mkdir()
    *findings, last = examine_foreign(gpu_mode(tmp_path / "constant", constant), FORKED, "cpu")
    assert last == seeds
    assert [finding.kernel for finding in findings] == ["all zeros", "a constant", "the result of other inputs"]
    assert {finding.cases for finding in findings} == {("larger", "plain", "shifted")}


FIXED = """
import torch

class Model(torch.nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(width))

    def forward(self, x):
        return torch.softmax(x, -1) * self.weight

def get_inputs():
    made = torch.Generator().manual_seed(0)
    return [torch.rand(4, 16, generator=made)]

def get_init_inputs():
    return [16, 2]
"""
VARIED = FIXED.replace(".manual_seed(0)", ".manual_seed(torch.initial_seed())")


@pytest.mark.parametrize(("source", "known"), [(FIXED, True), (VARIED, False)])
def test_inputs_that_no_seed_changes_have_no_rank(tmp_path: Path, source: str, known: bool) -> None:
    (tmp_path / "1_Fixed.py").write_text(source)
    their = problem(tmp_path / "fixed", KERNELBENCH, "kernelbench", tmp_path / "1_Fixed.py")
    verdict = graded(their, source.replace("class Model(", "class ModelNew("), effort="screen")
    assert verdict.outcome is Outcome.ACCEPTED, verdict.message
    told = [doubt.text for doubt in verdict.doubts if doubt.code == "known_inputs"]
    assert told == (["timed: no seed changes its inputs, or what they lead to"] if known else [])
    assert verdict.ranks is not known
    assert verdict.score is not None
    assert "beyond_budget" not in [doubt.code for doubt in verdict.doubts]
    found = [each.what for each in examine_foreign(their, FORKED, "cpu") if each.level == "warning"]
    assert bool(found) is known


@pytest.mark.parametrize("bits", [None, 62])
def test_inputs_from_few_seeds_have_no_rank(tmp_path: Path, bits: int | None) -> None:
    their = gpu_mode(tmp_path)
    assert their.foreign is not None
    if bits is not None:
        text = (their.directory / "problem.toml").read_text()
        (their.directory / "problem.toml").write_text(text.replace("[foreign]\n", f"[foreign]\nseed_bits = {bits}\n"))
        their = load(their.directory)
    verdict = graded(their, RIGHT, effort="screen")
    assert verdict.outcome is Outcome.ACCEPTED, verdict.message
    told = [doubt.text for doubt in verdict.doubts if doubt.code == "known_inputs"]
    few = "its inputs are drawn from 65,536 seeds alone: import the problem again, if an earlier version imported it"
    assert told == ([few] if bits is None else [])
