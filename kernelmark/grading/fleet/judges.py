"""The workers that a dispatcher hands its jobs to: those of this machine, or of a fleet of several. Trusted.

`Fleet` and the worker of a server (`kernelmark.worker`) have one each, for as long as they grade.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.errors import UsageError
from harness.kinds import SandboxName, isolates
from harness.sandbox import choose
from kernelmark.grading.fleet.cluster.machine import find_address, require_token
from kernelmark.grading.fleet.pool import WorkerPool
from kernelmark.grading.fleet.process import WorkerProcess, local_workers
from kernelmark.project.choice import choose_device, providers
from kernelmark.project.settings import Settings

if TYPE_CHECKING:
    from kernelmark.grading.fleet.cluster.dispatcher import Cluster


class Judges:
    """Workers, which start with `start` and end with `close`."""

    def __init__(
        self,
        settings: Settings,
        where: str = "auto",
        *,
        slots: int | None = None,
        devices: int | None = None,
        device_name: str | None = None,
    ) -> None:
        """Arguments as for `Fleet`; nothing is started.

        Raises:
            UsageError: the sandbox does not isolate, `where` is no address, or this machine lacks a GPU, ray or the
                token.
            SandboxError: no sandbox can be used here.
        """
        self._workers: list[WorkerProcess] = []
        self._cluster: Cluster | None = None
        if where == "auto":
            choose_device(settings.device, "py")  # or refused here, and not for each job
            self.sandbox = _isolated(settings)
            self._workers = local_workers(settings.root, settings.device, slots, devices=devices)
        else:
            address = find_address(where)
            self.sandbox = _isolated(settings, elsewhere=True)
            require_token()
            from kernelmark.grading.fleet.cluster.dispatcher import Cluster

            self._cluster = Cluster(address, settings.device, self.sandbox, slots, device_name)
        self.pool = WorkerPool(self._workers)

    @property
    def are_here(self) -> bool:
        """Whether they are this machine's, not a fleet's."""
        return self._cluster is None

    def start(self) -> None:
        """Start the workers and wait until all are ready; call `close`, also if this fails.

        Raises:
            UsageError: this machine is not one of the fleet, or it demands no token.
            HarnessError: one did not start.
        """
        if self._cluster is not None:
            self._cluster.start(self.pool)
        for worker in self._workers:
            worker.start()
        for worker in self._workers:
            worker.wait()

    def close(self) -> None:
        """End the workers and all sandboxes; what is being graded is lost."""
        self.pool.close()
        for worker in self._workers:
            worker.close()
        if self._cluster is not None:
            self._cluster.close()


def _isolated(settings: Settings, *, elsewhere: bool = False) -> SandboxName:
    """The chosen sandbox, or else the strongest one here. A chosen one may be missing here if jobs run `elsewhere`.

    Raises:
        UsageError: it does not isolate.
        SandboxError: it cannot be used.
    """
    if elsewhere and settings.sandbox != "auto" and isolates(settings.sandbox):
        return settings.sandbox
    name = choose(settings.sandbox, providers(settings)).name
    if not isolates(name):
        raise UsageError("Fleet", f"the sandbox {name} does not isolate", "install Docker or bubblewrap")
    return name
