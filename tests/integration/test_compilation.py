"""Whether what Triton's interpreter accepts compiles for a GPU: what the compiler says, and how a runner may lie."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from harness.problem import load
from harness.profiling import compilation as module
from harness.profiling.compilation import Compilation, compilation
from harness.submission import Submission
from harness.verdict import Verdict
from kernelmark.commands.submit import print_compilation
from kernelmark.diagnostics.selftest import PROBLEMS
from kernelmark.text import show
from tests.command import environment, kernelmark
from tests.runners import Script, Scripted, but, doubling, failing
from tests.verdicts import accepted, failed

ROOT = Path(__file__).parents[2]
# Line 9 is the body of a function that the kernel calls, line 14 in the kernel, line 18 the launch.
KERNEL = """import torch
import triton
import triton.language as tl

SIZES = [1]

@triton.jit
def half(v):
    {half}

@triton.jit
def doubled(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    {body}
    tl.store(y + at, 4 * half(tl.load(x + at, mask=at < n)), mask=at < n)

def twice(x, y):
    {call}
"""
RIGHT = {"half": "return v / 2", "body": "pass", "call": "doubled[(triton.cdiv(len(x), 1024),)](x, y, len(x), 1024)"}
LIST = {"body": "parts = [at for _ in range(2)]"}
# The compiler's message for every change; "" if nothing is refused.
SAID: dict[str, tuple[dict[str, str], str]] = {
    "right": ({}, ""),
    "a list": (LIST, "line 14: .*comprehension"),
    "a try": ({"body": "try: pass\n    except ValueError: pass"}, "line 14: unsupported AST node type: Try"),
    "in a function": ({"half": "return {1: v}[1]"}, "line 9: unsupported AST node type: Dict"),
    "a global": ({"body": "k = SIZES[0]"}, "line 14: .*global variable SIZES"),
    "a shape": ({"body": "z = tl.zeros((n,), tl.float32)"}, "line 14: Shape element 0 must have type `constexpr"),
    "too much shared memory": (
        {"body": "b = tl.zeros((256, 256), tl.float32); c = tl.dot(b, b); tl.store(y, tl.sum(tl.sum(c, 0), 0))"},
        "line 18: OutOfResources: out of resource: shared memory",
    ),
    "Python": ({"call": "y.undefined()"}, ""),
    "a result": ({"call": RIGHT["call"] + "; assert y[0] != y[0]"}, ""),
}
# What the runner does with CompileOnly, calls and Report, without a judge.
RUN = """
import importlib.util, json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import torch
from harness.runner.absent_gpu import AbsentGpu
refused = {}
for path in sorted(Path.home().glob("*.py")):
    absent = AbsentGpu("sm_90a")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    try:
        module.twice(torch.ones(100), torch.ones(100))
    except BaseException as error:
        absent.note(error)
    refused[path.stem] = absent.refused
print(json.dumps(refused))
"""


def source(change: dict[str, str]) -> str:
    return KERNEL.format(**RIGHT | change)


@pytest.mark.full
def test_what_the_compiler_refuses_is_reported_with_its_line_and_nothing_else_is(tmp_path: Path) -> None:
    for name, (change, _) in SAID.items():
        (tmp_path / f"{name}.py").write_text(source(change))
    command = [sys.executable, "-c", RUN, str(ROOT)]
    environment_variables = environment() | {"HOME": str(tmp_path), "TRITON_INTERPRET": "1"}
    done = subprocess.run(command, env=environment_variables, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    refused = json.loads(done.stdout)
    assert refused.keys() == SAID.keys()
    for name, (_, said) in SAID.items():
        assert re.match(f"{name}.py {said}" if said else "$", refused[name]), (name, refused[name])


def test_the_sizes_of_a_gpu_come_first_each_dtype_once() -> None:
    names = [case.name for case in module._cases(load(ROOT / "problems/matmul"))]
    assert names[0] == "float32, 2048³"
    assert {*names[1:3]} == {"bfloat16, 1024³", "float16, 16 × 14336 × 4096"}
    assert "one element" in names
    assert len({*names}) == len(names)


def answered(kernels: Any = 2, refused: Any = "", *, call: str = "", report: str = "Compiled") -> Compilation | None:
    """What is made of a runner that reports this, and whose calls fail with this message."""

    def tell(script: Script, token: int, body: dict[str, Any]) -> None:
        fields = {"kernels": kernels, "refused": refused} if report == "Compiled" else {}
        script.reply(token, report, **fields) if report else script.socket.recv(1)

    calls = {"Call": failing("runtime_error", call)} if call else {}
    runner = Scripted(but(doubling(), Report=tell, **calls))
    return compilation(load(PROBLEMS / "double"), Submission.of(source({}), "py", author="ada"), runner)


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({}, "compiles    for a GPU (sm_90a)"),
        ({"kernels": 0}, ""),
        ({"refused": "line 3: x", "call": "line 3: x"}, "warning     does not compile for a GPU (sm_90a): line 3: x"),
        (
            {"refused": "\x1b[2J\n  accepted\u202e"},
            r"warning     does not compile for a GPU (sm_90a): \x1b[2J\n  accepted\u202e",
        ),
        (
            {"call": "line 9: AssertionError"},
            "compiles    not known for a GPU (sm_90a): kernels are compiled there and not run, and it failed (line 9: ",
        ),
        ({"kernels": -1}, "compiles    not known for a GPU (sm_90a): the runner broke the protocol"),
        ({"refused": "x" * 501}, "compiles    not known for a GPU (sm_90a): the runner broke the protocol"),
        ({"report": "Done"}, "compiles    not known for a GPU (sm_90a): the runner answered Done"),
        ({"report": ""}, "compiles    not known for a GPU (sm_90a): gave no answer within 1 s"),
    ],
)
def test_whatever_is_reported_is_one_line(given: dict[str, Any], line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LIMIT_S", 1.0 if given.get("report") == "" else 60.0)
    found = answered(**given)
    shown = "" if found is None else show.compilation(found)
    assert shown.isprintable()
    assert shown.strip().startswith(line)
    assert bool(shown) == bool(line)


INTERPRETED = accepted(device_kind="cpu", interpreted=True)


@pytest.mark.parametrize(
    ("result", "asked"),
    [
        (INTERPRETED, 1),
        (accepted(device_kind="cpu"), 0),
        (accepted(device_kind="cuda", interpreted=True), 0),
        (failed().model_copy(update={"environment": INTERPRETED.environment}), 0),
    ],
)
def test_only_what_the_interpreter_accepted_is_compiled(result: Verdict, asked: int) -> None:
    job = Mock(compilation=Mock(return_value=None))
    print_compilation(job, result)
    assert job.compilation.call_count == asked


def test_a_check_that_the_interpreter_accepts_warns_of_what_the_compiler_refuses(tmp_path: Path) -> None:
    (tmp_path / "kernelmark.toml").write_text(f'problems = "{PROBLEMS}"\ndevice = "cpu"\nsandbox = "process"\n')
    (tmp_path / "kernel.py").write_text(source(LIST))
    done = kernelmark(tmp_path, "check", "double", "kernel.py")
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "accepted"), done.stderr
    warning = "  warning     does not compile for a GPU (sm_90a): line 14: "
    assert done.stdout.splitlines()[-1].startswith(warning), done.stdout
