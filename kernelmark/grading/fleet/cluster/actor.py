"""The actor of one machine: it owns the workers of the machine's devices and forwards documents to them. Trusted.

Ray changes the environment and the priority of the processes that it starts. Changes that could disturb a grading are
undone here, or by the variables with which `machine` starts Ray. This module does not import ray.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator
from concurrent.futures import Future
from importlib.metadata import version
from pathlib import Path

from harness import sandbox as sandboxes
from harness.errors import HarnessError, KernelmarkError, UsageError
from harness.judge import Progress
from harness.kinds import SandboxName
from harness.wire.protocol import PROTOCOL
from kernelmark.grading.fleet.messages import JobAnswer, JobProgress, JobRequest, Message
from kernelmark.grading.fleet.process import WorkerProcess, local_workers
from kernelmark.project.choice import cuda_is_here, providers
from kernelmark.project.settings import Settings
from kernelmark.text.terminal import unexpected

VERSION = f"{version('kernelmark')}, protocol {PROTOCOL}"
"""The version of kernelmark on this machine; all machines of a fleet must have the same."""


class WorkerState(Message):
    """The state of one worker."""

    device: str
    """The name of its device."""
    slots: int
    """How many jobs it grades at a time."""
    gpu: str = ""
    """The id of its GPU; empty if it grades on the CPU."""
    done: int = 0
    working: int = 0
    """How many jobs it is grading."""
    waiting: int = 0
    """How many jobs wait for a slot."""
    a_minute: float = 0.0
    """Results per minute since the first job of its machine."""


class MachineState(Message):
    """The workers of a machine, or why they did not start."""

    machine: str
    workers: tuple[WorkerState, ...] = ()
    error: str = ""


class MachineActor:
    """The workers of one machine. Ray loads this class from the kernelmark installed on that machine."""

    def __init__(self, version: str, sandbox: SandboxName, slots: int | None, gpus: int) -> None:
        """Nothing is started. `gpus` is how many GPUs Ray counted on this machine; 0: its CPU grades."""
        self._version, self._sandbox, self._slots, self._gpus = version, sandbox, slots, gpus
        self._workers: list[WorkerProcess] = []
        self._done, self._in_flight = Counter[int](), Counter[int]()
        self._begun, self._error = 0.0, ""

    async def start(self) -> bytes:
        """Start the workers and wait until they are ready; returns a `MachineState`."""
        try:
            await asyncio.to_thread(self._start)
        except Exception as error:  # noqa: BLE001 - the dispatcher reports it
            self._error = str(error) if isinstance(error, KernelmarkError) else unexpected(error)
        return await self.state()

    async def live(self) -> None:
        """Never return: when this call fails, the dispatcher knows that the actor was lost."""
        await asyncio.Event().wait()

    async def grade(self, worker: int, document: bytes) -> AsyncIterator[bytes]:
        """Let the worker with this number grade a `JobRequest`. Yields `JobProgress` messages, if the request wants
        them, and then a `JobAnswer`, whose error class is `WorkerLost` if the worker process ended.
        """
        request = JobRequest.model_validate_json(document)
        if Path(request.problem).is_absolute():
            what = "is outside of the project's problems, and the other machines do not have it"
            error = UsageError(request.problem, what, "move it there, and name it by its slug")
            yield JobAnswer.failed(request.run, error).line()
            return
        loop, messages = asyncio.get_running_loop(), asyncio.Queue[Message | Future[JobAnswer]]()

        def step(step: Progress) -> None:
            loop.call_soon_threadsafe(messages.put_nowait, JobProgress(run=request.run, step=step))

        self._begun = self._begun or time.monotonic()
        self._in_flight[worker] += 1
        try:  # the pipe to a worker may be full, and writing then waits
            graded = await asyncio.to_thread(self._workers[worker].submit, request, step)
            graded.add_done_callback(lambda done: loop.call_soon_threadsafe(messages.put_nowait, done))
            while isinstance(message := await messages.get(), Message):
                yield message.line()
            answer = message.result()
            self._done[worker] += 1
        except Exception as error:  # noqa: BLE001 - the failure of one job must not end the others
            answer = JobAnswer.failed(request.run, error)
        finally:
            self._in_flight[worker] -= 1
        yield answer.line()

    async def cancel(self, worker: int, run: str) -> None:
        """Let the worker with this number end a job."""
        await asyncio.to_thread(self._workers[worker].cancel, run)

    async def state(self) -> bytes:
        """The state of the workers, as a `MachineState`."""
        minutes = (time.monotonic() - self._begun) / 60
        workers = [
            WorkerState(
                device=worker.device,
                slots=worker.slots,
                gpu=worker.gpu,
                done=self._done[number],
                working=min(worker.slots, self._in_flight[number]),
                waiting=max(0, self._in_flight[number] - worker.slots),
                a_minute=round(self._done[number] / minutes, 1),
            )
            for number, worker in enumerate(self._workers)
        ]
        return MachineState(machine=socket.gethostname(), workers=tuple(workers), error=self._error).line()

    async def close(self) -> None:
        """End the worker processes and their sandboxes."""
        await asyncio.gather(*(asyncio.to_thread(worker.close) for worker in self._workers))

    def _start(self) -> None:
        if self._version != VERSION:
            what = f"has kernelmark {VERSION}, and the dispatcher {self._version}"
            raise HarnessError(what, "install the same version on all machines")
        settings = Settings.load()  # Ray runs in the directory in which it was started, that of the project
        sandboxes.choose(self._sandbox, providers(settings))
        environment = node_environment(Path("/proc/self/environ").read_bytes())
        found = local_workers(settings.root, "cuda" if self._gpus else "cpu", self._slots, environment)
        if self._gpus and not (cuda_is_here() and len({worker.gpu for worker in found}) >= self._gpus):
            raise HarnessError(f"not all of its {self._gpus} GPUs can be used", "run `kernelmark doctor` there")
        self._workers = found
        for process in found:
            process.start()
        for process in found:
            process.wait()


def node_environment(initial: bytes) -> dict[str, str]:
    """The machine's environment without the variables of Ray.

    `initial` is the environment with which this process began; it lacks what Ray set later, such as OMP_NUM_THREADS.
    """
    pairs = (pair.partition("=") for pair in os.fsdecode(initial).split("\0") if "=" in pair)
    return {name: value for name, _, value in pairs if not name.startswith("RAY_") and name != "SPT_NOENV"}
