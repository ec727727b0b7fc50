"""Submissions in each call style, graded in real sandboxes on the CPU."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import NamedTuple

import pytest

from harness import sandbox
from harness.errors import ProblemError, SubmissionError
from harness.judge.correctness.graded_case import GradedCase
from harness.judge.session import BuildRequest, Session, SubmissionFault
from harness.judge.session.time_limit import TimeLimit
from harness.problem import Problem
from harness.problem.reference import Reference
from harness.submission import Submission
from harness.verdict import Outcome, SandboxName
from harness.wire import commands, replies
from tests.command import kernelmark
from tests.grading import checked, graded, submission, written

PROBLEM = """
title = "Scale and shift rows"
entry = "{entry}"
parameters = ["rows", "cols", "dtype"]
tensors = [
    {{ name = "x", role = "input", shape = ["rows", "cols"], dtype = "dtype" }},
    {{ name = "w", role = "input", shape = ["cols"], dtype = "dtype" }},
    {{ name = "y", role = "output", shape = ["rows", "cols"], dtype = "dtype" }},
    {{ name = "count", role = "output", shape = ["rows"], dtype = "int64" }},
]
scalars = [{{ name = "shift", dtype = "float64", value = "cols / 8" }}]
cost = {{ bytes = "4 * rows * cols", flops = "2 * rows * cols" }}
limits = {{ memory_bytes = 3_221_225_472, processes = 64 }}
call = {call}
tests = [
    {{ name = "square", params = {{ rows = 7, cols = 7, dtype = "float32" }} }},
    {{ name = "wide", params = {{ rows = 3, cols = 64, dtype = "float32" }} }},
]
benchmarks = [{{ name = "large", params = {{ rows = 512, cols = 1024, dtype = "float32" }} }}]
"""
REFERENCE = """
def reference(x, w, shift):
    y = x * w + shift
    return y, (x > 0).sum(1)
"""


class Style(NamedTuple):
    call: str
    source: str
    entry: str = "scale"


RETURNS = '{ style = "returns" }'
STYLES = {
    "writes": Style(
        '{ style = "writes" }',
        """
import torch
def scale(x, w, y, count, shift):
    torch.mul(x, w, out=y).add_(shift)
    count.copy_((x > 0).sum(1))
""",
    ),
    "returns": Style(RETURNS, "def scale(x, w, shift):\n    y = x * w + shift\n    return y, (x > 0).sum(1)\n"),
    "returns in other forms": Style(
        """{ style = "returns", arguments = [{ tuple = ["w", "shift"] }, "x", 1],
             result = { dict = { values = "y", places = ["count"] } } }""".replace("\n", " "),
        """
def scale(pair, x, axis):
    y = x * pair[0] + pair[1]
    return {"values": y, "places": ((x > 0).sum(axis),)}
""",
    ),
    "module": Style(
        """{ style = "module", init = ["shift", { param = "cols" }, { param = "dtype" }, { text = "sum" }],
             arguments = ["x", "w"] }""".replace("\n", " "),
        """
import torch
class Model(torch.nn.Module):
    def __init__(self, shift, cols, dtype, what):
        super().__init__()
        self.what, self.ones = what, torch.nn.Parameter(torch.ones(cols, dtype=dtype))
        self.register_buffer("shift", torch.tensor(shift, dtype=dtype))
    def forward(self, x, w):
        assert not torch.is_grad_enabled()
        y = torch.addcmul(self.shift, x, w * self.ones)
        return y, getattr(x > 0, self.what)(1)
""",
        "Model",
    ),
    "tree": Style(
        """{ style = "tree", data = { tuple = ["x", { dict = { w = "w", shift = "shift" } },
             { fields = { out = "y", rows = { param = "rows" } } }, { none = true }] } }""".replace("\n", " "),
        """
import torch
def scale(data):
    x, given, config, nothing = data
    assert nothing is None and config.rows == len(x)
    torch.mul(x, given["w"], out=config.out).add_(given["shift"])
    return config.out, (x > 0).sum(1)
""",
    ),
}
ISOLATED = pytest.param("bwrap", marks=pytest.mark.bwrap)


def made(folder: Path, style: Style, more: str = "") -> Problem:
    return written(folder / "scale", PROBLEM.format(entry=style.entry, call=style.call) + more, REFERENCE)


@pytest.mark.full  # other files time kernels that write, and such as return one tensor
@pytest.mark.parametrize("style", ["returns in other forms", "module", "tree"])
def test_a_right_submission_is_accepted_and_timed(style: str, tmp_path: Path) -> None:
    problem = made(tmp_path, STYLES[style])
    kernel = submission(STYLES[style].source)
    verdict = graded(problem, kernel, baselines=[kernel])
    assert (verdict.outcome, verdict.message) == (Outcome.ACCEPTED, ""), verdict.traceback
    assert len(verdict.speedups) == 1, "a baseline is called in the same style"


@pytest.mark.bwrap
def test_a_tree_is_accepted_in_isolation(tmp_path: Path) -> None:
    problem = made(tmp_path, STYLES["tree"])
    check = checked(problem, STYLES["tree"].source, "bwrap")
    assert (check.outcome, check.message) == (Outcome.ACCEPTED, ""), check.traceback


GIVEN = "def scale(x, w, shift):\n    y = x * w + shift\n    return {}\n"
FAULTS = {  # tests/unit/test_styles.py has every way to be wrong
    "y.t().contiguous().t(), (x > 0).sum(1)": ("accepted", ""),
    "x, (x > 0).sum(1)": ("wrong_answer", "test square: y: "),
    "None": ("runtime_error", "test square: what it returned should be a tuple of 2, and is NoneType"),
}


@pytest.mark.parametrize("returned", FAULTS)
def test_a_result_that_is_not_what_was_asked_for(returned: str, tmp_path: Path) -> None:
    outcome, message = FAULTS[returned]
    problem = made(tmp_path, STYLES["returns"])
    check = checked(problem, "import torch\n" + GIVEN.format(returned))
    assert check.outcome == outcome
    assert check.message.startswith(message)


CPP = """
#include <cstdint>
extern "C" void scale_float32(const float* x, const float* w, float* y, int64_t* count, double shift,
                              int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; ++r) {
        count[r] = 0;
        for (int64_t c = 0; c < cols; ++c) {
            y[r * cols + c] = x[r * cols + c] * w[c] + float(shift);
            count[r] += x[r * cols + c] > 0;
        }
    }
}
"""


def test_cpp_gets_all_tensors_whatever_the_style(tmp_path: Path) -> None:
    check = checked(made(tmp_path, STYLES["tree"]), submission(CPP, "cpp"))
    assert (check.outcome, check.message) == (Outcome.ACCEPTED, "")


# ---- weights, and extra files of the problem -------------------------------------------------------------------------

SHOWN = b"from secret_names import NAMES\n\ninput_t, FACTOR = tuple, 2\n"
NAMES = b"NAMES = ['x', 'w']\n"
FOREIGN = """
[foreign]
form = "gpu-mode"
[[foreign.files]]
name = "their_reference.py"
path = "reference.py"
sha256 = "{reference}"
[[foreign.files]]
name = "task.py"
path = "../theirs/task.py"
sha256 = "{task}"
shown = true
[[foreign.files]]
name = "secret_names.py"
path = "../theirs/names.py"
sha256 = "{names}"
shown = true
"""


def with_files(tmp_path: Path) -> Problem:
    """A problem whose submissions may import two files; the reference is not shown."""
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs/task.py").write_bytes(SHOWN)
    (tmp_path / "theirs/names.py").write_bytes(NAMES)
    sums = {"reference": REFERENCE.encode(), "task": SHOWN, "names": NAMES}
    more = FOREIGN.format(**{name: hashlib.sha256(content).hexdigest() for name, content in sums.items()})
    return made(tmp_path, STYLES["returns"], more)


def built(problem: Problem, source: str, name: SandboxName) -> str:
    """Hand a submission over; returns why it could not be built, or nothing."""
    resolved = problem.resolve(problem.tests[0])
    with Session.start(sandbox.provider(name), "cpu", problem.limits) as session:
        session.handshake()
        try:
            session.build(BuildRequest.of(problem, submission(source), [resolved], "cpu"), 60.0)
        except SubmissionFault as fault:
            return fault.message
    return ""


@pytest.mark.parametrize("name", ["process", ISOLATED])
def test_files_that_are_shown_can_be_imported_and_others_cannot(name: SandboxName, tmp_path: Path) -> None:
    problem = with_files(tmp_path)
    entry = "def scale(x, w, shift): return x, x\n"
    assert built(problem, f"from task import FACTOR, NAMES, input_t\n{entry}", name) == ""
    assert built(problem, f"import their_reference\n{entry}", name) == (
        "line 1: ModuleNotFoundError: No module named 'their_reference'"
    )


def test_a_file_that_changed_after_it_was_loaded_is_not_handed_over(tmp_path: Path) -> None:
    problem = with_files(tmp_path)
    (tmp_path / "theirs/task.py").write_text("FACTOR = 3\n")
    with pytest.raises(ProblemError, match=r"task\.py has changed since it was imported"):
        BuildRequest.of(problem, submission(""), [problem.resolve(problem.tests[0])], "cpu")


def test_a_submission_cannot_replace_a_file_that_the_problem_shows(tmp_path: Path) -> None:
    problem = with_files(tmp_path)
    own = Submission.of("import task", "py", author="tester", beside={"task.py": "FACTOR = 3\n"})
    with pytest.raises(SubmissionError, match=r"task\.py is the name of a file of the problem"):
        BuildRequest.of(problem, own, [problem.resolve(problem.tests[0])], "cpu")


def test_weights_are_the_same_throughout_a_grading_and_differ_between_two(tmp_path: Path) -> None:
    source = """
import torch
class Model(torch.nn.Module):
    def __init__(self, *_):
        super().__init__()
        self.weights = torch.nn.Linear(2, 2).weight
    def forward(self, x, w):
        print(self.weights[0, 0].item())
        return x, x.long().sum(1)
"""
    problem = made(tmp_path, STYLES["module"])
    limit, resolved = TimeLimit(60.0), problem.resolve(problem.tests[0])
    case, other = (GradedCase(problem, Reference.load(problem), "cpu", resolved) for _ in range(2))
    with Session.start(sandbox.provider("process"), "cpu", problem.limits) as session:
        session.handshake()
        session.build(BuildRequest.of(problem, submission(source), [case.resolved], "cpu"), 60.0)
        batch = case.batch(2)
        for bound in (case, case, other):
            bound.bind(session, batch, limit=limit, doing="binding")
            session.ask(commands.Call(sets=(0, 1, 0)), replies.Done, limit=limit, doing="calling")
        batch.close_arenas()
        session.output.drain()
        printed = session.output.text().split()
    assert [len(set(printed[:6])), len(set(printed[6:])), len(printed)] == [1, 1, 9]
    assert printed[0] != printed[6]


@pytest.mark.full
@pytest.mark.parametrize("style", STYLES)
def test_debug_calls_in_each_style(style: str, tmp_path: Path) -> None:
    (tmp_path / "kernelmark.toml").write_text("")
    (tmp_path / "problems").mkdir()
    made(tmp_path / "problems", STYLES[style])
    (tmp_path / "kernel.py").write_text(STYLES[style].source)
    right = kernelmark(tmp_path, "debug", "scale", "kernel.py", "--device", "cpu")
    assert right.returncode == 0, right.stderr
    if style == "returns":
        (tmp_path / "kernel.py").write_text("def scale(x, w, shift):\n    return x, None\n")
        wrong = kernelmark(tmp_path, "debug", "scale", "kernel.py", "--device", "cpu")
        last = wrong.stderr.splitlines()[-1]
        assert (wrong.returncode, last) == (4, "returned None, `count` is a tensor of int64")
        assert "Traceback" not in wrong.stderr
