"""The dispatcher's side of a fleet's machines, and an actor's choice of its workers, with a Ray of our own."""

from __future__ import annotations

import asyncio
import importlib
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import ModuleType
from typing import Any

import pytest

from harness.errors import HarnessError, UsageError
from harness.judge import Progress
from harness.submission import Submission
from harness.verdict import Stage
from kernelmark.grading.fleet.cluster import actor as actor_module
from kernelmark.grading.fleet.cluster.actor import VERSION, MachineActor, MachineState, WorkerState
from kernelmark.grading.fleet.messages import JobAnswer, JobProgress, JobRequest, WorkerLost
from kernelmark.grading.fleet.pool import WorkerPool
from kernelmark.project.settings import Settings
from tests.workers import FakeWorker, answered, held, request, soon, until

REQUEST = request(Submission.of("# 1\n", "py", author="ada"))


class RayError(Exception):
    """As ray has it."""


class RayTaskError(RayError):
    """As ray has it."""


class Method:
    """A method of an actor, whose calls a test answers."""

    def __init__(self, *, returns: bool = False) -> None:
        self._returns = returns
        self.calls: list[tuple[Any, ...]] = []
        self.answers: list[Future[Any]] = []

    def remote(self, *arguments: Any) -> asyncio.Future[Any]:
        self.calls.append(arguments)
        self.answers.append(Future())
        if self._returns:
            self.answers[-1].set_result(None)
        return asyncio.wrap_future(self.answers[-1])

    def answer(self, what: object) -> None:
        """Answer the last call, or let it fail, once it is there."""
        until(lambda: len(self.answers) > 0)
        last = self.answers[-1]
        last.set_exception(what) if isinstance(what, Exception) else last.set_result(what)


class Stream(Method):
    """A method that yields its answer."""

    def remote(self, *arguments: Any) -> Any:
        async def answers(answer: asyncio.Future[Any]) -> AsyncIterator[asyncio.Future[Any]]:
            yield answer

        return answers(super().remote(*arguments))


class Actor:
    """An actor on a machine."""

    def __init__(self) -> None:
        self.start, self.live, self.grade, self.close = Method(), Method(), Stream(), Method(returns=True)

    def lose(self) -> None:
        """As if its machine was switched off."""
        for method in (self.grade, self.live):
            for answer in method.answers:
                if not answer.done():
                    answer.set_exception(RayError("its node has died"))


class Machines:
    """A cluster of machines whose actors a test plays."""

    def __init__(self, dispatcher: ModuleType) -> None:
        self.names, self.actors, self.killed = ["node-1"], list[Actor](), list[Actor]()
        self.pool = WorkerPool()
        self.cluster = dispatcher.Cluster("127.0.0.1:1", "auto", "bwrap", None, None)

    def make(self, *_: Any) -> Actor:
        self.actors.append(Actor())
        return self.actors[-1]

    def nodes(self) -> list[dict[str, Any]]:
        return [
            {
                "Alive": True, "NodeID": name, "NodeManagerHostname": name, "NodeManagerAddress": "127.0.0.1",
                "Resources": {"kernelmark_cpu": 1.0}, "Labels": {},
            }
            for name in self.names
        ]  # fmt: skip

    def begin(self) -> Future[None]:
        """The fleet's start, in a thread of its own."""
        return background(lambda: self.cluster.start(self.pool))


def background(call: Callable[[], None]) -> Future[None]:
    threads = ThreadPoolExecutor(1)
    ended = threads.submit(call)
    threads.shutdown(wait=False)
    return ended


@pytest.fixture
def machines(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machines]:
    """With a ray that is not there, for the module that is imported while it is used."""
    made: Machines
    content: dict[str, dict[str, Any]] = {
        "ray": {
            "nodes": lambda: made.nodes(),
            "kill": lambda actor: made.killed.append(actor),
            "shutdown": lambda: None,
        },
        "ray.exceptions": {"RayError": RayError, "RayTaskError": RayTaskError},
        "ray.job_config": {"JobConfig": Any},
        "ray.util": {"list_named_actors": list},
        "ray.util.scheduling_strategies": {"NodeAffinitySchedulingStrategy": Any},
    }
    for name, names in content.items():
        module = ModuleType(name)
        module.__dict__.update(names)
        monkeypatch.setitem(sys.modules, name, module)
    own = "kernelmark.grading.fleet.cluster.dispatcher"
    monkeypatch.delitem(sys.modules, own, raising=False)
    dispatcher = importlib.import_module(own)
    monkeypatch.setattr(dispatcher, "connect", lambda _: None)
    monkeypatch.setattr(dispatcher, "_LOOK_S", 0.02)
    monkeypatch.setattr(dispatcher, "_made", lambda *arguments: made.make(*arguments))
    made = Machines(dispatcher)
    yield made
    soon(made.cluster.close)
    assert set(made.killed) == set(made.actors)
    sys.modules.pop(own, None)  # it holds the ray of this test


STARTED = MachineState(
    machine="node-1", workers=(WorkerState(device="NVIDIA H100", slots=3), WorkerState(device="NVIDIA H100", slots=3))
).line()


def up(machines: Machines) -> Actor:
    """The actor of the only machine, whose two workers are up."""
    begun = machines.begin()
    until(lambda: len(machines.actors) == 1)
    assert machines.pool.capacity == 0
    machines.actors[0].start.answer(STARTED)
    begun.result(20)
    return machines.actors[0]


def submitted(machines: Machines, run: str = "0" * 16) -> Future[JobAnswer]:
    ended: Future[JobAnswer] = Future()

    def end(answer: Future[JobAnswer], _: str) -> None:
        if answer.exception() is None:
            ended.set_result(answer.result())
        else:
            ended.set_exception(answer.exception())

    machines.pool.hand_over(REQUEST.model_copy(update={"run": run}), end)
    return ended


def test_the_workers_of_a_machine_are_in_the_pool_until_it_is_lost(machines: Machines) -> None:
    actor = up(machines)
    assert machines.pool.capacity == 14
    jobs = [submitted(machines, run * 16) for run in "012"]
    until(lambda: len(actor.grade.calls) == 3)
    assert sorted(worker for worker, _ in actor.grade.calls) == [0, 0, 1]
    assert (0, REQUEST.line()) in actor.grade.calls
    actor.lose()
    for job in jobs:
        with pytest.raises(WorkerLost, match=r"the worker on node-1 was lost \(RayError\)"):
            job.result(20)
    until(lambda: len(machines.actors) == 2)
    assert machines.pool.capacity == 0
    assert machines.killed == [actor], "it may only have been out of reach"
    machines.actors[1].start.answer(RayError("not yet"))
    until(lambda: len(machines.actors) == 3)
    machines.actors[2].start.answer(STARTED)
    until(lambda: machines.pool.capacity == 14)


def test_a_machine_that_joins_is_used_and_an_idle_one_that_is_lost_gets_no_job(machines: Machines) -> None:
    actor = up(machines)
    machines.names.append("node-2")
    until(lambda: len(machines.actors) == 2)
    machines.actors[1].start.answer(STARTED)
    until(lambda: machines.pool.capacity == 28)
    machines.names = ["node-2"]
    actor.lose()
    until(lambda: machines.pool.capacity == 14)
    assert len(machines.actors) == 2


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (JobAnswer(run="0" * 16, error="its own", error_class="UsageError").line(), "its own"),
        (RayTaskError("a traceback\nKeyError: 1"), r"an actor failed \(KeyError: 1\)"),
        (b"cut o", "an actor failed"),
        (JobAnswer(run="0" * 16, error="status -9", error_class="WorkerLost").line(), "status -9 on node-1"),
    ],
)
def test_a_valid_answer_is_read_and_any_other_is_a_harness_error(machines: Machines, answer: object, why: str) -> None:
    actor = up(machines)
    job = submitted(machines)
    actor.grade.answer(answer)
    expected = {"its own": UsageError, "status -9 on node-1": WorkerLost}.get(why, HarnessError)
    with pytest.raises(expected, match=why):  # a lost worker ends the future, the others are in the answer
        raise job.result(20).failure()
    assert machines.pool.capacity == 14, "the actor starts a worker again"


def test_a_closed_fleet_loses_its_jobs(machines: Machines) -> None:
    actor = up(machines)
    ended: list[bool] = []
    machines.pool.hand_over(REQUEST, lambda answer, _: ended.append(answer.cancelled()))
    until(lambda: len(actor.grade.calls) == 1)
    soon(machines.cluster.close)
    assert ended == [True]
    assert machines.killed == [actor]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (MachineState(machine="node-1", error="the bwrap sandbox is unusable").line(), "node-1: the bwrap sandbox"),
        (RayTaskError("a traceback\nModuleNotFoundError: kernelmark"), "ModuleNotFoundError"),
        (b"{}", "an actor failed"),
    ],
)
def test_a_machine_that_cannot_grade_is_not_asked_again(
    machines: Machines, answer: object, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    """When the fleet starts it is an error, later a warning."""
    up(machines)
    machines.names.append("node-2")
    until(lambda: len(machines.actors) == 2)
    machines.actors[1].start.answer(answer)
    until(lambda: len(caplog.messages) > 0)
    time.sleep(0.1)
    [message] = caplog.messages
    assert why in message
    assert (len(machines.actors), machines.pool.capacity) == (2, 14)


def test_a_fleet_whose_machine_cannot_grade_does_not_start(machines: Machines) -> None:
    begun = machines.begin()
    until(lambda: len(machines.actors) == 1)
    machines.actors[0].start.answer(MachineState(machine="node-1", error="no sandbox").line())
    with pytest.raises(HarnessError, match="node-1: no sandbox"):
        begun.result(20)


@pytest.mark.parametrize("there", [[], ["node-1"]])
def test_a_fleet_waits_for_machines(machines: Machines, there: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[type(machines.cluster).__module__], "_START_S", 0.1)
    machines.names = there
    why = "0 of the fleet's 1 machines can be used after" if there else r"no device of this kind \(it has: none\)"
    with pytest.raises(HarnessError, match=why):
        machines.begin().result(20)


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[FakeWorker]]:
    """Those that a machine has, by its kind of device."""
    found = {"cpu": [FakeWorker()], "cuda": [FakeWorker(name="NVIDIA H100", slots=2, gpu=str(gpu)) for gpu in range(2)]}
    monkeypatch.setattr(actor_module, "local_workers", lambda _, device, *__: found[device])
    monkeypatch.setattr(actor_module, "cuda_is_here", lambda: True)
    monkeypatch.setattr("harness.sandbox.choose", lambda *_: None)
    monkeypatch.setattr(Settings, "load", Settings)
    return found


async def last(documents: AsyncIterator[bytes]) -> JobAnswer:
    return JobAnswer.model_validate_json([document async for document in documents][-1])


def state(document: bytes) -> MachineState:
    return MachineState.model_validate_json(document)


@pytest.mark.parametrize(("gpus", "device", "count"), [(0, "CPU", 1), (2, "NVIDIA H100", 2), (1, "NVIDIA H100", 2)])
def test_an_actor_has_local_workers(workers: dict[str, list[FakeWorker]], gpus: int, device: str, count: int) -> None:
    started = state(asyncio.run(MachineActor(VERSION, "bwrap", None, gpus).start()))
    assert started.error == ""
    assert [worker.device for worker in started.workers] == [device] * count


@pytest.mark.parametrize(("gpus", "here"), [(2, False), (3, True)])
def test_gpus_that_cannot_be_used_are_reported(
    workers: dict[str, list[FakeWorker]], gpus: int, here: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actor_module, "cuda_is_here", lambda: here)
    started = state(asyncio.run(MachineActor(VERSION, "bwrap", None, gpus).start()))
    assert f"not all of its {gpus} GPUs can be used" in started.error
    assert started.workers == ()


def test_an_actor_of_another_version_refuses_to_grade(workers: dict[str, list[FakeWorker]]) -> None:
    started = state(asyncio.run(MachineActor("0.0.1, protocol 1", "bwrap", None, 0).start()))
    assert started.error.startswith(f"has kernelmark {VERSION}, and the dispatcher 0.0.1, protocol 1")


def test_an_actor_reports_the_state_of_its_workers(workers: dict[str, list[FakeWorker]]) -> None:
    def act(request: JobRequest) -> JobAnswer | None:
        return answered(request) if request.run < "2" else None

    async def main() -> tuple[MachineState, MachineState]:
        actor = MachineActor(VERSION, "bwrap", None, 2)
        await actor.start()
        workers["cuda"][1].act = act
        requests = [
            REQUEST.model_copy(update={"run": f"{n}" * 16, "submission": Submission.of(f"# {n}\n", "py", author="ada")})
            for n in range(5)
        ]
        answers = [await last(actor.grade(1, one.line())) for one in requests[:2]]
        assert [answer.run for answer in answers] == ["0" * 16, "1" * 16]
        tasks = [asyncio.create_task(last(actor.grade(1, one.line()))) for one in requests[2:]]
        await asyncio.to_thread(workers["cuda"][1].has, 5)
        busy = state(await actor.state())
        await actor.close()
        lost = [await task for task in tasks]
        assert {answer.error_class for answer in lost} == {"WorkerLost"}
        return busy, state(await actor.state())

    busy, ended = soon(lambda: asyncio.run(main()))
    idle, working = busy.workers
    assert idle == WorkerState(device="NVIDIA H100", slots=2, gpu="0")
    assert (working.done, working.working, working.waiting) == (2, 2, 1)
    assert working.a_minute > 0
    assert (ended.workers[1].done, ended.workers[1].working, ended.workers[1].waiting) == (2, 0, 0)


def test_steps_come_from_an_actor_before_its_answer(workers: dict[str, list[FakeWorker]]) -> None:
    workers["cpu"][0].act = held
    asked = REQUEST.model_copy(update={"progress": True})
    step = Progress(Stage.TEST, 1, 3, "small")

    async def main() -> list[bytes]:
        actor = MachineActor(VERSION, "bwrap", None, 0)
        await actor.start()
        said = actor.grade(0, asked.line())
        first = asyncio.ensure_future(anext(said))
        [given] = await asyncio.to_thread(workers["cpu"][0].has, 1)
        await asyncio.to_thread(workers["cpu"][0].step, given, step)
        before = await first
        await asyncio.to_thread(workers["cpu"][0].answer, given)
        return [before, *[document async for document in said]]

    documents = soon(lambda: asyncio.run(main()))
    assert documents == [JobProgress(run=asked.run, step=step).line(), answered(asked).line()]


def test_a_problem_elsewhere_does_not_travel(workers: dict[str, list[FakeWorker]]) -> None:
    async def main() -> JobAnswer:
        actor = MachineActor(VERSION, "bwrap", None, 0)
        await actor.start()
        request = REQUEST.model_copy(update={"problem": "/elsewhere/double"})
        return await last(actor.grade(0, request.line()))

    failure = asyncio.run(main()).failure()
    assert isinstance(failure, UsageError)
    assert "/elsewhere/double is outside of the project's problems" in str(failure)
    assert workers["cpu"][0].handed == []
