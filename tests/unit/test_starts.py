"""What happens at the same time while a grading starts."""

from __future__ import annotations

import contextlib
import random
import socket
import subprocess
import sys
from types import SimpleNamespace
from typing import Any, Literal, cast

import pytest

from harness.judge import Setup
from harness.judge.correctness.cases import result
from harness.judge.grading import Grading
from harness.judge.session import SubmissionFault
from harness.kinds import DeviceKind
from harness.problem import Case, Problem, load
from harness.problem.spec import Range
from harness.runner.ahead import CompileAhead
from harness.runner.devices import RunnerCpu
from harness.runner.serve import RunnerServer
from harness.submission import Submission
from harness.verdict import CaseResult, Outcome
from harness.wire import commands, replies
from kernelmark.diagnostics.selftest import PROBLEMS

# A launch that fails and says whether torch was imported before it.
LAUNCH = """
import sys
from harness.errors import SandboxError
from harness.judge import Grader, Setup
from harness.problem import load
from harness.submission import Submission
from kernelmark.diagnostics.selftest import PROBLEMS
from types import SimpleNamespace

def launch(_):
    raise SandboxError("after torch" if "torch" in sys.modules else "before torch")

provider = SimpleNamespace(name=sys.argv[1], launch=launch, image_digest=lambda: None)
submission = Submission.of("// no code", sys.argv[2], author="a")
setup = Setup(load(PROBLEMS / "double"), submission, provider=provider, device="cpu")
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


# The libraries are loaded, and nothing of torch is imported yet.
LOADED = """
import sys
from pathlib import Path
from harness.judge.torch_import import _load_libraries
_load_libraries()
mapped = "libtorch_cpu" in Path("/proc/self/maps").read_text()
print(mapped, "torch" in sys.modules)
import torch
print(float(torch.ones(2, 2).mm(torch.ones(2, 2)).sum()))
"""


def _printed(script: str, *arguments: str) -> str:
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize(("sandbox", "language"), [("process", "py"), ("docker", "cpp")], ids=["no build", "a build"])
def test_the_runner_is_launched_before_torch_is_imported(sandbox: str, language: str) -> None:
    """Beside the import, which holds the GIL and the loader's lock, a launch takes three times as long."""
    assert _printed(LAUNCH, sandbox, language).startswith("before torch")


def test_the_libraries_of_torch_are_loaded_before_its_import() -> None:
    assert _printed(LOADED).split() == ["True", "False", "8.0"]


def test_numpy_starts_no_threads_in_a_runner_and_later_programs_do_as_before() -> None:
    assert _printed(ONE_THREAD) == "1 64"


CASES = {
    "first": Case(name="first", params={"n": 101}),
    "second": Case(name="second", params={"n": 102}),
    "drawn": Case(name="drawn", draw={"n": Range(low=103, high=104)}),
    "hidden": Case(name="hidden", params={"n": 105}, hidden=True),
    "timed": Case(name="timed", params={"n": 106}),
}


def _sent_after_build(
    problem: Problem,
    source: str,
    language: Literal["py", "cu"],
    device: DeviceKind,
    *,
    built: bool = False,
    timed: bool = True,
) -> list[Any]:
    """What a runner is sent once it has built a submission to a problem with all of the cases."""
    tests = tuple(case for name, case in CASES.items() if name != "timed")
    problem = problem.model_copy(update={"tests": tests, "benchmarks": (CASES["timed"],)})
    sent: list[Any] = []

    def ask(command: Any, *_: Any, **__: Any) -> replies.Done:
        sent.append(command)
        return replies.Done()

    def graded(case: Case) -> Any:
        return SimpleNamespace(name=case.name, resolved=problem.resolve(case.drawn(random.Random())))

    grading: Any = SimpleNamespace(
        _setup=Setup(problem, Submission.of(source, language, author="a"), provider=cast(Any, None), device=device),
        _problem=problem,
        _submission=SimpleNamespace(name="kernel"),
        _runs_here=True,
        _report_progress=lambda *_: None,
        _build_request=lambda: SimpleNamespace(objects=b"an archive" if built else b""),
        _tests=[graded(CASES[name]) for name in ("first", "second", "drawn")],
    )
    session: Any = SimpleNamespace(ask=ask, build=lambda *_: replies.Built(log="", interpreted=False))
    Grading._build(grading, session, [graded(CASES["timed"])] if timed else [])
    return sent


@pytest.mark.parametrize("timed", [False, True])
def test_helpers_learn_the_sizes_of_visible_cases(*, timed: bool) -> None:
    sent = _sent_after_build(load(PROBLEMS / "double"), "import triton", "py", "cuda", timed=timed)
    assert [type(command) for command in sent] == [commands.Declare, commands.Ahead] * (2 + timed)
    sizes = {size for declare in sent[::2] for argument in declare.arguments for size in argument.shape}
    assert len(sizes & {103, 104}) == 1
    others = {102, 106} if timed else {102}
    assert sizes - {103, 104} == others, "neither the first, which the runner compiles, nor hidden ones"
    assert all(1 <= command.at_most <= 16 for command in sent[1::2])


def test_helpers_have_ended_after_a_separate_build() -> None:
    assert _sent_after_build(load(PROBLEMS / "double"), "import triton", "py", "cuda", built=True) == []


def test_helpers_that_missed_a_part_of_a_case_are_told_nothing_more() -> None:
    """It would be taken for the beginning of the next case."""
    ahead: Any = object.__new__(CompileAhead)
    ahead._socket, helpers = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ahead._socket.setblocking(False)
    ahead._follows = True
    whole = commands.Declare(
        arguments=tuple(
            commands.TensorArgument(name=f"x{n}", dtype="float32", shape=(n,), writable=False, offset=0, group="")
            for n in range(commands.MAX_DECLARED)
        )
    )
    with ahead._socket, helpers:
        for _ in range(1000):
            ahead.tell(whole)
        helpers.settimeout(0)
        received = 0
        with contextlib.suppress(BlockingIOError):
            while helpers.recv(1 << 20):
                received += 1
        assert 0 < received < 1000
        ahead.tell(whole)
        with pytest.raises(BlockingIOError):
            helpers.recv(1)


def test_helpers_end_before_calls_of_the_submission_are_timed_and_not_before_it_is_built() -> None:
    """Before that the judge times calls of its own, and the helpers only wait."""
    happened: list[str] = []
    ahead: Any = SimpleNamespace(end=lambda: happened.append("ended"))
    server: Any = RunnerServer(RunnerCpu(), None, ahead)
    server._calls = SimpleNamespace(map_outputs=lambda *_: happened.append("mapped"))
    server.obey(commands.MapOutputs(), ())
    server._kernel = SimpleNamespace()
    server.obey(commands.MapOutputs(), ())
    assert happened == ["mapped", "ended", "mapped"]


@pytest.mark.parametrize(("helped", "fails"), [(True, False), (True, True), (False, False)])
def test_helpers_learn_hidden_sizes_when_nothing_else_is_left_to_do(*, helped: bool, fails: bool) -> None:
    """Of all tests but the first, before that one is called; what goes wrong meanwhile counts as its outcome."""
    problem = load(PROBLEMS / "double")
    happened: list[Any] = []

    def ask(command: Any, *_: Any, **__: Any) -> replies.Done:
        happened.append(command)
        if fails:
            raise SubmissionFault(Outcome.RUNTIME_ERROR, "exited with 105")
        return replies.Done()

    def run(_session: Any, case: Any, label: str) -> CaseResult:
        happened.append(label)
        return result(case.resolved, label, Outcome.ACCEPTED, "")

    hidden = [Case(name=f"secret {n}", params={"n": n}, hidden=True) for n in (105, 106, 107)]
    results: list[CaseResult] = []
    grading: Any = SimpleNamespace(
        _setup=Setup(
            problem, Submission.of("import triton", "py", author="a"), provider=cast(Any, None), device="cuda"
        ),
        _problem=problem,
        _hidden=[SimpleNamespace(resolved=problem.resolve(case)) for case in hidden],
        _visible_part=lambda: None,
        _report_progress=lambda *_: None,
        _correctness=SimpleNamespace(run=run),
        _add_result=results.append,
        _ends_early=False,
        _has_helpers=helped,
    )
    session: Any = SimpleNamespace(ask=ask, output=SimpleNamespace(discard=lambda: happened.append("discarded")))
    Grading._test_hidden(grading, session)
    if fails:
        assert [(each.name, each.outcome, each.message) for each in results] == [
            ("hidden 1", Outcome.RUNTIME_ERROR, "runtime error")
        ]
        return
    told = happened[1:-3]
    assert [happened[0], *happened[-3:]] == ["discarded", "hidden 1", "hidden 2", "hidden 3"]
    shapes = [argument.shape for declare in told[::2] for argument in declare.arguments]
    assert shapes == ([(106,)] * 2 + [(107,)] * 2 if helped else [])
    assert len(told) == (4 if helped else 0)


@pytest.mark.parametrize(
    ("source", "language", "device"),
    [("import torch", "py", "cuda"), ("triton", "cu", "cuda"), ("triton", "py", "cpu")],
)
def test_helpers_are_for_triton_on_a_gpu(source: str, language: Literal["py", "cu"], device: DeviceKind) -> None:
    assert _sent_after_build(load(PROBLEMS / "double"), source, language, device) == []
