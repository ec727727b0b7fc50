"""What happens beside what while a grading starts."""

from __future__ import annotations

import subprocess
import sys

# A launch that fails unless torch is imported meanwhile.
BESIDE = """
import sys, threading, time
from harness.errors import SandboxError
from harness.judge import Grader, Setup
from harness.problem import load
from harness.submission import Submission
from kernelmark.diagnostics.selftest import PROBLEMS
from types import SimpleNamespace

def launch(_):
    deadline = time.monotonic() + 120
    while "torch" not in sys.modules and time.monotonic() < deadline:
        time.sleep(0.01)
    raise SandboxError("torch is imported" if "torch" in sys.modules else "waited in vain")

assert "torch" not in sys.modules
provider = SimpleNamespace(name="process", launch=launch, image_digest=lambda: None)
setup = Setup(load(PROBLEMS / "double"), Submission.of("", "py", author="a"), provider=provider, device="cpu")
with Grader(setup) as grader:
    try:
        grader.check()
    except SandboxError as error:
        print(error)
"""

ONE_THREAD = """
import os
from harness.runner.__main__ import _one_blas_thread
os.environ["OPENBLAS_NUM_THREADS"] = "64"
with _one_blas_thread():
    import numpy
print(len(os.listdir("/proc/self/task")), os.environ["OPENBLAS_NUM_THREADS"])
del os.environ["OPENBLAS_NUM_THREADS"]
with _one_blas_thread():
    pass
assert "OPENBLAS_NUM_THREADS" not in os.environ
"""


def _printed(script: str) -> str:
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.strip()


def test_torch_is_imported_while_the_sandbox_is_launched() -> None:
    assert _printed(BESIDE).startswith("torch is imported")


def test_numpy_starts_no_threads_in_a_runner_and_later_programs_do_as_before() -> None:
    assert _printed(ONE_THREAD) == "1 64"
