"""What every part of a running server shares."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelmark.project.project import Project
from kernelmark.server.changes import Changes
from kernelmark.server.clock import Clock
from kernelmark.server.database.database import Database


@dataclass(frozen=True)
class Service:
    """One server of one project. Routes find it as `request.app.state.service`."""

    project: Project
    database: Database
    changes: Changes = field(default_factory=Changes)
    clock: Clock = field(default_factory=Clock)
