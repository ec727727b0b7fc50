"""What a runner without a GPU does with Triton kernels: what the interpreter cannot run is not held against them."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import kernelmark
from harness.device import DEVICES
from harness.judge.session import Session, SubmissionFault
from harness.judge.session.output import PrintedOutput
from harness.judge.session.time_limit import TimeLimit
from harness.problem import load
from harness.runner import build, compiling, faults
from harness.runner.devices import RunnerCpu
from harness.verdict import Check, Outcome
from harness.wire import commands, frame, replies
from kernelmark.diagnostics.selftest import PROBLEMS
from tests import grading

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent / "interpreter"

# What the runner does, without a judge: it completes the interpreter, imports the submission, describes each failure.
RUN = """
import importlib.util, inspect, json, os, sys
from dataclasses import asdict
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import torch
from harness.runner import faults, interpreter
interpreter.complete()
looked_at, members = [], inspect.getmembers
inspect.getmembers = lambda of, *given: looked_at.append(repr(of)) or members(of, *given)
spec = importlib.util.spec_from_file_location("submission", Path.home() / "submission.py")
module = sys.modules["submission"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
results, on_a_gpu = {}, {}
for name, kernel in {**module.RIGHT, **module.HIS, **module.OURS}.items():
    x, y = torch.rand(256) + 1, torch.zeros(256)
    try:
        kernel(x, y, 1e-5, True)
    except BaseException as error:
        results[name] = asdict(faults.describe(error, building=False))
        os.environ["KERNELMARK_DEVICE"] = "cuda"
        on_a_gpu[name] = faults.describe(error, building=False).outcome
        del os.environ["KERNELMARK_DEVICE"]
    else:
        results[name] = {"outcome": "right", "x": x[:16].tolist(), "y": y[:16].tolist()}
tables = {table: list(getattr(module, table)) for table in ("RIGHT", "HIS", "OURS")}
print(json.dumps({"results": results, "on_a_gpu": on_a_gpu, "looked_at": looked_at, **tables}))
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    home = tmp_path_factory.mktemp("home")
    shutil.copy(HERE / "kernels.py", home / "submission.py")
    environment = {**os.environ, "HOME": str(home), "TRITON_INTERPRET": "1"}
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(ROOT)],
        env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return {**found, "stderr": done.stderr}


def test_what_the_interpreter_cannot_do_is_distinguished_from_what_an_author_does_wrong(ran: dict[str, Any]) -> None:
    expected = {"RIGHT": "right", "HIS": "runtime_error", "OURS": "unsupported"}
    for table, outcome in expected.items():
        became = {name: ran["results"][name]["outcome"] for name in ran[table]}
        assert became == dict.fromkeys(ran[table], outcome), json.dumps(ran["results"], indent=2)


def test_on_a_gpu_whatever_is_raised_is_the_authors(ran: dict[str, Any]) -> None:
    assert set(ran["OURS"]) <= set(ran["on_a_gpu"])
    assert set(ran["on_a_gpu"].values()) == {"runtime_error"}


def test_both_are_reported_with_the_line_of_the_kernel_and_what_it_raised(ran: dict[str, Any]) -> None:
    lines = (HERE / "kernels.py").read_text().splitlines()
    for name, line, said in (
        ("unknown_name", "tl.store(y + foo, 1.0)", "NameError: name 'foo' is not defined"),
        ("unknown_name_in_a_helper", "return missing(value)", "NameError: name 'missing' is not defined"),
        ("variable_of_a_for_has_to", "k.to(tl.int64)", "Triton's interpreter cannot run this; grade it on a GPU"),
        ("device_of_torch", "torch.cuda.synchronize()", "needs a CUDA device, and there is none here"),
    ):
        number = next(i for i, text in enumerate(lines, 1) if line in text)
        assert ran["results"][name]["message"].startswith(f"line {number}: "), ran["results"][name]
        assert said in ran["results"][name]["message"]


def test_the_completed_interpreter_computes_what_the_device_would(ran: dict[str, Any]) -> None:
    import torch

    def got(name: str) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.tensor(ran["results"][name]["x"]), torch.tensor(ran["results"][name]["y"])

    x, y = got("float_argument_has_to")
    torch.testing.assert_close(y, x + 1e-5)
    x, y = got("float_argument_computes")
    torch.testing.assert_close(y, torch.full_like(x, 1.5e-5))
    _, y = got("infinite")
    assert y.isinf().all()
    assert "RuntimeWarning" not in ran["stderr"], "a device is silent about infinities"
    x, y = got("bool_argument")
    assert y[0] == 1.0
    x, y = got("libdevice_dispatched")
    torch.testing.assert_close(y, x.tanh() + x**2)
    x, y = got("libdevice_of_cuda")
    torch.testing.assert_close(y, x.exp() * x[0].rsqrt())


def test_narrow_floats_are_rounded_and_computed_with_as_on_a_device() -> None:
    command = [sys.executable, str(HERE / "narrow.py"), str(ROOT)]
    environment_variables = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run(command, env=environment_variables, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    assert [name for name, alike in results.items() if not alike] == []


def test_the_builtins_of_a_package_are_looked_for_once(ran: dict[str, Any]) -> None:
    """Triton does at every call of a function within a kernel."""
    looked_at = [name for name in ran["looked_at"] if "triton.language" in name]
    assert any("tensor" in name for name in looked_at)
    assert sorted(looked_at) == sorted(set(looked_at))


def test_a_layer_norm_in_ligers_style_is_accepted_without_a_gpu() -> None:
    found = kernelmark.check(ROOT / "problems" / "layernorm", HERE / "layernorm.py", device="cpu", sandbox="process")
    assert found.outcome is Outcome.ACCEPTED, found.message


def test_a_kernel_that_only_a_gpu_can_run_is_unsupported() -> None:
    assembly = "    tl.inline_asm_elementwise('', '=r,r', [values], tl.float32, True, 1)\n"
    text = (HERE / "layernorm.py").read_text().replace("    mean = ", f"{assembly}    mean = ")
    found = kernelmark.check(ROOT / "problems" / "layernorm", text, device="cpu", sandbox="process")
    assert found.outcome is Outcome.UNSUPPORTED
    assert found.outcome.exit_code == 8
    assert "Triton's interpreter cannot run this; grade it on a GPU" in found.message
    assert {test.outcome for test in found.tests} == {Outcome.UNSUPPORTED}


@pytest.mark.parametrize(("device", "outcome"), [("cpu", Outcome.UNSUPPORTED), ("cuda", Outcome.REJECTED)])
def test_who_has_a_gpu_cannot_claim_to_lack_one(device: Any, outcome: Outcome) -> None:
    judge, runner = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    session = Session.__new__(Session)
    session._socket, session._device, session._has_submission, session.output = (
        judge,
        DEVICES[device],
        True,
        PrintedOutput(1000),
    )
    session._sandbox = SimpleNamespace(breach=lambda: None)  # type: ignore[assignment]  # all that it is asked

    def lie() -> None:
        token, _, _ = frame.receive_command(runner)
        frame.send(runner, token, replies.Failed("unsupported", "grade it on a GPU", "", fatal=False))

    liar = threading.Thread(target=lie)
    liar.start()
    with pytest.raises(SubmissionFault) as fault:
        session.ask(commands.Call(sets=(0,)), replies.Done, limit=TimeLimit(10), doing="testing")
    liar.join()
    session.output.close()
    judge.close()
    runner.close()
    assert fault.value.outcome is outcome


LAUNCH = "k[(len(x),)](x, y)"
SUBMISSION = """import torch
import triton
import triton.language as tl

@triton.jit
def k(x, y):
    tl.store(y + tl.program_id(0), 2 * tl.load(x + tl.program_id(0)))

def twice(x, y):
    {body}
"""
SHORT = {"build_s": 10.0, "call_s": 10.0}


def checked(body: str, **limits: float) -> Check:
    problem = load(PROBLEMS / "double")
    [test] = [case for case in problem.tests if case.name == "one"]
    shown = problem.model_copy(
        update={
            "tests": (test.model_copy(update={"params": {"n": 3_000_000}}) if limits else test,),
            "limits": problem.limits.model_copy(update=limits),
        }
    )
    return grading.checked(shown, SUBMISSION.format(body=body))


@pytest.mark.parametrize(("body", "interpreted"), [(LAUNCH, True), ("y.copy_(2 * x)", False)], ids=["launched", "not"])
def test_interpreted_is_what_was_launched_and_not_what_was_imported(body: str, interpreted: bool) -> None:
    found = checked(body)
    assert found.outcome is Outcome.ACCEPTED, found.message
    assert found.environment.interpreted is interpreted


@pytest.mark.full
@pytest.mark.parametrize(
    ("body", "outcome"),
    [(LAUNCH, Outcome.UNSUPPORTED), ("k[(1,)](x, y)\n    while True: pass", Outcome.TIMEOUT)],
    ids=["many programs", "an endless loop"],
)
def test_what_the_interpreter_is_too_slow_for_is_unsupported_and_an_endless_loop_is_not(
    body: str, outcome: Outcome
) -> None:
    found = checked(body, **SHORT)
    assert found.outcome is outcome, found.message
    if outcome is Outcome.UNSUPPORTED:
        assert "Triton's interpreter is too slow for this; grade it on a GPU (TooSlow: " in found.message
        assert " of the 3000000 programs of a launch ran in the time that is left" in found.message


CUDA = """import os
from torch.utils import cpp_extension
os.environ["TORCH_CUDA_ARCH_LIST"] = "9.0"
cpp_extension.CUDA_HOME = None  # as without nvcc, or with a PyTorch for CPUs
cpp_extension.load_inline("extension", "", "void launch() {}", functions=["launch"])
def twice(x, y): pass
"""


def test_cuda_in_python_is_nobodys_mistake_where_no_toolkit_is() -> None:
    found = grading.checked(load(PROBLEMS / "double"), CUDA)
    assert found.outcome is Outcome.UNSUPPORTED, found.message
    assert "this compiles CUDA, for which there is no GPU and no CUDA toolkit here; grade it on a GPU" in found.message


@pytest.mark.parametrize(
    ("language", "message"),
    [
        ("cu", "this sandbox has no nvcc, the compiler for .cu files, and there is no GPU here: grade it on a GPU"),
        ("cpp", "this sandbox has no g++, the compiler for .cpp files; install it"),
    ],
)
def test_a_compiler_that_is_not_here_is_nobodys_mistake(
    language: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KERNELMARK_DEVICE", raising=False)
    (tmp_path / "given").write_text("void twice();")
    command = commands.Build(language=language, symbols=("twice",), architecture="sm_90a")
    with (tmp_path / "given").open("rb") as source:
        compiling.put_source(command, source.fileno())
    with monkeypatch.context() as lacking:
        lacking.setattr(compiling.shutil, "which", lambda _: None)
        with pytest.raises(compiling.NoCompiler) as raised:
            build.build(command, RunnerCpu())
    failed = faults.describe(raised.value, building=True)
    assert failed.outcome == "unsupported"
    assert message in failed.message
