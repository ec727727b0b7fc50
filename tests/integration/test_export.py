"""`kernelmark export` from end to end: its files run without kernelmark, and are right where they are handed in."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import sandbox
from harness.problem import Problem
from harness.shared.foreign import ForeignForm
from harness.verdict import Outcome
from kernelmark.interop.exporting import export
from kernelmark.interop.importing import Importer
from tests.command import kernelmark
from tests.grading import checked, submission
from tests.unit.test_exporting import problem

# ---- round trips --------------------------------------------------------------------------------------------------

TASK = """
files: [{"name": "submission.py", "source": "@SUBMISSION@"}, {"name": "reference.py", "source": "reference.py"}]
tests: [{"rows": 3, "cols": 40, "seed": 1}]
benchmarks: [{"rows": 16, "cols": 64, "seed": 2}]
"""
THEIR_REFERENCE = """
import torch
def ref_kernel(data):
    x, y = data
    y[...] = torch.softmax(x, -1)
    return y
def generate_input(rows, cols, seed):
    x = torch.randn(rows, cols, generator=torch.Generator().manual_seed(seed))
    return x, torch.empty_like(x)
def check_implementation(data, output):
    return torch.allclose(output, ref_kernel(data)), "it differs"
"""
THEIR_MODEL = """
import torch
class Model(torch.nn.Module):
    def forward(self, x): return torch.softmax(x, -1)
def get_inputs(): return [torch.rand(12, 48)]
def get_init_inputs(): return []
"""
SET = """
problems:
  - {directory: rows/other_py, name: other}
  - {directory: rows/softmax_py, name: softmax_v3, gpus: [H100, A100]}
"""


def checkout(folder: Path, form: ForeignForm) -> Path:
    """A checkout with a softmax in somebody else's form."""
    if form == "kernelbench":
        (folder / "level1").mkdir(parents=True)
        (folder / "level1" / "7_Softmax.py").write_text(THEIR_MODEL)
        return folder
    problem = folder / "problems" / "rows" / "softmax_py"
    problem.mkdir(parents=True)
    (problem / "task.yml").write_text(TASK)
    (problem / "reference.py").write_text(THEIR_REFERENCE)
    (folder / "problems" / "rows.yaml").write_text(SET)
    return folder


def imported(tmp_path: Path, form: ForeignForm) -> Problem:
    importer = Importer(sandbox.provider("process"), "cpu", tmp_path / "problems", tmp_path, limit_s=120.0)
    [found] = importer.all(form, checkout(tmp_path / "theirs", form), (), 1)
    assert found.problem is not None, found.reason
    return found.problem


def outcome(problem: Problem, source: str) -> tuple[Outcome, str]:
    found = checked(problem, source)
    return found.outcome, found.message


KERNELS = {
    "popcorn": "import torch\ndef custom_kernel(data):\n    return torch.softmax(data[0], dim=-1, out=data[1])\n",
    "kernelbench": "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x): return x.softmax(-1)\n",
}
CPP = """
#include <cmath>
#include <cstdint>
#include <vector>
extern "C" void ENTRY(const float* x, float* y, int64_t rows, int64_t cols) {
    for (int64_t row = 0; row < rows; ++row, x += cols, y += cols) {
        float largest = x[0], sum = 0;
        for (int64_t i = 1; i < cols; ++i) largest = std::fmax(largest, x[i]);
        for (int64_t i = 0; i < cols; ++i) sum += y[i] = std::exp(x[i] - largest);
        for (int64_t i = 0; i < cols; ++i) y[i] /= sum;
    }
}
"""


@pytest.mark.full
@pytest.mark.parametrize(("foreign", "form"), [("gpu-mode", "popcorn"), ("kernelbench", "kernelbench")])
def test_what_is_exported_is_a_submission_to_the_imported_problem(
    foreign: ForeignForm, form: str, tmp_path: Path
) -> None:
    theirs = imported(tmp_path, foreign)
    gpus = ("A100",) if form == "popcorn" else ()
    exported = export(theirs, submission(KERNELS[form]), form, gpus=gpus)
    assert exported.warnings == ()
    added = exported.text.removesuffix(KERNELS[form]).splitlines()[:-1]
    assert added == (["#!POPCORN leaderboard softmax_v3", "#!POPCORN gpus A100"] if form == "popcorn" else [])
    assert outcome(theirs, exported.text) == (Outcome.ACCEPTED, "")

    source = CPP.replace("ENTRY", theirs.entry)
    if form == "kernelbench":  # one size of each, and the largest is the parameter
        source = source.replace("int64_t rows, int64_t cols", "int64_t cols").replace("row < rows", "row < 12")
    text = export(theirs, submission(source, "cpp"), form).text
    assert outcome(theirs, text) == (Outcome.ACCEPTED, "")
    assert outcome(theirs, text.replace("y[i] /= sum", "y[i] /= 2"))[0] is Outcome.WRONG_ANSWER


# ---- the command ----------------------------------------------------------------------------------------------------


def test_the_command_prints_writes_and_replaces_nothing_unasked(tmp_path: Path) -> None:
    source = tmp_path / "kernel.py"
    source.write_text(KERNELS["popcorn"])
    theirs = str(problem(tmp_path, "popcorn").directory)
    arguments = ["export", theirs, str(source), "--form", "popcorn", "--leaderboard", "rows"]
    printed = kernelmark(tmp_path, *arguments)
    assert (printed.returncode, printed.stderr) == (0, "")
    assert printed.stdout.startswith("#!POPCORN leaderboard rows\n")
    out = tmp_path / "submission.py"
    assert kernelmark(tmp_path, *arguments, "--out", "submission.py").stdout == ""
    assert out.read_text() == printed.stdout
    out.write_text("mine")
    refused = kernelmark(tmp_path, *arguments, "--out", "submission.py")
    remedy = "name another file, or replace it with --force"
    assert (refused.returncode, refused.stderr) == (2, f"kernelmark: error: submission.py exists; {remedy}\n")
    assert out.read_text() == "mine"
    assert kernelmark(tmp_path, *arguments, "--out", "submission.py", "--force").returncode == 0
    assert out.read_text() == printed.stdout
