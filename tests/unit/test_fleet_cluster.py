"""A fleet of several machines without any: what does not need ray, and the dispatcher's side with a Ray of our own."""

from __future__ import annotations

import importlib
import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from harness.errors import HarnessError, UsageError
from kernelmark.services.fleet import Fleet, dispatch
from kernelmark.services.fleet.cluster import address, authentication, machine
from kernelmark.services.fleet.cluster.documents import Setup, Started, State
from kernelmark.services.fleet.cluster.environment import node_environment, ordinal
from kernelmark.services.fleet.dispatch import Plan
from kernelmark.services.fleet.engine import WorkerLost
from kernelmark.services.fleet.messages import Answer, Request
from tests.unit.conftest import ROOT, Command
from tests.workers import FakeWorker, batch, held, job, keys, planned, soon

SETUP = Setup(version="1", device="cpu", sandbox="bwrap")
REQUEST = Request(
    run="0" * 16, problem="double", problem_sha256="1" * 64, name="a.py", author="ada", language="py", source="# 1\n",
    effort="quick", baselines=(), device="cpu", sandbox="bwrap",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _no_token(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither a developer's token, nor a ray that another test has imported."""
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delitem(sys.modules, "ray", raising=False)


@pytest.mark.parametrize(
    "code", ["import kernelmark", "import kernelmark; kernelmark.Fleet", "import kernelmark.commands.cli"]
)
def test_ray_is_not_imported_by(code: str) -> None:
    subprocess.run([sys.executable, "-c", f"{code}\nimport sys\nassert 'ray' not in sys.modules"], cwd=ROOT, check=True)


@pytest.mark.parametrize("given", ["10.0.0.1:6379", "node-3.cluster:1", "[::1]:6379"])
def test_an_address_is_host_and_port(given: str, tmp_path: Path) -> None:
    assert address.find_address(given) == given
    (tmp_path / "fleet.address").write_text(f"{given}\n")
    assert address.find_address(str(tmp_path / "fleet.address")) == given


def test_an_address_has_the_parts_of_a_socket() -> None:
    assert address.host_and_port("[::1]:6379") == ("::1", 6379)
    assert address.host_and_port("node-3:80") == ("node-3", 80)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("ray://10.0.0.1:10001", "an address of Ray Client, which a fleet does not use"),
        ("nowhere", "is neither HOST:PORT nor an address file"),
        ("10.0.0.1:port", "is neither HOST:PORT nor an address file"),
        ("empty", "does not hold HOST:PORT"),
    ],
)
def test_what_is_no_address_is_refused(given: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").touch()
    with pytest.raises(UsageError, match=told):
        address.find_address(given)


def test_a_token_is_made_for_its_user_alone_and_then_required(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="this machine does not have the fleet's token"):
        authentication.require_token()
    file = authentication.make_token()
    assert file == tmp_path / "home/.ray/auth_token"
    assert (stat.S_IMODE(file.stat().st_mode), len(file.read_text())) == (0o600, 64)
    authentication.require_token()
    assert os.environ["RAY_AUTH_MODE"] == "token"


@pytest.mark.parametrize(("name", "value"), [("RAY_AUTH_TOKEN", "secret"), ("RAY_AUTH_TOKEN_PATH", "token")])
def test_a_token_may_be_named(name: str, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(name, value)
    Path("token").write_text("secret")
    assert authentication.has_token()


def test_tokens_cannot_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN", "secret")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    with pytest.raises(UsageError, match="RAY_AUTH_MODE: is 'disabled', and a fleet needs Ray's tokens"):
        authentication.require_token()


def test_a_ray_that_was_imported_without_tokens_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN", "secret")
    monkeypatch.setitem(sys.modules, "ray", ModuleType("ray"))
    with pytest.raises(UsageError, match="was not set when ray was imported"):
        authentication.require_token()


def test_without_ray_the_message_says_what_to_install(competition: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN", "secret")
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "kernelmark.services.fleet.cluster.dispatcher", raising=False)
    monkeypatch.delitem(sys.modules, "kernelmark.services.fleet.cluster.actor", raising=False)
    monkeypatch.setattr("kernelmark.services.fleet.fleet._isolated_elsewhere", lambda _: "bwrap")
    with pytest.raises(UsageError, match=r"several machines need ray; pip install 'kernelmark\[fleet\]'"):
        Fleet("10.0.0.1:6379")


@pytest.mark.parametrize(
    ("given", "told"),
    [({"device_name": "H100"}, "device_name chooses"), ({"where": "a:1", "devices": 2}, "devices counts")],
)  # fmt: skip
def test_what_does_not_go_together_is_refused(given: Any, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        Fleet(**given)


def test_a_worker_gets_the_environment_of_its_machine() -> None:
    initial = b"PATH=/usr/bin\0RAY_AUTH_TOKEN=secret\0SPT_NOENV=1\0RAYON=x=y\0\0"
    assert node_environment(initial) == {"PATH": "/usr/bin", "RAYON": "x=y"}


@pytest.mark.parametrize(
    ("gpu", "visible", "number"), [("3", None, 3), ("3", "", 3), ("5", "2,5", 1), ("GPU-b", "GPU-a,GPU-b", 1)]
)
def test_a_gpu_is_numbered_among_those_of_its_machine(gpu: str, visible: str | None, number: int) -> None:
    assert ordinal(gpu, visible) == number


@pytest.mark.parametrize(
    ("device", "here", "gpus", "cpu"),
    [("auto", True, True, False), ("auto", False, False, True), ("cpu", True, False, True), (None, True, False, False)],
)
def test_a_machine_offers_its_gpus_or_its_cpu_or_nothing(
    device: Any, here: bool, gpus: bool, cpu: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "cuda_is_here", lambda: here)
    options = machine._resources(device)
    assert ("--num-gpus=0" not in options) == gpus
    assert ('--resources={"kernelmark_cpu": 1}' in options) == cpu
    assert "--num-cpus=0" in options


def test_a_gpu_that_is_not_there_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "cuda_is_here", lambda: False)
    with pytest.raises(UsageError, match="there is no CUDA device here"):
        machine._resources("cuda")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["join", "nowhere"], "nowhere: is neither HOST:PORT nor an address file"),
        (["join", "127.0.0.1:9"], "this machine does not have the fleet's token"),
        (["status"], "fleet.address: is neither HOST:PORT nor an address file"),
        (["stop"], "no fleet of this project runs on this machine"),
        (["start", "--no-grading", "--device", "cpu"], "--no-grading: excludes --device"),
    ],
)
def test_a_command_that_cannot_be_carried_out_says_why(command: Command, arguments: list[str], told: str) -> None:
    said = command("fleet", *arguments)
    assert (said.code, said.out) == (2, "")
    assert told in said.err


def test_jobs_are_given_to_workers_that_come_and_not_to_those_that_went(competition: Path) -> None:
    one, two = FakeWorker(held), FakeWorker(held, name="NVIDIA H100")
    plan = planned(one)
    results = batch(plan=plan).run(job(number) for number in range(20))
    taken: list[Any] = []
    thread = threading.Thread(target=lambda: taken.extend(results))
    thread.start()
    assert len(one.has(5)) == 5
    plan.add(two)
    one.end(one.handed[0], answered_by(one))
    assert len(two.has(5)) == 5
    plan.remove(one)
    one.act = two.act = lambda request: answered_of(request)
    for worker in (one, two):
        for request in worker.handed[worker is one :]:
            worker.end(request, answered_of(request))
    thread.join(20)
    assert sorted(keys(taken)) == list(range(20))
    assert plan.counts()[2] == {"CPU": len(one.handed), "NVIDIA H100": len(two.handed)}
    assert len(one.handed) <= 6


def test_a_job_waits_while_no_worker_is_there(competition: Path) -> None:
    worker = FakeWorker()
    plan = planned()
    threading.Timer(0.5, lambda: plan.add(worker)).start()
    begun = time.monotonic()
    assert keys(soon(lambda: list(batch(plan=plan).run([job(1), job(2)])))) == [1, 2]
    assert time.monotonic() - begun > 0.4


def test_a_job_does_not_wait_for_ever(competition: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "_NONE_S", 0.1)
    (result,) = soon(lambda: list(batch(plan=planned()).run([job(1)])))
    assert isinstance(result.error, HarnessError)
    assert str(result.error).startswith("all workers of the fleet are lost")


def answered_of(request: Request) -> Answer:
    return Answer(run=request.run, error="told", error_class="HarnessError")


def answered_by(worker: FakeWorker) -> Answer:
    return answered_of(worker.handed[0])


def test_a_state_tells_who_works_from_who_waits() -> None:
    state = State(machine="a", device="CPU", slots=2, done=6, in_flight=5, seconds=30.0)
    assert (state.working, state.waiting, state.a_minute) == (2, 3, 12.0)
    assert State(machine="a", device="CPU", slots=2, done=0, in_flight=1, seconds=0.0).a_minute == 0.0


class RayError(Exception):
    """As ray has it."""


class RayTaskError(RayError):
    """As ray has it."""


class Call:
    """A call of an actor's method, that a test answers."""

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments
        self.answered: Future[bytes] = Future()

    def future(self) -> Future[bytes]:
        return self.answered


class Actor:
    """An actor whose calls a test answers."""

    def __init__(self) -> None:
        self.starts: list[Call] = []
        self.grades: list[Call] = []
        self.start, self.grade = _Method(self.starts), _Method(self.grades)


class _Method:
    def __init__(self, calls: list[Call]) -> None:
        self._calls = calls

    def remote(self, *arguments: Any) -> Call:
        self._calls.append(Call(*arguments))
        return self._calls[-1]


@pytest.fixture
def fake_ray(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A ray that is not there, for modules that are imported while it is used."""
    fake = ModuleType("ray")
    fake.__dict__.update(
        remote=lambda **_: lambda _: None,
        wait=lambda calls, timeout: ([each for each in calls if each.answered.done()], []),
        get=lambda call: call.answered.result(),
    )
    parts = {
        "actor": {"ActorHandle": Any},
        "exceptions": {"RayError": RayError, "RayTaskError": RayTaskError},
        "job_config": {"JobConfig": Any},
    }
    monkeypatch.setitem(sys.modules, "ray", fake)
    for name, content in parts.items():
        part = ModuleType(f"ray.{name}")
        part.__dict__.update(content)
        monkeypatch.setitem(sys.modules, f"ray.{name}", part)
    for name in ("actor", "dispatcher"):
        monkeypatch.delitem(sys.modules, f"kernelmark.services.fleet.cluster.{name}", raising=False)
    yield fake
    for name in ("actor", "dispatcher"):  # they hold the ray of this test
        sys.modules.pop(f"kernelmark.services.fleet.cluster.{name}", None)


@pytest.fixture
def worker(fake_ray: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Callable[[Plan], tuple[Any, Actor]]:
    """A `RayWorker` with its actor, in a plan."""
    actor = Actor()
    dispatcher = importlib.import_module("kernelmark.services.fleet.cluster.dispatcher")
    monkeypatch.setattr(dispatcher, "_remote", lambda *_: actor)
    return lambda plan: (dispatcher.RayWorker("kernelmark_cpu", SETUP, plan), actor)


@pytest.mark.parametrize(
    ("gpus", "here", "worker"),
    [([], True, "cpu 0"), (["0"], True, "cuda 0"), (["1"], True, "cuda 1"), (["1"], False, None), (["2"], True, None)],
)
def test_an_actor_has_the_worker_of_the_gpu_that_ray_gave_it(
    fake_ray: ModuleType, monkeypatch: pytest.MonkeyPatch, gpus: list[str], here: bool, worker: str | None
) -> None:
    context = SimpleNamespace(get_accelerator_ids=lambda: {"GPU": gpus, "TPU": []})
    fake_ray.__dict__["get_runtime_context"] = lambda: context
    actor = importlib.import_module("kernelmark.services.fleet.cluster.actor")
    seen: list[str | None] = []

    def local_workers(_: Path, device: str, *__: object) -> list[str]:
        seen.append(os.environ.get("CUDA_VISIBLE_DEVICES"))
        return [f"{device} {number}" for number in range(1 if device == "cpu" else 2)]

    monkeypatch.setattr(actor, "local_workers", local_workers)
    monkeypatch.setattr(actor, "cuda_is_here", lambda: here)
    monkeypatch.setattr(actor, "node_environment", lambda _: {})
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")  # as Ray sets it
    if worker is None:
        with pytest.raises(HarnessError, match=f"GPU {gpus[0]} cannot be used"):
            actor._worker_of_this_actor(Path(), SETUP)
    else:
        assert actor._worker_of_this_actor(Path(), SETUP) == worker
        assert seen == ["1" if not gpus else None]


STARTED = Started(machine="node-1", device="NVIDIA H100", slots=3).line()


def test_an_actor_is_in_the_plan_while_it_is_up(worker: Callable[[Plan], tuple[Any, Actor]]) -> None:
    plan = planned()
    made, actor = worker(plan)
    made.look()
    assert plan.capacity == 0
    actor.starts[0].answered.set_result(STARTED)
    made.look()
    assert plan.capacity == 7
    first, second = made.submit(REQUEST), made.submit(REQUEST.model_copy(update={"run": "1" * 16}))
    assert actor.grades[0].arguments == (REQUEST.line(),)
    actor.grades[0].answered.set_exception(RayError("its node has died"))
    with pytest.raises(WorkerLost, match="the worker on node-1 was lost"):
        first.result(0)
    assert plan.capacity == 0
    made.look()
    assert (plan.capacity, len(actor.starts)) == (0, 2)  # what it answered before it was lost does not count
    actor.starts[1].answered.set_exception(RayError("not yet"))
    made.look()
    made.look()
    actor.starts[2].answered.set_result(STARTED)
    made.look()
    assert plan.capacity == 7
    made.close()
    with pytest.raises(WorkerLost, match="the fleet was closed"):
        second.result(0)
    actor.grades[1].answered.set_result(Answer(run="1" * 16, error="late", error_class="HarnessError").line())


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (Answer(run="0" * 16, error="told", error_class="UsageError").line(), "told"),
        (RayTaskError("a traceback\nKeyError: 1"), r"an actor failed \(KeyError: 1\)"),
        (b"cut o", "an actor failed"),
    ],
)
def test_an_answer_is_read_and_what_is_none_is_our_failure(
    worker: Callable[[Plan], tuple[Any, Actor]], answer: Any, told: str
) -> None:
    made, actor = worker(planned())
    future = made.submit(REQUEST)
    if isinstance(answer, bytes):
        actor.grades[0].answered.set_result(answer)
    else:
        actor.grades[0].answered.set_exception(answer)
    failure = future.result(0).failure()
    assert isinstance(failure, UsageError if told == "told" else HarnessError)
    with pytest.raises(type(failure), match=told):
        raise failure


def test_a_lost_worker_process_is_a_lost_worker(worker: Callable[[Plan], tuple[Any, Actor]]) -> None:
    made, actor = worker(planned())
    future = made.submit(REQUEST)
    lost = Answer(run="0" * 16, error="a worker ended with status -9", error_class="WorkerLost")
    actor.grades[0].answered.set_result(lost.line())
    with pytest.raises(WorkerLost, match="a worker ended with status -9"):
        future.result(0)


def test_a_problem_elsewhere_does_not_travel(worker: Callable[[Plan], tuple[Any, Actor]]) -> None:
    made, actor = worker(planned())
    failure = made.submit(REQUEST.model_copy(update={"problem": "/elsewhere/double"})).result(0).failure()
    assert isinstance(failure, UsageError)
    assert "/elsewhere/double: is outside of the project's problems" in str(failure)
    assert actor.grades == []


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (Started(machine="node-1", error="the bwrap sandbox cannot be used").line(), "node-1: the bwrap sandbox"),
        (RayTaskError("a traceback\nModuleNotFoundError: kernelmark"), "ModuleNotFoundError"),
    ],
)
def test_an_actor_that_cannot_grade_is_not_asked_again(
    worker: Callable[[Plan], tuple[Any, Actor]], answer: Any, told: str
) -> None:
    plan = planned()
    made, actor = worker(plan)
    if isinstance(answer, bytes):
        actor.starts[0].answered.set_result(answer)
    else:
        actor.starts[0].answered.set_exception(answer)
    made.look()
    made.look()
    assert (len(actor.starts), plan.capacity) == (1, 0)
    assert told in made.failure
