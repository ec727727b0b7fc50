"""Starts and ends a dispatcher's workers: those of this machine, or those of a fleet of several machines. Trusted.

`Fleet` and the worker of a server (`kernelmark.worker`) use one `Judges` each.
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
    """The workers, from `start` until `close`."""

    def __init__(
        self,
        settings: Settings,
        where: str = "auto",
        *,
        slots: int | None = None,
        devices: int | None = None,
        device_name: str | None = None,
    ) -> None:
        """Arguments and exceptions as for `Fleet`; nothing is started."""
        self._workers: list[WorkerProcess] = []
        self._cluster: Cluster | None = None
        if where == "auto":
            choose_device(settings.device, "py")  # raises here once, instead of for each job
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
        """Whether they run on this machine only."""
        return self._cluster is None

    def start(self) -> None:
        """Start the workers and wait until all are ready. Call `close` afterwards, even if this fails.

        Raises:
            UsageError, HarnessError: as for `Fleet.start`.
        """
        if self._cluster is not None:
            self._cluster.start(self.pool)
        for worker in self._workers:
            worker.start()
        for worker in self._workers:
            worker.wait()

    def close(self) -> None:
        """End the workers and all sandboxes; running gradings are lost."""
        self.pool.close()
        for worker in self._workers:
            worker.close()
        if self._cluster is not None:
            self._cluster.close()


def _isolated(settings: Settings, *, elsewhere: bool = False) -> SandboxName:
    """The sandbox of the settings, or the strongest one here; raises as `Fleet`.

    If jobs run `elsewhere`, the sandbox need not be available on this machine.
    """
    if elsewhere and settings.sandbox != "auto" and isolates(settings.sandbox):
        return settings.sandbox
    name = choose(settings.sandbox, providers(settings)).name
    if not isolates(name):
        raise UsageError("Fleet", f"the sandbox {name} does not isolate", "install Docker or bubblewrap")
    return name
