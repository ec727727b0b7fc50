"""The state that all parts of a running server share."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from sqlalchemy import Connection

from kernelmark.project.project import Project
from kernelmark.server.changes import Changes
from kernelmark.server.clock import Clock
from kernelmark.server.database.database import Database
from kernelmark.server.queue.forecast import ForecastCache
from kernelmark.server.queue.project_files import ProjectFiles

T = TypeVar("T")


@dataclass(frozen=True)
class Service:
    """One server of one project. Routes get it by a dependency."""

    project: Project
    database: Database
    url: str = "http://127.0.0.1:8080"
    """The origin at which people reach it."""
    local: str = "127.0.0.1:8080"
    """The address on which it listens, as its own worker gives it in `Host`."""
    proxy: str | None = None
    """The one peer whose `X-Forwarded-For` is read."""
    changes: Changes = field(default_factory=Changes)
    clock: Clock = field(default_factory=Clock)
    files: ProjectFiles = field(init=False)
    """A snapshot of the project's files, for those who must not wait for them."""
    forecasts: ForecastCache = field(default_factory=ForecastCache)
    """When queued gradings end, as it was last computed."""
    own_worker: threading.Event = field(default_factory=threading.Event)
    """Set while there is a worker on this machine, connected or starting."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "files", ProjectFiles(self.project, self.clock))

    async def change(self, change: Callable[[Connection], T]) -> T:
        """Make a change, and return its result once it is on the disk. It raises what the change raises."""
        return await asyncio.wrap_future(self.database.write(change))

    async def read(self, look: Callable[[Connection], T]) -> T:
        """Read what was committed, in a thread."""

        def looked() -> T:
            with self.database.read() as connection:
                return look(connection)

        return await asyncio.to_thread(looked)
