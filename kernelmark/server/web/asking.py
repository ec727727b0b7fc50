"""How routes reach the database: changes are awaited until they are durable, reads are made in threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection

from kernelmark.server.service import Service

T = TypeVar("T")


async def changed(service: Service, change: Callable[[Connection], T]) -> T:
    """Make a change, and give its result once it is on the disk. It raises what the change raises."""
    return await asyncio.wrap_future(service.database.write(change))


async def seen(service: Service, look: Callable[[Connection], T]) -> T:
    """Read what was committed."""

    def looked() -> T:
        with service.database.read() as connection:
            return look(connection)

    return await asyncio.to_thread(looked)
