"""`kernelmark export` from end to end: its files run without kernelmark, and are right where they are handed in."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from harness import sandbox
from harness.foreign import ForeignForm
from harness.judge import check
from harness.problem import Problem, load
from harness.submission import Submission
from harness.verdict import Outcome
from kernelmark.interop.exporting import export
from kernelmark.interop.importing import Importer
from tests.command import kernelmark
from tests.integration.test_call_styles import CPP, STYLES, made

ROOT = Path(__file__).resolve().parents[2]
# Calls each exported file in a process that has torch alone. `tree` is handed the object that its problem states. The
# tolerance: g++ fuses the product and the sum, which shows where they cancel.
CHILD = """
import importlib.util, json, pathlib, sys
from types import SimpleNamespace
import torch

def called(style, module, x, w, outputs):
    if hasattr(module, "ModelNew"):
        init = (x.shape[1] / 8, x.shape[1], x.dtype, "sum") if style == "module" else ()
        with torch.no_grad():  # as KernelBench has it
            return module.ModelNew(*init)(x, w)
    if style == "tree":
        config = SimpleNamespace(out=torch.empty(x.shape), rows=len(x))
        return module.custom_kernel((x, {"w": w, "shift": x.shape[1] / 8}, config, None))
    return module.custom_kernel((x, w, *outputs))

told = {}
for file in pathlib.Path(sys.argv[1]).glob("*.py"):
    spec = importlib.util.spec_from_file_location("submission", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    right = []
    for rows, cols in ((5, 7), (3, 64)):
        x, w = torch.randn(cols, rows).t(), torch.randn(cols)  # not contiguous: the file lays it out
        for outputs in ((), (torch.empty(rows, cols), torch.empty(rows, dtype=torch.int64))):
            given = x.clone()
            result = called(file.name.partition(".")[0], module, x, w, outputs)
            y, count = (result["values"], *result["places"]) if isinstance(result, dict) else result
            right += [torch.allclose(y, x * w + cols / 8, atol=1e-5), torch.equal(count, (x > 0).sum(1))]
            right += [torch.equal(x, given)]
    told[file.name] = all(right)
told["alone"] = not {"kernelmark", "harness", "leaderboard"} & set(sys.modules)
print(json.dumps(told))
"""


def folder_of(parent: Path, name: str) -> Path:
    folder = parent / name
    folder.mkdir(parents=True)
    return folder


def exported(problem: Problem, source: str, language: str, form: str) -> str:
    return export(problem, Submission.of(source, language, author="tester"), form).text


def called(folder: Path) -> dict[str, bool]:
    """Whether each file of a folder gives the right results, in a process of its own; and whether it was alone."""
    ran = subprocess.run(
        [sys.executable, "-I", "-c", CHILD, str(folder)],
        capture_output=True,
        text=True,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "TORCH_EXTENSIONS_DIR": str(folder / "extensions")},
        timeout=600,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    return dict(json.loads(ran.stdout.splitlines()[-1]))


def test_each_style_runs_in_each_form_without_kernelmark(tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    for name, style in STYLES.items():
        for form in ("popcorn", "kernelbench"):
            text = exported(made(folder_of(tmp_path / name, form), style), style.source, "py", form)
            assert style.source.strip() in text
            (files / f"{name}.{form}.py").write_text(text)
    told = called(files)
    assert len(told) == 2 * len(STYLES) + 1
    assert [name for name, right in told.items() if not right] == []


@pytest.mark.full
def test_cpp_is_compiled_when_the_file_is_imported(tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    for name in ("writes", "module", "tree"):
        for form in ("popcorn", "kernelbench"):
            source = CPP.replace("scale_", f"{STYLES[name].entry}_")
            text = exported(made(folder_of(tmp_path / name, form), STYLES[name]), source, "cpp", form)
            (files / f"{name}.{form}.py").write_text(text)
    told = called(files)
    assert len(told) == 7
    assert [name for name, right in told.items() if not right] == []


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
    [told] = importer.all(form, checkout(tmp_path / "theirs", form), (), 1)
    assert told.problem is not None, told.reason
    return told.problem


def outcome(problem: Problem, source: str) -> tuple[Outcome, str]:
    kernel = Submission.of(source, "py", author="tester")
    checked = check(problem, kernel, device="cpu", provider=sandbox.provider("process"))
    return checked.outcome, checked.message


@pytest.mark.full
@pytest.mark.parametrize(("foreign", "form"), [("gpu-mode", "popcorn"), ("kernelbench", "kernelbench")])
def test_our_softmax_is_accepted_by_a_foreign_problem(foreign: ForeignForm, form: str, tmp_path: Path) -> None:
    theirs = imported(tmp_path, foreign)
    source = (ROOT / "reference" / "softmax" / "eager.py").read_text()
    text = exported(load(ROOT / "problems" / "softmax"), source, "py", form)
    assert outcome(theirs, text) == (Outcome.ACCEPTED, "")
    assert outcome(theirs, text.replace("dim=-1", "dim=0"))[0] is Outcome.WRONG_ANSWER

    again = export(
        theirs, Submission.of(text, "py", author="tester"), form, gpus=("A100",) if form == "popcorn" else ()
    )
    assert again.text.endswith(text)
    assert again.warnings == ()
    added = again.text.removesuffix(text).splitlines()[:-1]
    assert added == (["#!POPCORN leaderboard softmax_v3", "#!POPCORN gpus A100"] if form == "popcorn" else [])


# ---- the command ----------------------------------------------------------------------------------------------------


def test_the_command_prints_writes_and_replaces_nothing_unasked(tmp_path: Path) -> None:
    source = str(ROOT / "reference" / "softmax" / "eager.py")
    arguments = ["export", str(ROOT / "problems" / "softmax"), source, "--form", "popcorn", "--leaderboard", "rows"]
    printed = kernelmark(tmp_path, *arguments)
    assert (printed.returncode, printed.stderr) == (0, "")
    assert printed.stdout.startswith("#!POPCORN leaderboard rows\n")
    out = tmp_path / "submission.py"
    assert kernelmark(tmp_path, *arguments, "--out", "submission.py").stdout == ""
    assert out.read_text() == printed.stdout
    out.write_text("mine")
    refused = kernelmark(tmp_path, *arguments, "--out", "submission.py")
    remedy = "name another file, or replace it with --force"
    assert (refused.returncode, refused.stderr) == (2, f"kernelmark: error: submission.py: exists; {remedy}\n")
    assert out.read_text() == "mine"
    assert kernelmark(tmp_path, *arguments, "--out", "submission.py", "--force").returncode == 0
    assert out.read_text() == printed.stdout
