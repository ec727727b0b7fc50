"""`kernelmark profile`, as a user types it; each artefact is read back by a reader of its own."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from kernelmark.diagnostics.selftest import PROBLEMS
from tests.command import kernelmark
from tests.sites import Links

SOURCE = """
import torch

def doubled(x):
    return torch.add(x, x)

def twice(x, y):
    y.copy_(doubled(x))
"""
TRITON = """
import torch, triton
import triton.language as tl

@triton.autotune([triton.Config({"BLOCK": block}) for block in (16384, 32768)], key=["n"])
@triton.jit
def doubling(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)

def twice(x, y):
    doubling[lambda m: (triton.cdiv(x.numel(), m["BLOCK"]),)](x, y, x.numel())
"""
CUDA = """
#include <cstdint>
#include <cuda_runtime.h>
__global__ void doubling(const float *x, float *y, int64_t n) {
    int64_t i = blockIdx.x * 256L + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}
extern "C" void twice(const float *x, float *y, int64_t n, cudaStream_t stream) {
    doubling<<<(n + 255) / 256, 256, 0, stream>>>(x, y, n);
}
"""
MODULE = """
import torch

class Doubling(torch.nn.Module):
    def forward(self, x):
        return x + x

doubling = Doubling()

def twice(x, y):
    y.copy_(doubling(x))
"""
LARGEST = 1_000_000  # elements of the benchmark
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "kernelmark.toml").write_text('sandbox = "process"\ndevice = "cpu"\n')
    shutil.copytree(PROBLEMS / "double", folder / "problems" / "double")
    (folder / "reference/double").mkdir(parents=True)
    (folder / "reference/double/eager.py").write_text("import torch\ndef twice(x, y): torch.mul(x, 2, out=y)\n")
    (folder / "kernel.py").write_text(SOURCE)
    return folder


def profile(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return kernelmark(project, "profile", *arguments)


@pytest.fixture(scope="module")
def ended(project: Path) -> subprocess.CompletedProcess[str]:
    done = profile(project, "double", "kernel.py", "--baseline", "eager", "--out", "out", "--tensorboard", "board")
    assert done.returncode == 0, done.stderr
    return done


def test_the_terminal_has_the_time_and_the_hottest_functions(ended: subprocess.CompletedProcess[str]) -> None:
    assert ended.stdout.startswith("accepted: ")
    [head] = [line for line in ended.stdout.splitlines() if line.split()[:2] == ["case", "time"]]
    assert "× eager" in head
    after = ended.stdout[ended.stdout.index("kernel.py, by torch.profiler, cpu time") :]
    assert "aten::add" in after[: after.index("baseline eager.py, by torch.profiler")]
    assert "aten::mul" in after[after.index("baseline eager.py, by torch.profiler") :]
    assert len(ended.stdout.splitlines()) <= 40, "it fits a screen"


@pytest.mark.full
@pytest.mark.usefixtures("ended")
def test_a_trace_a_repeat_has_the_operators_of_three_calls(project: Path) -> None:
    traces = sorted((project / "out").glob("kernel-py.trace-*.json"))
    assert len(traces) == 2
    for path in traces:
        events = json.loads(path.read_text("ascii"))["traceEvents"]
        calls = [event for event in events if event.get("name") == "aten::add"]
        assert len(calls) == 3
        assert all(call["dur"] > 0 and call["args"]["Input Dims"] for call in calls), "with their shapes"
        assert sum(str(each.get("name")).startswith("ProfilerStep#") for each in events) >= 3
    board = sorted((project / "board").iterdir())
    workers = ("baseline-eager-py", "kernelmark")
    assert [path.name for path in board] == [
        f"{name}.{number}.pt.trace.json" for name in workers for number in range(2)
    ]
    assert board[2].read_bytes() == traces[0].read_bytes()


@pytest.mark.full
@pytest.mark.usefixtures("ended")
def test_tensorboards_plugin_reads_the_traces_that_it_finds_by_their_names(project: Path, tmp_path: Path) -> None:
    from torch_tb_profiler.consts import WORKER_PATTERN
    from torch_tb_profiler.profiler.data import RunProfileData

    called = {"baseline-eager-py": "aten::mul", "kernelmark": "aten::add"}
    for path in sorted((project / "board").iterdir()):
        assert WORKER_PATTERN.match(path.name), path.name
        read = RunProfileData.parse("kernelmark", None, str(path), str(tmp_path))
        read.process()
        assert [row.calls for row in read.op_list_groupby_name if row.name == called[path.name.partition(".")[0]]] == [
            3
        ]


def test_the_profiler_records_the_calls_and_rows_that_are_asked_for(project: Path) -> None:
    asked = ("--schedule", "wait=0,warmup=1,active=2,repeat=1", "--sort-by", "count", "--row-limit", "2")
    done = profile(project, "double", "kernel.py", "--torch", "--out", "asked", *asked)
    assert done.returncode == 0, done.stderr
    [trace] = (project / "asked").glob("kernel-py.trace-*.json")
    events = json.loads(trace.read_text("ascii"))["traceEvents"]
    assert sum(event.get("name") == "aten::add" for event in events) == 2
    for table in ("operators", "autograd-table"):
        lines = (project / "asked" / f"kernel-py.{table}.txt").read_text().splitlines()
        rules = [number for number, line in enumerate(lines) if line.startswith("---")]
        rows = lines[rules[1] + 1 : rules[2]]
        assert len(rows) == 2
        counts = [int(row.split()[-1]) for row in rows if row.split()[-1].isdigit()]
        assert counts == sorted(counts, reverse=True)


@pytest.mark.full
@pytest.mark.usefixtures("ended")
def test_the_flame_graph_and_the_stacks_have_the_callers(project: Path) -> None:
    root = ET.parse(project / "out/kernel-py.cpu-stacks.svg").getroot()
    titles = [title.text or "" for title in root.iter(f"{SVG}title")]
    assert any(title.startswith("submission.py(4): doubled\n") for title in titles)
    stacks = (project / "out/kernel-py.cpu-stacks.txt").read_text().splitlines()
    [added] = [line for line in stacks if line.split(";")[-1].startswith("aten::add ")]
    frames = added.rsplit(" ", 1)[0].split(";")
    assert [frame.partition(" ")[2] for frame in frames[:2]] == ["twice", "doubled"]
    assert not [line for line in stacks if "harness/runner" in line or "torch/profiler" in line], "ours are left out"


@pytest.mark.full
@pytest.mark.usefixtures("ended")
def test_the_tables_are_torchs(project: Path) -> None:
    shapes = (project / "out/kernel-py.shapes.txt").read_text()
    assert "aten::add" in shapes
    assert "Input Shapes" in shapes
    assert "Source Location" in (project / "out/kernel-py.by-stack.txt").read_text()
    assert "aten::add" in (project / "out/kernel-py.autograd-table.txt").read_text()
    assert "doubled" not in (project / "out/kernel-py.operators.txt").read_text(), "operators alone"


@pytest.mark.full
@pytest.mark.usefixtures("ended")
def test_the_page_links_to_every_file_and_has_no_script(project: Path) -> None:
    page = (project / "out/index.html").read_text()
    written = {path.name for path in (project / "out").iterdir()} - {"index.html"}
    assert {link for link in Links(page).found if not link.startswith("https://")} == written
    assert "<script" not in page


@pytest.mark.full
@pytest.mark.usefixtures("ended")
def test_memory_over_time_has_what_a_call_allocates(project: Path) -> None:
    root = ET.parse(project / "out/kernel-py.memory-CPU.svg").getroot()
    assert len(list(root.iter(f"{SVG}path"))) >= 3, "two axes and a line"
    page = (project / "out/index.html").read_text()
    peak = int(re.search(r"<td>CPU</td><td>([\d,]+)</td>", page)[1].replace(",", ""))  # type: ignore[index]
    assert peak >= 4 * LARGEST, "what `doubled` returns"


@pytest.mark.full
@pytest.mark.parametrize(
    ("part", "files"),
    [
        ("--memory", {"memory-CPU.svg"}),
        ("--stacks", {"cpu-stacks.svg", "cpu-stacks.txt", "by-stack.txt", "modules.txt"}),
    ],
)
def test_parts_can_be_chosen(project: Path, part: str, files: set[str]) -> None:
    (project / "module.py").write_text(MODULE)
    ended = profile(project, "double", "module.py", part, "--out", part)
    assert ended.returncode == 0, ended.stderr
    assert {path.name for path in (project / part).iterdir()} == {
        "index.html",
        *(f"module-py.{name}" for name in files),
    }
    if "modules.txt" in files:
        [_, line] = (project / part / "module-py.modules.txt").read_text().splitlines()
        assert line.split()[2] == "Doubling_0"


@pytest.mark.full
def test_the_code_of_triton_is_there_without_a_gpu(project: Path) -> None:
    (project / "triton_kernel.py").write_text(TRITON)
    ended = profile(project, "double", "triton_kernel.py", "--out", "code")
    assert ended.returncode == 0, ended.stderr
    code = {path.name.removeprefix("triton_kernel-py.0-doubling."): path for path in (project / "code").iterdir()}
    assert "tt.func public @doubling" in code["ttir"].read_text()
    assert "#ttg.blocked" in code["ttgir"].read_text()
    assert "define ptx_kernel void @doubling" in code["llir"].read_text()
    assert ".target sm_90" in code["ptx"].read_text()
    beside = 'submission.py", line 9  tl.store(y + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)'
    assert beside in code["sass"].read_text(), "the source's line beside its instructions"
    assert "REG:" in code["resources.txt"].read_text()
    [chosen] = (project / "code").glob("*.autotune.txt")
    assert "BLOCK: 16384" in chosen.read_text(), "without a GPU it is the first"
    page = (project / "code/index.html").read_text()
    assert re.search(r"registers.*\n<tr><td>doubling</td><td>[1-9]", page)
    assert "triton_kernel-py.0-doubling.sass" in page


@pytest.mark.full
def test_a_cuda_kernel_without_a_gpu_has_its_code_alone(project: Path) -> None:
    (project / "kernel.cu").write_text(CUDA)
    ended = profile(project, "double", "kernel.cu", "--out", "cuda")
    assert (ended.returncode, ended.stdout) == (0, ""), ended.stderr
    assert "cannot run on this machine" in ended.stderr
    files = {path.name for path in (project / "cuda").iterdir()}
    code = {kind: f"kernel-cu.submission.{kind}" for kind in ("sass", "ptx", "resources.txt", "build.txt")}
    assert files == {"index.html", *code.values()}
    beside = 'submission.cu", line 6  if (i < n) y[i] = 2 * x[i];'
    assert beside in (project / "cuda" / code["sass"]).read_text()
    assert "registers" in (project / "cuda" / code["build.txt"]).read_text()
    assert ".visible .entry" in (project / "cuda" / code["ptx"]).read_text()


@pytest.mark.full
def test_a_sweep_times_the_kernel_and_the_baseline_at_each_size(project: Path) -> None:
    ended = profile(
        project, "double", "kernel.py", "--baseline", "eager", "--sweep", "n=30000:120000", "--out", "sizes"
    )
    assert ended.returncode == 0, ended.stderr
    lines = [line.split()[0] for line in ended.stdout.splitlines()]
    assert lines[:4] == ["n", "30000", "60000", "120000"]
    assert {*lines[4:]} <= {"doubt"}, "on a busy machine"
    rows = (project / "sizes/sweep.csv").read_text().splitlines()
    assert [row.split(",")[:2] for row in rows[1:]] == [
        [size, kernel] for size in ("30000", "60000", "120000") for kernel in ("yours", "eager")
    ]
    groups = ET.parse(project / "sizes/sweep.svg").getroot().iter(f"{SVG}g")
    assert sum(group.get("class", "").startswith("mark ") for group in groups) == 6


@pytest.mark.full
def test_a_wrong_kernel_is_shown_as_wrong(project: Path) -> None:
    (project / "wrong.py").write_text("def twice(x, y): y.fill_(1)\n")
    ended = profile(project, "double", "wrong.py", "--out", "none")
    assert ended.returncode == 1
    assert ended.stdout.startswith("wrong answer")
    assert not (project / "none").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("double", "nowhere.py"), "nowhere.py cannot be read"),
        (("double", "kernel.py", "--case", "hugh"), "case 'hugh' is not a benchmark of double"),
        (("double", "kernel.py", "--baseline", "eagre"), "baseline eagre is not in"),
        (("double", "kernel.py", "--ncu"), "--ncu needs a GPU"),
        (("double", "kernel.py", "--sweep", "n=1"), "--sweep: 'n=1' names 1 sizes"),
    ],
)
def test_what_cannot_be_profiled_is_one_line(project: Path, arguments: tuple[str, ...], message: str) -> None:
    ended = profile(project, *arguments)
    assert ended.returncode == 2
    assert ended.stderr.splitlines()[-1].startswith(f"kernelmark: error: {message}")


DIES = (
    SOURCE
    + """
import os
def twice(x, y):
    if torch.autograd._profiler_enabled():
        os._exit(3)
    y.copy_(doubled(x))
"""
)


@pytest.mark.full
@pytest.mark.parametrize("sandbox", ["process", pytest.param("bwrap", marks=[pytest.mark.bwrap, pytest.mark.full])])
def test_a_submitted_kernel_is_profiled_and_the_site_shows_it(project: Path, sandbox: str) -> None:
    ended = kernelmark(
        project, "submit", "double", "kernel.py", "--quick", "--profile", "--author", sandbox, "--sandbox", sandbox
    )
    assert ended.returncode == 0, ended.stderr
    [path] = (project / "leaderboard/archive/double" / sandbox).glob("*.profile.json")
    assert ended.stderr.splitlines()[-1] == f"profile in {path.relative_to(project)}"
    document = json.loads(path.read_bytes())
    [stacks] = document["stacks"].values()
    assert any("doubled" in line and "aten::add" in line for line in stacks.splitlines())
    assert "aten::add" in document["tables"]["By operator"]
    assert document["missing"] == []
    assert kernelmark(project, "verify").returncode == 0
    assert kernelmark(project, "site", "build", "--out", f"site-{sandbox}").returncode == 0
    page = (project / f"site-{sandbox}/profiles" / f"{document['run']}.html").read_text()
    assert "submission.py(4): doubled" in page
    assert "aten::add" in page


@pytest.mark.full
def test_a_submission_that_dies_under_the_profiler_is_recorded_all_the_same(project: Path) -> None:
    (project / "dies.py").write_text(DIES)
    ended = kernelmark(project, "submit", "double", "dies.py", "--quick", "--profile", "--author", "dee")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("accepted: ")
    line = ended.stderr.splitlines()[-1]
    assert line.startswith("no profile: torch.profiler: ")
    assert [path.suffix for path in (project / "leaderboard/archive/double/dee").iterdir()] == [".py"]
