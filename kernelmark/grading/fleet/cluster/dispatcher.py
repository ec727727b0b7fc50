"""The dispatcher's side of a fleet on several machines: an actor for each device, for as long as the fleet lasts.

Trusted. A thread looks every second which devices there are. It makes the actors of new ones, and sees when an actor
that was lost is up again; only workers that are up are in the pool.
"""

from __future__ import annotations

import logging
import secrets
import sys
import threading
import time
from collections import Counter
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any

import ray
from pydantic import ValidationError
from ray.actor import ActorHandle
from ray.exceptions import RayError, RayTaskError
from ray.job_config import JobConfig

from harness.errors import HarnessError, UsageError
from kernelmark.grading.fleet.cluster.access import refuse_if_open
from kernelmark.grading.fleet.cluster.actor import DeviceActor
from kernelmark.grading.fleet.cluster.documents import ActorSetup, ActorState
from kernelmark.grading.fleet.cluster.machine import CPU
from kernelmark.grading.fleet.messages import JobAnswer, JobRequest, WorkerLost
from kernelmark.grading.fleet.pool import WorkerPool
from kernelmark.text.terminal import warn

NAMESPACE = "kernelmark"
_LOOK_S, _START_S, _CLOSE_S = 1.0, 180.0, 20.0
ACCELERATOR = "ray.io/accelerator-type"
"""The label in which Ray has the name of a machine's GPUs."""


class RayWorker:
    """One device's actor. It is lost when a job's call fails, and up again once `start` was answered."""

    def __init__(self, kind: str, setup: ActorSetup, pool: WorkerPool) -> None:
        gpu = {"num_gpus": 1, "accelerator_type": kind or None} if kind != CPU else {"resources": {CPU: 1}}
        # An actor that ends is started again by Ray. Its jobs are not: which are handed over again, and how often, is
        # the dispatcher's to say.
        made = ray.remote(max_restarts=-1, max_task_retries=0, num_cpus=0, **gpu)(DeviceActor)
        self.kind, self.slots, self.failure = kind, 1, ""
        self.up = False
        """Whether it can be given jobs."""
        self._pool, self._actor = pool, _remote(made, setup.line())
        self._lock = threading.Lock()
        self._waiting: dict[str, Future[JobAnswer]] = {}
        self._state = ActorState(machine="another machine")
        self._starting: Any = None
        self.look()

    def look(self) -> None:
        """See whether it is up, if it was not."""
        if self.up or self.failure:
            return
        if self._starting is None:  # it was lost; Ray answers when it has started it again
            self._starting = self._actor.start.remote()
        if not ray.wait([self._starting], timeout=0)[0]:
            return
        answered, self._starting = self._starting, None
        try:
            self._state = ActorState.model_validate_json(ray.get(answered))
        except RayTaskError as error:
            self.failure = f"an actor failed ({_last_line(error)})"
            return
        except RayError:
            return
        if self._state.error:
            self.failure = f"{self._state.machine}: {self._state.error}"
            return
        with self._lock:
            self.slots, self.up = self._state.slots, True
            self._pool.add(self)

    def start(self) -> None:
        """It has been started when it was made."""

    def device(self) -> str:
        """The name of its device."""
        return self._state.device

    def submit(self, request: JobRequest) -> Future[JobAnswer]:
        """Hand over a job."""
        answer: Future[JobAnswer] = Future()
        if Path(request.problem).is_absolute():
            what = "is outside of the project's problems, and the other machines do not have it"
            error = UsageError(request.problem, what, "move it there, and name it by its slug")
            answer.set_result(JobAnswer.failed(request.run, error))
            return answer
        with self._lock:
            self._waiting[request.run] = answer
        called: Future[bytes] = self._actor.grade.remote(request.line()).future()
        called.add_done_callback(lambda done: self._settle(done, request.run))
        return answer

    def close(self) -> None:
        """Fail the jobs that it has; `Cluster.close` ends the actor."""
        with self._lock:
            left, self._waiting = list(self._waiting.values()), {}
        for answer in left:
            answer.set_exception(WorkerLost("the fleet was closed"))

    def end_worker(self) -> Any:
        """Begin to end its worker process; for `ray.wait`."""
        return self._actor.close.remote()

    def end(self) -> None:
        """End the actor."""
        ray.kill(self._actor)

    def _settle(self, called: Future[bytes], run: str) -> None:
        """Called in a thread of Ray's, in which none of its functions may be called."""
        failure, machine = called.exception(), self._state.machine
        lost = failure is not None and not isinstance(failure, RayTaskError)
        with self._lock:
            answer = self._waiting.pop(run, None)
            if lost and self.up:
                self.up = False
                self._pool.remove(self)
        if answer is None:
            return
        if lost:
            answer.set_exception(WorkerLost(f"the worker on {machine} was lost ({type(failure).__name__})"))
            return
        try:
            reply = JobAnswer.model_validate_json(called.result())
        except (RayTaskError, ValidationError) as error:
            reply = JobAnswer.failed(run, HarnessError(f"an actor failed ({_last_line(error)})"))
        if reply.error_class == WorkerLost.__name__:
            answer.set_exception(WorkerLost(f"{reply.error} on {machine}"))
        else:
            answer.set_result(reply)


class Cluster:
    """The connection to a fleet of several machines."""

    def __init__(self, address: str, setup: ActorSetup, device_name: str | None) -> None:
        self._address, self._setup, self._device_name = address, setup, device_name
        self._workers: list[RayWorker] = []
        self._closed, self._watch = threading.Event(), threading.Thread(target=self._look_on, daemon=True)
        self._warned: set[str] = set()
        self._connected = False

    def start(self, pool: WorkerPool) -> None:
        """Connect, and wait until the workers of all devices that are there now are up; `close` ends a failed start.

        Raises:
            UsageError: this machine is not one of the fleet's, or the fleet has no token.
            HarnessError: there is no fleet, or no device, or a worker did not start.
        """
        connect(self._address)
        self._connected, self._pool = True, pool
        self._wait()
        self._watch.start()

    def close(self) -> None:
        """End the actors and the connection."""
        self._closed.set()
        if not self._connected:
            return
        self._connected = False
        if self._watch.is_alive():
            self._watch.join()
        if self._workers:
            ending = [worker.end_worker() for worker in self._workers]
            ray.wait(ending, num_returns=len(ending), timeout=_CLOSE_S)
        for worker in self._workers:
            worker.end()
        ray.shutdown()

    def _wait(self) -> None:
        until = time.monotonic() + _START_S
        while time.monotonic() < until:
            self._look()
            for worker in self._workers:
                if worker.failure:
                    raise HarnessError(worker.failure)
            if self._workers and all(worker.up for worker in self._workers):
                return
            time.sleep(_LOOK_S / 10)
        up = sum(worker.up for worker in self._workers)
        if not self._workers:
            there = ", ".join(sorted(kind for kind in devices(None, "auto"))) or "none"
            raise HarnessError(f"the fleet has no device of this kind (it has: {there})", "run `kernelmark fleet join`")
        what = f"{up} of the fleet's {len(self._workers)} devices can be used after {_START_S:.0f} s"
        raise HarnessError(what, "`kernelmark fleet status` shows whether another program uses them")

    def _look_on(self) -> None:
        while not self._closed.wait(_LOOK_S):
            with suppress(RayError):  # a later look may succeed
                self._look()
            for failure in {worker.failure for worker in self._workers if worker.failure} - self._warned:
                self._warned.add(failure)
                warn(f"a worker of the fleet did not start: {failure}")

    def _look(self) -> None:
        """Make the actors of new devices. One whose machine was lost waits for a device like the one it had."""
        made = Counter(worker.kind for worker in self._workers)
        for kind, count in devices(self._device_name, self._setup.device).items():
            self._workers += [RayWorker(kind, self._setup, self._pool) for _ in range(count - made[kind])]
        for worker in self._workers:
            worker.look()


def connect(address: str) -> None:
    """Connect this process, which `require_token` has prepared, to the fleet whose first machine is at HOST:PORT.

    Raises:
        UsageError, HarnessError: as for `Cluster.start`.
    """
    if ray.is_initialized():
        what = "this process is connected to Ray already"
        raise UsageError("Fleet", what, "use the fleet in a process of its own")
    refuse_if_open(address)
    try:
        ray.init(
            address=address,
            namespace=NAMESPACE,
            log_to_driver=False,
            logging_level=logging.ERROR,
            # With a search path Ray loads the actor's class on its machine by name; otherwise it would send a pickle.
            job_config=JobConfig(code_search_path=[str(Path(sys.prefix))]),
        )
    except Exception as error:
        remedy = f"run `kernelmark fleet join {address}` on this machine"
        raise HarnessError(f"cannot connect to the fleet at {address} ({_last_line(error)})", remedy) from error


def devices(device_name: str | None, device: str) -> Counter[str]:
    """How many devices of each kind the fleet has now: GPUs by the name that Ray has for them, or `CPU`.

    CPUs count if they are asked for, or if there are no GPUs at all.
    """
    gpus, cpus = Counter[str](), Counter[str]()
    for node in living():
        gpus[node["Labels"].get(ACCELERATOR, "")] += int(node["Resources"].get("GPU", 0))
        cpus[CPU] += int(node["Resources"].get(CPU, 0))
    found = +cpus if device == "cpu" or (device == "auto" and not +gpus) else +gpus
    if device_name is None:
        return found
    return Counter({kind: count for kind, count in found.items() if kind.casefold() == device_name.casefold()})


def living() -> list[dict[str, Any]]:
    """The machines that the fleet has now, as Ray describes them."""
    nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    return [node for node in nodes if node["Alive"]]


def _remote(actor_class: Any, setup: bytes) -> ActorHandle[Any]:
    # By its name `kernelmark fleet status` finds it.
    made: ActorHandle[Any] = actor_class.options(name=secrets.token_hex(8), namespace=NAMESPACE).remote(setup)
    return made


def _last_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[-1]
