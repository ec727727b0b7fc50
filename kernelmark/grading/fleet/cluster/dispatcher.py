"""The dispatcher's side of a fleet on several machines: it starts an actor on each machine and uses its workers.

Trusted. A thread looks for machines every second, and starts an actor on each that has none. An actor that was lost is
not used again: its machine, if it is still there, gets a new one. The pool has only workers that have started.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ray
from pydantic import ValidationError
from ray.exceptions import RayError, RayTaskError
from ray.job_config import JobConfig
from ray.util import list_named_actors
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
from typing_extensions import TypedDict

from harness.errors import HarnessError, UsageError, said
from harness.judge.setup import ignore
from harness.kinds import SandboxName
from kernelmark.grading.fleet.cluster.actor import VERSION, MachineActor, MachineState, WorkerState
from kernelmark.grading.fleet.cluster.machine import CPU, refuse_if_open
from kernelmark.grading.fleet.messages import REPLY, JobAnswer, JobRequest, OnStep, WorkerAway, WorkerLost
from kernelmark.grading.fleet.pool import WorkerPool
from kernelmark.project.settings import DeviceChoice
from kernelmark.text.terminal import warn

_log = logging.getLogger("kernelmark.fleet")
_NAMESPACE = "kernelmark"
_LOOK_S, _START_S, _CLOSE_S, _STATE_S = 1.0, 180.0, 20.0, 5.0
_ACCELERATOR = "ray.io/accelerator-type"  # Ray's label with the name of a machine's GPUs


@dataclass(frozen=True)
class Node:
    """A machine of the fleet, as `kernelmark fleet status` shows it."""

    machine: str
    address: str
    gpus: int
    gpu: str
    """The name of its GPUs; empty if it has none or Ray does not know the name."""
    cpu: bool
    """Whether its CPU grades."""


class FleetWorker(TypedDict):
    """A worker of the fleet, as `kernelmark fleet status` shows it."""

    machine: str
    device: str
    done: int
    working: int
    waiting: int
    a_minute: float


class FleetDocument(TypedDict):
    """What `kernelmark fleet status` prints for programs."""

    address: str
    machines: list[Node]
    workers: list[FleetWorker]


class MachineWorker:
    """A worker on a machine of the fleet. It receives its jobs through the machine's actor."""

    def __init__(self, cluster: Cluster, actor: Any, machine: str, number: int, state: WorkerState) -> None:
        self._cluster, self._actor, self._machine, self._number = cluster, actor, machine, number
        self.device, self.slots = state.device, state.slots
        self.gpu = state.gpu and f"{machine} {state.gpu}"

    def submit(self, request: JobRequest, on_step: OnStep = ignore) -> Future[JobAnswer]:
        """Send a job."""
        return asyncio.run_coroutine_threadsafe(self._graded(request, on_step), self._cluster.loop)

    def cancel(self, run: str) -> None:
        """Ask the worker to end a job, without waiting for it."""
        with suppress(RuntimeError):  # the fleet was closed
            self._cluster.loop.call_soon_threadsafe(lambda: self._actor.cancel.remote(self._number, run))

    async def _graded(self, request: JobRequest, on_step: OnStep) -> JobAnswer:
        reply = None
        try:
            async for line in self._actor.grade.remote(self._number, request.line()):
                message = REPLY.validate_json(await line)
                if isinstance(message, JobAnswer):
                    reply = message
                else:
                    on_step(message.step)
        except (RayTaskError, ValidationError) as error:
            return JobAnswer.failed(request.run, HarnessError(f"an actor failed ({_last_line(error)})"))
        except RayError as error:
            self._cluster.pool.remove(self)  # at once, since the job is sent again now
            raise WorkerAway(f"the worker on {self._machine} was lost ({type(error).__name__})") from error
        if reply is None:
            return JobAnswer.failed(request.run, HarnessError("an actor failed (it gave no answer)"))
        for lost in (WorkerLost, WorkerAway):
            if reply.error_class == lost.__name__:
                raise lost(f"{reply.error} on {self._machine}")
        return reply


class Cluster:
    """The connection to a fleet of several machines, with a thread whose event loop calls the actors."""

    def __init__(
        self, address: str, device: DeviceChoice, sandbox: SandboxName, slots: int | None, device_name: str | None
    ) -> None:
        self._address, self._device, self._device_name = address, device, device_name and device_name.casefold()
        self._sandbox, self._slots = sandbox, slots
        # By Ray's id. A machine that cannot be used stays here, so it is not tried again.
        self._machines = dict[str, asyncio.Task[None]]()
        self._up, self._errors = set[str](), list[HarnessError]()
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)

    def start(self, pool: WorkerPool) -> None:
        """Connect, and wait until the workers of all present devices have started. Call `close` even if this fails.

        Raises:
            UsageError: this machine is not part of the fleet, or the fleet requires no token.
            HarnessError: there is no fleet or no device, or a worker did not start.
        """
        connect(self._address)
        self.pool = pool
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._begin(), self.loop).result()

    def close(self) -> None:
        """End the actors and the connection."""
        if self._thread.is_alive():
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join()
            self.loop.run_until_complete(self._end())
            ray.shutdown()
        self.loop.close()

    async def _begin(self) -> None:
        until = time.monotonic() + _START_S
        while not self._machines or self._up != self._machines.keys():
            self._look()
            await asyncio.sleep(_LOOK_S / 10)
            for error in self._errors:
                raise error
            if time.monotonic() > until:
                raise self._not_up()
        self._watch = asyncio.create_task(self._look_on())

    def _not_up(self) -> HarnessError:
        if not self._machines:
            nodes = living().values()
            there = {node.gpu or "GPU" for node in nodes if node.gpus} | {"CPU" for node in nodes if node.cpu}
            what = f"the fleet has no device of this kind (it has: {', '.join(sorted(there)) or 'none'})"
            return HarnessError(what, "run `kernelmark fleet join`")
        what = f"{len(self._up)} of the fleet's {len(self._machines)} machines can be used after {_START_S:.0f} s"
        return HarnessError(what, "`kernelmark fleet status` shows whether another program uses them")

    async def _end(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _look_on(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_S)
            with suppress(RayError):  # a later look may succeed
                self._look()
            while self._errors:
                warn(f"a worker of the fleet did not start: {self._errors.pop()}")

    def _look(self) -> None:
        """Start the workers of machines that are new, or whose actor was lost."""
        for node_id, gpus in self._chosen():
            if node_id not in self._machines:
                self._machines[node_id] = asyncio.create_task(self._use(node_id, gpus))

    async def _use(self, node_id: str, gpus: int) -> None:
        """Start a machine's workers, and keep them in the pool until their actor is lost."""
        actor = _made(node_id, gpus, VERSION, self._sandbox, self._slots)
        workers: list[MachineWorker] = []
        try:
            state = MachineState.model_validate_json(await actor.start.remote())
            if state.error:
                raise HarnessError(said(state.machine, state.error))
            for number, worker in enumerate(state.workers):
                workers.append(MachineWorker(self, actor, state.machine, number, worker))
                self.pool.add(workers[-1])
            self._up.add(node_id)
            await actor.live.remote()
        except HarnessError as error:
            self._errors.append(error)
        except (RayTaskError, ValidationError) as error:
            self._errors.append(HarnessError(f"an actor failed ({_last_line(error)})"))
        except RayError as error:
            warn(f"the workers on a machine of the fleet were lost ({type(error).__name__}); others take their place")
            del self._machines[node_id]
        except asyncio.CancelledError:
            if workers:
                with suppress(RayError, TimeoutError):
                    async with asyncio.timeout(_CLOSE_S):
                        await actor.close.remote()
        finally:
            self._up.discard(node_id)
            for ended in workers:
                self.pool.remove(ended)
            ray.kill(actor)

    def _chosen(self) -> Iterator[tuple[str, int]]:
        """The ids of the machines to use, with the number of their GPUs; 0 for those that grade on their CPU.

        CPUs are used if the device is "cpu", or if no machine has a GPU.
        """
        nodes, name = living(), self._device_name
        on_cpu = self._device == "cpu" or (self._device == "auto" and not any(node.gpus for node in nodes.values()))
        for node_id, node in nodes.items():
            if (node.cpu if on_cpu else node.gpus) and name in (None, node.gpu.casefold()):
                yield node_id, 0 if on_cpu else node.gpus


def connect(address: str) -> None:
    """Connect this process to the fleet whose first machine is at HOST:PORT. `require_token` must be called before.

    Raises:
        UsageError, HarnessError: as for `Cluster.start`.
    """
    if ray.is_initialized():
        what = "this process is connected to Ray already"
        raise UsageError("Fleet", what, "use the fleet in a process of its own")
    refuse_if_open(address)
    on_sigterm = signal.getsignal(signal.SIGTERM)
    # Ray prints what befell its nodes on stdout, which is the program's, even without `log_to_driver`.
    ray._private.worker.print_to_stdstream = _noted
    try:
        ray.init(
            address=address,
            namespace=_NAMESPACE,
            log_to_driver=False,
            logging_level=logging.ERROR,
            # With a search path Ray loads the actor's class on its machine by name; otherwise it would send a pickle.
            job_config=JobConfig(code_search_path=[str(Path(sys.prefix))]),
        )
    except Exception as error:
        remedy = f"run `kernelmark fleet join {address}` on this machine"
        raise HarnessError(f"cannot connect to the fleet at {address} ({_last_line(error)})", remedy) from error
    if on_sigterm is not None and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, on_sigterm)  # Ray's prints a trace, and exits with 15


def _noted(data: dict[str, Any], ignore_prefix: bool) -> None:
    """Log what Ray would print. The dispatcher itself warns of machines that are lost."""
    _log.debug("\n".join(data["lines"]))


def examine(address: str) -> FleetDocument:
    """The machines of the fleet at HOST:PORT, and the workers that programs use there now.

    Raises:
        UsageError, HarnessError: as for `connect`.
    """
    connect(address)
    try:
        workers: list[FleetWorker] = [
            {
                "machine": state.machine,
                "device": worker.device,
                "done": worker.done,
                "working": worker.working,
                "waiting": worker.waiting,
                "a_minute": worker.a_minute,
            }
            for state in machine_states()
            for worker in state.workers
        ]
        return {"address": address, "machines": [*living().values()], "workers": workers}
    finally:
        ray.shutdown()


def machine_states() -> Iterator[MachineState]:
    """The states that the fleet's actors report within five seconds. This process must be connected."""
    calls: list[Any] = []
    named: list[dict[str, str]] = list_named_actors(all_namespaces=True)
    for actor in named:
        if actor["namespace"] == _NAMESPACE:
            with suppress(ValueError):  # it has ended
                calls.append(ray.get_actor(actor["name"], _NAMESPACE).state.remote())
    answered, _ = ray.wait(calls, num_returns=len(calls), timeout=_STATE_S) if calls else ([], [])
    for answer in answered:
        with suppress(RayError):  # it was lost just now
            yield MachineState.model_validate_json(ray.get(answer))


def living() -> dict[str, Node]:
    """The machines that are in the fleet now, by Ray's ids."""
    nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    return {
        node["NodeID"]: Node(
            machine=node["NodeManagerHostname"],
            address=node["NodeManagerAddress"],
            gpus=int(node["Resources"].get("GPU", 0)),
            gpu=node["Labels"].get(_ACCELERATOR, ""),
            cpu=CPU in node["Resources"],
        )
        for node in nodes
        if node["Alive"]
    }


def _made(node_id: str, gpus: int, *setup: Any) -> Any:
    """Start a `MachineActor` on a machine, with exclusive use of its devices.

    Ray must restart neither the actor nor its jobs: the dispatcher decides which jobs are tried again, and how often.
    """
    devices: dict[str, Any] = {"num_gpus": gpus} if gpus else {"resources": {CPU: 1}}
    options = {
        "name": secrets.token_hex(8),  # by which `machine_states` finds it
        "namespace": _NAMESPACE,
        "scheduling_strategy": NodeAffinitySchedulingStrategy(node_id, soft=False),
        "max_restarts": 0,
        "max_task_retries": 0,
        "num_cpus": 0,
    }
    return ray.remote(MachineActor).options(**options, **devices).remote(*setup, gpus)


def _last_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[-1]
