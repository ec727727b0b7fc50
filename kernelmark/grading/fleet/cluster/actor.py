"""The actor of one device, on its machine: it owns a worker process and passes documents through. Trusted.

Ray changes the environment and the priority of the processes that it starts. What could disturb a grading is undone
here, or by the variables with which `machine` starts Ray.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import ray

from harness import sandbox as sandboxes
from harness.errors import HarnessError, KernelmarkError
from kernelmark.grading.fleet.cluster.documents import VERSION, ActorSetup, ActorState
from kernelmark.grading.fleet.cluster.machine import node_environment, ordinal
from kernelmark.grading.fleet.local import local_workers
from kernelmark.grading.fleet.messages import JobAnswer, JobRequest
from kernelmark.grading.fleet.process import WorkerProcess
from kernelmark.project.choice import cuda_is_here, providers
from kernelmark.project.settings import Settings
from kernelmark.text.unexpected import unexpected

_VISIBLE = "CUDA_VISIBLE_DEVICES"


class DeviceActor:
    """One device's worker. Ray loads this class from the kernelmark that its machine has."""

    def __init__(self, setup: bytes) -> None:
        self._setup, self._error = setup, ""
        self._worker: WorkerProcess | None = None
        self._device = ""
        self._submitting = ThreadPoolExecutor(1)  # the pipe to a worker may be full, and writing then waits
        self._done, self._in_flight, self._first = 0, 0, 0.0

    async def start(self) -> bytes:
        """Start the worker process, if it is not there, and wait until it is up; returns its `state`."""
        self._error = ""
        try:
            await asyncio.get_running_loop().run_in_executor(self._submitting, self._start)
        except KernelmarkError as error:
            self._error = str(error)
        except Exception as error:  # noqa: BLE001 - the dispatcher reports it
            self._error = unexpected(error)
        return await self.state()

    async def grade(self, document: bytes) -> bytes:
        """Grade a `JobRequest`; returns a `JobAnswer`, of the error class `WorkerLost` if the worker process ended."""
        request = JobRequest.model_validate_json(document)
        self._first = self._first or time.monotonic()
        self._in_flight += 1
        try:
            submitted = asyncio.get_running_loop().run_in_executor(self._submitting, self._submit, request)
            answer = await asyncio.wrap_future(await submitted)
            self._done += 1
        except Exception as error:  # noqa: BLE001 - the failure of one job must not end the others
            answer = JobAnswer.failed(request.run, error)
        finally:
            self._in_flight -= 1
        return answer.line()

    async def state(self) -> bytes:
        """What it has done and is doing; returns an `ActorState`."""
        return ActorState(
            machine=socket.gethostname(),
            device=self._device,
            slots=self._worker.slots if self._worker else 0,
            error=self._error,
            done=self._done,
            in_flight=self._in_flight,
            seconds=time.monotonic() - self._first if self._first else 0.0,
        ).line()

    async def close(self) -> None:
        """End the worker process and its sandboxes."""
        if self._worker is not None:
            await asyncio.to_thread(self._worker.close)

    def _submit(self, request: JobRequest) -> Future[JobAnswer]:
        # There is none if the actor was restarted while it had no job, which the dispatcher does not see.
        return (self._worker or self._start()).submit(request)

    def _start(self) -> WorkerProcess:
        setup = ActorSetup.model_validate_json(self._setup)
        if setup.version != VERSION:
            what = f"has kernelmark {VERSION}, and the dispatcher {setup.version}"
            raise HarnessError(what, "install the same version on all machines")
        if self._worker is None:
            settings = Settings.load()  # Ray runs in the directory where it was started: the project's
            sandboxes.choose(setup.sandbox, providers(settings))
            self._worker = _worker_of_this_actor(settings.root, setup)
        self._worker.start()
        self._device = self._worker.device()
        return self._worker


def _worker_of_this_actor(root: Path, setup: ActorSetup) -> WorkerProcess:
    """The same worker that a fleet of this machine alone would have for the device that Ray gave to this actor."""
    ours = ray.get_runtime_context().get_accelerator_ids().get("GPU", [])
    environment = node_environment(Path("/proc/self/environ").read_bytes())
    if not ours:
        return local_workers(root, "cpu", setup.slots, environment)[0]
    os.environ.pop(_VISIBLE, None)  # all GPUs of the machine, to number them and divide its processors as Ray does
    if _VISIBLE in environment:
        os.environ[_VISIBLE] = environment[_VISIBLE]
    workers = local_workers(root, "cuda", setup.slots, environment) if cuda_is_here() else []
    number = ordinal(ours[0], environment.get(_VISIBLE))
    if number >= len(workers):
        raise HarnessError(f"GPU {ours[0]} cannot be used", "run `kernelmark doctor` on that machine")
    return workers[number]
