"""What is compiled before a submission's calls need it: by helpers beside the runner, and with the image.

There is no GPU in these tests: kernels are compiled for one that is absent, and not launched.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import docker
import pytest
from triton.backends.nvidia import driver as nvidia
from triton.runtime import cache

from harness.runner import absent_gpu, triton_start
from tests.command import environment
from tests.integration.test_sandboxes import eventually

ROOT = Path(__file__).parents[2]
SIZES = [100, 3000, 70_000]
# A new constant for each size, so that each is compiled separately. The file counts its imports.
KERNEL = """
import os
import torch
import triton
import triton.language as tl

with open("imports", "a") as file:
    file.write("x")
print("a helper prints nothing")

@triton.jit
def doubled(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)

def twice(x, y):
    {before}
    block = triton.next_power_of_2(len(x)) // 2
    doubled[(2,)](x, y, len(x), block)
"""
ASKS = """
    assert x.is_cuda and x.device == torch.device("cuda", 0) and x.get_device() == 0
    assert torch.cuda.get_device_properties(x.device).multi_processor_count == 132
    z = torch.empty(len(x), device="cuda") + torch.zeros_like(x).to(x.device) + x.cuda()
    assert z.shape == x.shape
"""
# The runner's part, with a judge's commands. Then the calls, as they would be made on the device.
RUN = """
import json, os, sys, time
from pathlib import Path
import torch
from harness.runner import build, compiling
from harness.runner.absent_gpu import AbsentGpu
from harness.runner.ahead import CompileAhead
from harness.runner.devices import RunnerCpu
from harness.shared.call import Forms
from harness.wire import commands
ahead = CompileAhead()
sizes, waits = json.loads(sys.argv[1]), sys.argv[2] == "waits"
told = commands.Build(language="py", symbols=("twice",), architecture="sm_90a")
os.chdir(Path.home())
ahead.begin(told, {"multi_processor_count": 132, "major": 9, "minor": 0})
for size in sizes:
    common = {"dtype": "float32", "shape": (size,), "offset": 0, "group": ""}
    x = commands.TensorArgument(name="x", writable=False, **common)
    y = commands.TensorArgument(name="y", writable=True, **common)
    ahead.tell(commands.Declare(arguments=(x, y)))
    bind = commands.Bind(symbol="twice", scalars=(), sizes=(), sets=1, input_bytes=0, input_stride=0, output_bytes=0,
                         output_stride=0, inputs_writable=False, forms=Forms(), seed=0)
    ahead.tell(commands.Ahead(bind=bind, at_most=2))
cache = Path(os.environ["TRITON_CACHE_DIR"])
deadline = time.monotonic() + 120
# Triton writes a file in a folder of its own inside the kernel's, and then moves it up: that one is not whole yet.
while waits and len(list(cache.glob("*/__grp__*.json"))) < len(sizes) and time.monotonic() < deadline:
    time.sleep(0.05)
group = ahead._first
ahead.end()
ahead.end()
def living():
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, its_group = stat.read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if state not in "ZX" and int(its_group) == group:
            yield stat
deadline = time.monotonic() + 60
while group and list(living()) and time.monotonic() < deadline:
    time.sleep(0.01)
ended = not group or not list(living())
absent = AbsentGpu("sm_90a")
kernel = build.import_python(compiling.source_path(), told, RunnerCpu())
ahead.watch()
for size in sizes:
    sys.modules["submission"].twice.__globals__["before"] = None
    sys.modules["submission"].twice(torch.ones(size), torch.ones(size))
print(json.dumps([*ahead.counts, ended, Path("imports").read_text()]))
"""


def run(home: Path, before: str, waits: str) -> list[object]:
    (home / "submission.py").write_text(KERNEL.format(before=before))
    environment_variables = environment() | {
        "HOME": str(home),
        "TRITON_CACHE_DIR": str(home / ".triton"),
        "PYTHONPATH": str(ROOT),
    }
    environment_variables.pop("TRITON_INTERPRET", None)
    command = [sys.executable, "-c", RUN, json.dumps(SIZES), waits]
    done = subprocess.run(command, env=environment_variables, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    printed = done.stdout.splitlines()
    assert printed[:-1] == ["a helper prints nothing"], "once, when it is imported here"
    told: list[object] = json.loads(printed[-1])
    return told


def test_what_helpers_compiled_is_found_by_the_calls(tmp_path: Path) -> None:
    """Their imports write no file that the runner's could find."""
    asks = "\n    ".join(line.strip() for line in ASKS.strip().splitlines())
    guarded = f"if x.is_cuda:\n        {asks.replace(chr(10), chr(10) + '    ')}"
    assert run(tmp_path, guarded, "waits") == [len(SIZES), 0, True, "x"]


@pytest.mark.parametrize("before", ["if x.is_cuda: os._exit(1)", "if x.is_cuda: x.sum().item()", "# torch.compile"])
def test_without_help_the_calls_compile(tmp_path: Path, before: str) -> None:
    """A helper that ends or raises, and a file that none imports."""
    assert run(tmp_path, before, "does not wait") == [0, len(SIZES), True, "x"]


def test_helpers_leave_the_hash_of_triton_so_that_no_process_computes_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path, "pass", "waits")
    left = (tmp_path / ".triton" / "triton_key").read_text()
    assert left == cache.triton_key()
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / ".triton"))
    monkeypatch.setattr(cache, "triton_key", pytest.fail)
    triton_start.prepare()
    assert cache.triton_key() == left


BEGIN = """
import os, sys
from harness.runner import triton_start
triton_start.begin()
print("triton" in sys.modules)
try:
    os.waitpid(-1, 0)
except ChildProcessError:
    print("no child")
"""


def test_a_process_beside_the_runner_prepares_triton(tmp_path: Path) -> None:
    """The runner neither imports Triton nor has a child, which a submission could wait for."""
    folder = tmp_path / "cache"
    variables = environment() | {"TRITON_CACHE_DIR": str(folder), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", BEGIN], env=variables, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["False", "no child"]
    eventually(lambda: ((folder / "triton_key").is_file() and any(folder.glob("*/cuda_utils*.so"))) or None)
    assert (folder / "triton_key").read_text() == cache.triton_key()


@pytest.mark.parametrize("loads", [True, False])
def test_the_launcher_of_a_kernel_is_compiled_where_triton_has_one_in_c(
    loads: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Triton 3.6 needs gcc for each signature. Without a driver it then cannot load what it has compiled."""
    compiled = []

    def launcher(source: object, metadata: object) -> None:
        compiled.append((source, metadata))
        if not loads:
            raise ImportError("libcuda.so.1: cannot open shared object file")

    monkeypatch.setattr(nvidia, "CudaLauncher", launcher)
    launch = absent_gpu._compiled_launcher("source", "metadata")
    assert compiled == [("source", "metadata")]
    launch(1, 1, 1)


def test_a_wrong_hash_only_makes_the_calls_compile(tmp_path: Path) -> None:
    (tmp_path / ".triton").mkdir()
    (tmp_path / ".triton" / "triton_key").write_text("wrong")
    assert run(tmp_path, "pass", "waits") == [0, len(SIZES), True, "x"]


def test_a_runner_brings_what_its_image_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    triton_start.bring(tmp_path / "nothing")
    assert not (tmp_path / "cache").exists()
    (tmp_path / "image" / "KEY").mkdir(parents=True)
    (tmp_path / "image" / "KEY" / "helper.so").write_bytes(b"\x7fELF")
    triton_start.bring(tmp_path / "image")
    assert (tmp_path / "cache" / "KEY" / "helper.so").read_bytes() == b"\x7fELF"


FIND = """
import hashlib, os, sysconfig
from pathlib import Path
from triton.backends import nvidia
from triton.runtime.build import platform_key
from triton.runtime.cache import get_cache_manager
source = Path(nvidia.__path__[0], "driver.c").read_text()
found = get_cache_manager(hashlib.sha256((source + platform_key()).encode()).hexdigest()).get_file(
    f"cuda_utils{sysconfig.get_config_var('EXT_SUFFIX')}"
)
print("libcuda.so.1" in Path(found or os.devnull).read_text("latin-1"))
"""


@pytest.mark.docker
def test_the_image_has_what_triton_launches_by() -> None:
    """Where Triton looks for it, and loaded with the driver."""
    printed = docker.from_env().containers.run(
        "kernelmark-runner", ["python3", "-c", FIND], environment={"TRITON_CACHE_DIR": "/opt/triton"}, remove=True
    )
    assert printed.decode().strip() == "True"
