"""The actor of one machine: it owns the workers of the machine's devices and passes documents through. Trusted.

Ray changes the environment and the priority of the processes that it starts. What could disturb a grading is undone
here, or by the variables with which `machine` starts Ray. Does not import ray.
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
"""The version of this machine's kernelmark; all machines of a fleet must have the same."""


class WorkerState(Message):
    """What one worker has done, and what it is doing."""

    device: str
    """The name of its device."""
    slots: int
    """How many jobs it works on at a time."""
    gpu: str = ""
    """Its GPU's id; empty if it grades on the CPU."""
    done: int = 0
    working: int = 0
    """Jobs that it works on."""
    waiting: int = 0
    """Jobs that wait for their turn."""
    a_minute: float = 0.0
    """Results a minute since its machine's first job came."""


class MachineState(Message):
    """The workers of a machine, which are up, or why they are not."""

    machine: str
    workers: tuple[WorkerState, ...] = ()
    error: str = ""


class MachineActor:
    """The workers of one machine. Ray loads this class from the kernelmark that its machine has."""

    def __init__(self, version: str, sandbox: SandboxName, slots: int | None, gpus: int) -> None:
        """Nothing is started. `gpus` is the number that Ray counted on this machine; 0: its CPU grades."""
        self._version, self._sandbox, self._slots, self._gpus = version, sandbox, slots, gpus
        self._workers: list[WorkerProcess] = []
        self._done, self._in_flight = Counter[int](), Counter[int]()
        self._begun, self._error = 0.0, ""

    async def start(self) -> bytes:
        """Start the workers, and wait until they are up; returns a `MachineState`."""
        try:
            await asyncio.to_thread(self._start)
        except Exception as error:  # noqa: BLE001 - the dispatcher reports it
            self._error = str(error) if isinstance(error, KernelmarkError) else unexpected(error)
        return await self.state()

    async def live(self) -> None:
        """Never return: that this call has failed tells the dispatcher that the actor was lost."""
        await asyncio.Event().wait()

    async def grade(self, worker: int, document: bytes) -> AsyncIterator[bytes]:
        """Have the worker of this number grade a `JobRequest`; yields each `JobProgress`, if the request asks for it,
        and last a `JobAnswer`, of the error class `WorkerLost` if the worker process ended.
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
        """Have the worker of this number end a job."""
        await asyncio.to_thread(self._workers[worker].cancel, run)

    async def state(self) -> bytes:
        """What the workers have done and are doing; returns a `MachineState`."""
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
        settings = Settings.load()  # Ray runs in the directory where it was started: the project's
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
    """The machine's environment without Ray's part in it.

    `initial` is a process's environment as it began: what Ray has set since, such as OMP_NUM_THREADS, is not there.
    """
    pairs = (pair.partition("=") for pair in os.fsdecode(initial).split("\0") if "=" in pair)
    return {name: value for name, _, value in pairs if not name.startswith("RAY_") and name != "SPT_NOENV"}
