"""The state that all parts of a running server share."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelmark.project.project import Project
from kernelmark.server.changes import Changes
from kernelmark.server.clock import Clock
from kernelmark.server.database.database import Database
from kernelmark.server.queue.forecast import ForecastCache
from kernelmark.server.queue.project_files import ProjectFiles


@dataclass(frozen=True)
class Service:
    """One server of one project. Routes find it as `request.app.state.service`."""

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

    def __post_init__(self) -> None:
        object.__setattr__(self, "files", ProjectFiles(self.project, self.clock))
