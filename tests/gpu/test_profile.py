"""A profile on a GPU, in the sandbox that grades: each artefact is read back by a reader of its own."""

from __future__ import annotations

import json
import pickle
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest
from torch.cuda._memory_viz import segsum

from harness.profiling import nsight
from harness.profiling.sanitizer import program
from kernelmark.diagnostics.profiling import profile
from kernelmark.diagnostics.profiling.views import KernelProfile, ViewName
from kernelmark.diagnostics.selftest import PROBLEMS
from kernelmark.project.settings import Settings
from tests.gpu.test_audit import HONEST, LAUNCH, PAST_THE_END, TRITON

pytestmark = pytest.mark.gpu

N = 1_000_000  # elements of the benchmark
EAGER = "import torch\n\ndef twice(x, y):\n    y.copy_(x + x)\n"
COMPILED = """
import torch

@torch.compile
def doubled(x):
    return 2 * x

def twice(x, y):
    y.copy_(doubled(x))
"""
INLINE = (PROBLEMS.parent / "honest/inline_cuda/submission.py").read_text()


def cuda(kernel: str) -> str:
    return LAUNCH.format(kernel=kernel, before="", scratch="")


SOURCES = {
    "triton.py": TRITON,
    "cuda.cu": cuda(HONEST),
    "past.cu": cuda(PAST_THE_END),
    "eager.py": EAGER,
    "compiled.py": COMPILED,
    "inline.py": INLINE,
}


@pytest.fixture(scope="module", autouse=True)
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    for name, source in SOURCES.items():
        (folder / name).write_text(source)
    profiled.cache_clear()
    return folder


@cache
def profiled(folder: Path, name: str, *parts: ViewName) -> KernelProfile:
    settings = Settings.load().model_copy(update={"problems": PROBLEMS, "effort": "quick"})
    found = profile(settings, "double", (folder / name,), None, parts)
    assert found.verdict is not None
    assert found.verdict.score is not None, found.verdict.message
    [made] = found.profiles
    return made


@pytest.mark.parametrize("name", ["triton.py", "cuda.cu"])
def test_nsight_compute_reads_its_own_report(project: Path, name: str, tmp_path: Path) -> None:
    made = profiled(project, name, "torch", "ncu", "code")
    assert made.nsight is not None, made.missing
    assert re.match(r"Version 20\d\d\.", made.nsight.version)
    report = tmp_path / "read.ncu-rep"
    report.write_bytes(made.nsight.report)
    ncu = program("ncu", "nsight-compute")
    again = subprocess.run([ncu, "--import", report, "--page", "details"], capture_output=True, text=True, check=True)
    assert "GPU Speed Of Light Throughput" in again.stdout
    assert "GPU Speed Of Light Throughput" in made.nsight.details
    [kernel] = made.nsight.kernels
    assert "kernel" in kernel.name
    shares = [kernel.percent(metric) for metric in (nsight.MEMORY, nsight.ARITHMETIC, nsight.OCCUPANCY)]
    assert all(share is not None and 0 < share < 100 for share in shares), kernel.metrics
    assert kernel.bound in ("memory", "latency")
    assert any(metric.name == "Stall Long Scoreboard" for metric in kernel.metrics)


@pytest.mark.parametrize("name", ["triton.py", "cuda.cu"])
def test_the_trace_has_the_kernel_and_its_sass_the_lines(project: Path, name: str) -> None:
    made = profiled(project, name, "torch", "ncu", "code")
    assert made.torch is not None, made.missing
    for trace in made.torch.traces:
        kernels = [event for event in json.loads(trace)["traceEvents"] if event.get("cat") == "kernel"]
        # torch's profiler writes a kernel whose name is `kernel` with a capital letter.
        assert ["kernel" in kernel["name"].lower() for kernel in kernels] == [True] * 3, kernels
        assert all(kernel["dur"] > 0 for kernel in kernels)
    assert made.code is not None, made.missing
    [sass] = [text for file, text in made.code.files.items() if file.endswith(".sass")]
    assert re.search(r'submission\.\w+", line \d+  \S.*x', sass), "the line of the source is beside it"


def test_the_sanitizer_finds_the_line(project: Path) -> None:
    made = profiled(project, "past.cu", "sanitize")
    assert set(made.sanitized) == {"memcheck", "racecheck", "initcheck", "synccheck"}, made.missing
    assert made.sanitized["memcheck"].state == "found"
    assert re.search(r"Invalid __global__ read .* in submission.cu:\d", made.sanitized["memcheck"].text)
    assert made.sanitized["racecheck"].state == "clean"
    assert made.sanitized["synccheck"].state == "clean"


def test_memory_is_shown_over_time_and_as_torchs_snapshot(project: Path) -> None:
    made = profiled(project, "eager.py", "torch", "stacks", "memory")
    assert made.torch is not None, made.missing
    [timeline] = [timeline for timeline in made.torch.memory if timeline.device == "GPU"]
    assert timeline.peak_bytes >= 4 * N
    snapshot = pickle.loads(made.torch.memory_snapshot)  # noqa: S301 - the judge made it, of plain values
    actions = [event["action"] for trace in snapshot["device_traces"] for event in trace]
    assert "alloc" in actions
    assert segsum(snapshot), "torch's own reader takes it"


@pytest.mark.parametrize(("name", "kernels"), [("eager.py", 2), ("compiled.py", 1)])
def test_stacks_have_each_kernel_once(project: Path, name: str, kernels: int) -> None:
    made = profiled(project, name, "torch", "stacks", "memory")
    assert made.torch is not None, made.missing
    root = made.torch.stacks["device stacks"]
    assert [re.sub(r"\(\d+\)", "", frame.name) for frame in root.children] == ["submission.py: twice"]
    total = re.search(r"Self CUDA time total: ([\d.]+)(us|ms)", made.torch.tables["by stack"])
    assert total is not None, made.torch.tables
    spent_us = float(total[1]) * (1000 if total[2] == "ms" else 1)
    assert abs(root.value - spent_us) <= 3 * kernels * 0.5, "three calls, each kernel rounded"


@pytest.mark.parametrize("name", ["compiled.py", "inline.py"])
def test_code_that_others_compiled_is_there(project: Path, name: str) -> None:
    made = profiled(project, name, "code", "ncu")
    assert made.code is not None, made.missing
    kinds = {file.rsplit(".", 1)[1] for file in made.code.files}
    assert {"sass", "ptx"} <= kinds, sorted(made.code.files)
    assert ("py" in kinds) == (name == "compiled.py"), "what torch.compile wrote"
    assert made.nsight is not None, made.missing
    assert made.nsight.kernels
