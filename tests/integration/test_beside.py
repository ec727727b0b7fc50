"""Submissions of several files, as a user grades them: built, recorded, graded again and shown as a whole."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from kernelmark.diagnostics.selftest import PROBLEMS
from leaderboard.record.entry import VERDICT
from leaderboard.record.ledger import JsonlLedger
from tests.command import kernelmark

CPP = """#include "common.h"
extern "C" void twice(const float *x, float *y, int64_t n) { for (int64_t i = 0; i < n; ++i) y[i] = doubled(x[i]); }
"""
HEADER = "#include <cstdint>\ninline float doubled(float x) { return 2 * x; }\n"
PYTHON = "from tiling import doubled\n\n\ndef twice(x, y):\n    doubled(x, y)\n"
MODULE = "import torch\n\n\ndef doubled(x, y):\n    torch.mul(x, 2, out=y)\n"
CUDA = """#include "common.cuh"
extern "C" void twice(const float *x, float *y, int64_t n, cudaStream_t s) {
    doubled<<<n / 256 + 1, 256, 0, s>>>(x, y, n);
}
"""
KERNEL = """#include <cstdint>
static __global__ void doubled(const float *x, float *y, int64_t n) {
    int64_t i = 256 * blockIdx.x + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    shutil.copytree(PROBLEMS / "double", tmp_path / "problems/double")
    (tmp_path / "kernelmark.toml").write_text('device = "cpu"\nsandbox = "bwrap"\neffort = "quick"\nauthor = "ada"\n')
    (tmp_path / "parts").mkdir()
    return tmp_path


def graded(project: Path, command: str, file: str, source: str, **beside: str) -> subprocess.CompletedProcess[str]:
    """Write the files, those beside it in another folder, and grade them."""
    (project / file).write_text(source)
    words = []
    for stem, content in beside.items():
        path = project / "parts" / stem.replace("_", ".")
        path.write_text(content)
        words += ["--with", str(path.relative_to(project))]
    return kernelmark(project, command, "double", file, *words)


@pytest.mark.full  # five gradings
def test_what_is_recorded_is_all_of_it(project: Path) -> None:
    done = graded(project, "submit", "kernel.cpp", CPP, common_h=HEADER)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "kernel.cpp with common.h by ada" in done.stdout
    settings = project / "kernelmark.toml"
    settings.write_text(settings.read_text().replace("ada", "bob"))
    done = graded(project, "submit", "kernel.py", PYTHON, tiling_py=MODULE)
    assert done.returncode == 0, done.stdout + done.stderr
    shutil.rmtree(project / "parts")
    toml = project / "problems/double/problem.toml"
    toml.write_text(toml.read_text().replace("Twice a vector", "Twice"))
    done = kernelmark(project, "regrade")
    assert done.returncode == 0, done.stdout + done.stderr
    entries = JsonlLedger(project / "leaderboard/results/double.jsonl").read()
    verdicts = [entry.verdict for entry in entries if entry.kind == VERDICT]
    assert [verdict.submission.beside for verdict in verdicts[:2]] == [("common.h",), ("tiling.py",)]
    assert {verdict.submission.sha256 for verdict in verdicts[2:]} == {
        verdict.submission.sha256 for verdict in verdicts[:2]
    }
    assert "kernel.py with tiling.py by bob" in kernelmark(project, "show", verdicts[1].run).stdout
    assert kernelmark(project, "verify").returncode == 0
    built = kernelmark(project, "site", "build", "--out", "site")
    assert built.returncode == 0, built.stderr
    pages = [json.loads((project / f"site/runs/{verdict.run}.json").read_text()) for verdict in verdicts[2:]]
    assert {json.dumps(page["beside"]) for page in pages} == {
        json.dumps({"common.h": HEADER}),
        json.dumps({"tiling.py": MODULE}),
    }
    words = pages[0]["command"].replace("submit", "bench", 1).replace("--no-record", "").split()
    done = kernelmark(project, *words)  # what the page says reproduces the run
    assert done.returncode == 0, done.stderr
    html = "".join((project / f"site/runs/{verdict.run}.html").read_text() for verdict in verdicts[2:])
    assert all(f"<h3>{name}</h3>" in html for name in ("kernel.cpp", "common.h", "kernel.py", "tiling.py"))


@pytest.mark.full
@pytest.mark.parametrize(
    ("file", "source", "beside", "status", "says"),
    [
        ("kernel.cpp", CPP, {}, 3, "common.h: No such file"),
        ("kernel.py", PYTHON, {}, 4, "line 1: ModuleNotFoundError: No module named 'tiling'"),
        ("kernel.cpp", CPP, {"common_h": "int x = ;\n"}, 3, "common.h:1:9: error"),
        ("kernel.py", PYTHON, {"tiling_py": "def doubled(x, y)\n"}, 3, "tiling.py line 1: SyntaxError"),
        (
            "kernel.py",
            PYTHON,
            {"tiling_py": "def doubled(x, y):\n    1 / 0\n"},
            4,
            "tiling.py line 2: ZeroDivisionError",
        ),
        ("kernel.py", PYTHON, {"torch_py": ""}, 2, "torch.py: would be imported in place of the module `torch`"),
    ],
)
def test_a_fault_names_its_file(
    project: Path, file: str, source: str, beside: dict[str, str], status: int, says: str
) -> None:
    done = graded(project, "check", file, source, **beside)
    assert done.returncode == status, done.stdout + done.stderr
    assert says in done.stdout + done.stderr


@pytest.mark.full
def test_debug_takes_them_from_where_they_are(project: Path) -> None:
    done = graded(
        project, "debug", "kernel.py", PYTHON, tiling_py=MODULE.replace("    torch", "    print(__file__)\n    torch")
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert str(project / "parts/tiling.py") in done.stdout
    assert graded(project, "debug", "kernel.cpp", CPP, common_h=HEADER).returncode == 0


@pytest.mark.full
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
def test_cuda_includes_a_header(project: Path) -> None:
    done = graded(project, "check", "kernel.cu", CUDA, common_cuh=KERNEL)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "compiles for" in done.stderr
    done = graded(project, "check", "kernel.cu", CUDA)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "common.cuh: No such file" in done.stdout
