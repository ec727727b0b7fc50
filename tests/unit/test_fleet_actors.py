"""The dispatcher's side of a fleet's actors, and an actor's choice of its GPU, with a Ray of our own."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from harness.errors import HarnessError, UsageError
from harness.submission import Submission
from kernelmark.grading.fleet.cluster.documents import ActorSetup, ActorState
from kernelmark.grading.fleet.messages import JobAnswer, JobRequest, WorkerLost
from kernelmark.grading.fleet.pool import WorkerPool
from tests.workers import planned

SETUP = ActorSetup(version="1", device="cpu", sandbox="bwrap")
REQUEST = JobRequest(
    run="0" * 16, problem="double", problem_sha256="1" * 64, submission=Submission.of("# 1\n", "py", author="ada"),
    effort="quick", baselines=(), device="cpu", sandbox="bwrap",
)  # fmt: skip


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
        wait=lambda calls, timeout: ([call for call in calls if call.answered.done()], []),
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
        monkeypatch.delitem(sys.modules, f"kernelmark.grading.fleet.cluster.{name}", raising=False)
    yield fake
    for name in ("actor", "dispatcher"):  # they hold the ray of this test
        sys.modules.pop(f"kernelmark.grading.fleet.cluster.{name}", None)


@pytest.fixture
def worker(fake_ray: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Callable[[WorkerPool], tuple[Any, Actor]]:
    """A `RayWorker` with its actor, in a plan."""
    actor = Actor()
    dispatcher = importlib.import_module("kernelmark.grading.fleet.cluster.dispatcher")
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
    actor = importlib.import_module("kernelmark.grading.fleet.cluster.actor")
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


STARTED = ActorState(machine="node-1", device="NVIDIA H100", slots=3).line()


def test_an_actor_is_in_the_plan_while_it_is_up(worker: Callable[[WorkerPool], tuple[Any, Actor]]) -> None:
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
    actor.grades[1].answered.set_result(JobAnswer(run="1" * 16, error="late", error_class="HarnessError").line())


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (JobAnswer(run="0" * 16, error="told", error_class="UsageError").line(), "told"),
        (RayTaskError("a traceback\nKeyError: 1"), r"an actor failed \(KeyError: 1\)"),
        (b"cut o", "an actor failed"),
    ],
)
def test_an_answer_is_read_and_what_is_none_is_our_failure(
    worker: Callable[[WorkerPool], tuple[Any, Actor]], answer: Any, told: str
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


def test_a_lost_worker_process_is_a_lost_worker(worker: Callable[[WorkerPool], tuple[Any, Actor]]) -> None:
    made, actor = worker(planned())
    future = made.submit(REQUEST)
    lost = JobAnswer(run="0" * 16, error="a worker ended with status -9", error_class="WorkerLost")
    actor.grades[0].answered.set_result(lost.line())
    with pytest.raises(WorkerLost, match="a worker ended with status -9"):
        future.result(0)


def test_a_problem_elsewhere_does_not_travel(worker: Callable[[WorkerPool], tuple[Any, Actor]]) -> None:
    made, actor = worker(planned())
    failure = made.submit(REQUEST.model_copy(update={"problem": "/elsewhere/double"})).result(0).failure()
    assert isinstance(failure, UsageError)
    assert "/elsewhere/double is outside of the project's problems" in str(failure)
    assert actor.grades == []


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (ActorState(machine="node-1", error="the bwrap sandbox cannot be used").line(), "node-1: the bwrap sandbox"),
        (RayTaskError("a traceback\nModuleNotFoundError: kernelmark"), "ModuleNotFoundError"),
    ],
)
def test_an_actor_that_cannot_grade_is_not_asked_again(
    worker: Callable[[WorkerPool], tuple[Any, Actor]], answer: Any, told: str
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
