"""The process that serves a project: what it refuses to begin, what it starts, in which order, and how it ends.

`kernelmark serve` calls `serve`. At SIGTERM or Ctrl-C it takes no more requests, answers those under way, records what
was graded, and ends; a second signal ends it at once. What a `kill -9` leaves is taken up at the next start.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import logging
import logging.handlers
import resource
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import uvicorn
from sqlalchemy import select
from uvicorn.protocols.http.h11_impl import H11Protocol

from harness.errors import UsageError
from kernelmark.project.project import Project
from kernelmark.server.accounts import invitations
from kernelmark.server.app import create_app
from kernelmark.server.database import migrations
from kernelmark.server.database.database import Database
from kernelmark.server.database.tables import accounts
from kernelmark.server.local_worker import LocalWorker
from kernelmark.server.lock import DATABASE, hide_archive_from_git, served
from kernelmark.server.queue.sweeper import Sweeper
from kernelmark.server.record.recorder import Recorder
from kernelmark.server.service import Service
from kernelmark.server.web.defence import access
from kernelmark.text.terminal import say, visible, warn

LOG = "log.jsonl"
_LOG_DAYS = 14
_DRAIN_S = 30  # for requests under way
_KEEP_ALIVE_S = 75
_FIRST_S = 30  # until a connection's first request has begun
_WAITING = 1024  # connections that are not accepted yet
_FILES = 65_536  # that the server keeps open at most
_SELDOM_S = 60
_CLIENTS_FAULTS = "Invalid HTTP request", "Unsupported upgrade request", "No supported WebSocket library"
"""How uvicorn's warnings about malformed requests begin. Anybody can cause them, so only the log has them."""
_OTHERS = logging.getLogger("asyncio"), logging.getLogger("uvicorn.error")
"""Loggers of what is below the application, such as connections that cannot be accepted."""


@dataclass(frozen=True)
class Listening:
    """Where a server listens, and through what it is reached."""

    host: str
    port: int
    proxy: str | None = None

    @property
    def address(self) -> str:
        """Host and port, as a URL of this machine has them."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)
        return f"{f'[{host}]' if ':' in host else host}:{self.port}"


def listening(address: str, proxy: str | None, public_url: str | None) -> Listening:
    """Where to listen, from what the command line says.

    Raises:
        UsageError: the address is malformed, or others could reach the server without encryption.
    """
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    try:
        number, ip = int(port), ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        raise UsageError("--listen", f"{address!r} is not IP:PORT", "give it such as 127.0.0.1:8080") from None
    if not 0 <= number <= 65535:
        raise UsageError("--listen", f"has the port {number}", "give one up to 65535, or 0 for any that is free")
    if proxy is None:
        if not ip.is_loopback:
            what = f"{host} can be reached from other machines, and what is said there would not be encrypted"
            raise UsageError("--listen", what, "put a proxy with HTTPS before it, and name it: --behind-proxy IP")
        return Listening(str(ip), number)
    try:
        peer = str(ipaddress.ip_address(proxy))
    except ValueError:
        raise UsageError("--behind-proxy", f"{proxy!r} is not an IP address", "give that of the proxy") from None
    if public_url is None:
        remedy = 'add `url = "https://..."` to [server] in kernelmark.toml'
        raise UsageError("--behind-proxy", "needs the address at which the proxy is reached", remedy)
    return Listening(str(ip), number, peer)


def serve(project: Project, place: Listening, *, grading: bool, lost: bool = False) -> None:
    """Serve a project until a signal ends it.

    Args:
        grading: whether to start a worker for this machine's devices.
        lost: whether to let an organizer in whose token is lost.

    Raises:
        UsageError: it cannot be served so.
    """
    with ExitStack() as stack:
        own = stack.enter_context(served(project))
        if (written := hide_archive_from_git(project)) is not None:
            say(f"wrote {visible(str(written))}: git must not publish the sources before problems have closed")
        folder = own.path
        listener = stack.enter_context(_bound(place))
        place = Listening(place.host, listener.getsockname()[1], place.proxy)
        url = str(project.settings.server.url) if place.proxy else f"http://{place.address}"
        own.announce(url)
        stack.enter_context(_logging(folder / LOG))
        files = _more_files()
        migrations.upgrade(folder / DATABASE)
        database = Database(folder / DATABASE)
        stack.callback(database.close)
        service = Service(project, database, url=url, local=place.address, proxy=place.proxy)
        sweeper, recorder = Sweeper(service), Recorder(service)
        sweeper.prepare()
        stack.callback(recorder.close)
        recorder.start()
        stack.callback(sweeper.close)
        sweeper.start()
        server = _Server(service, create_app(service, recorder), files)
        _say_where(service, lost)
        _say_teams(service)
        if grading:
            stack.enter_context(LocalWorker(service))
        server.run([listener])
        say("ending: what was graded is recorded first")


class _BoundedProtocol(H11Protocol):
    """Ends where no request begins, and at once where so many are open that files would run out."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        if self.limit_concurrency is not None and len(self.connections) > self.limit_concurrency * 5 // 4:
            transport.abort()
        else:
            self.loop.call_later(_FIRST_S, self._end_without_request)

    def _end_without_request(self) -> None:
        if self.cycle is None:
            self.transport.abort()


class _Server(uvicorn.Server):
    """Ends as its signals say, and wakes those who wait first, so that they are answered."""

    def __init__(self, service: Service, app: object, files: int) -> None:
        self._service = service
        super().__init__(
            uvicorn.Config(
                app,  # type: ignore[arg-type]  # any ASGI application
                http=_BoundedProtocol,
                loop="asyncio",
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,  # the defence reads them, from the one proxy
                timeout_keep_alive=_KEEP_ALIVE_S,
                timeout_graceful_shutdown=_DRAIN_S,
                limit_concurrency=files // 2,  # connections; those beyond it are answered 503
                backlog=max(1, min(files // 32, 64)),  # asyncio accepts as many before it counts them
            )
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Called by uvicorn, whose `backlog` is too short for connections that the kernel keeps."""
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(_WAITING)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Called by uvicorn at SIGTERM and Ctrl-C."""
        self.force_exit = self.should_exit
        self.should_exit = True
        self._service.changes.close()


def _more_files() -> int:
    """Let this process have as many open files as it may, up to 65,536: each connection is one. Returns how many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(hard, _FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted


def _say_where(service: Service, lost: bool) -> None:
    """Say where it serves, and while there is no organizer, how to become it."""
    now_ns = service.clock.now_ns()
    say(f"serving {service.project.root} at {service.url} (end with Ctrl-C)")
    secret = service.database.write(lambda connection: invitations.first(connection, now_ns, lost=lost)).result()
    if secret is not None:
        who = "an organizer whose token is lost signs in again" if lost else "there is no organizer yet: become it"
        say(f"{who} within a day, with")
        say(f"  kernelmark login '{service.url}/join#{secret}'")


def _say_teams(service: Service) -> None:
    """Warn where the team of an account is not that of `[teams]`, which local commands rank by."""
    with service.database.read() as connection:
        found = connection.execute(select(accounts.c.name, accounts.c.team)).all()
    for name, team in found:
        named = service.project.settings.teams.of(name)
        if named is not None and named.name != team:
            there = f"in {team}" if team else "in no team"
            remedy = f"run `kernelmark accounts change {name} --team {named.name}`, or correct [teams]"
            warn(f"kernelmark.toml has {name} in {named.name}, and the account is {there}, which counts here: {remedy}")


@contextmanager
def _bound(place: Listening) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
    # Only of a socket that names its protocol does asyncio switch off Nagle's algorithm, which delays answers by 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    with listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((place.host, place.port))
        except OSError as error:
            what = f"{place.address} cannot be used ({error.strerror})"
            raise UsageError("--listen", what, "name another") from error
        listener.listen(_WAITING)
        yield listener


@contextmanager
def _logging(file: Path) -> Iterator[None]:
    """Write what happens to a file, as lines of JSON that are kept for 14 days; and warnings to stderr, too."""
    lines = _LogFile(file, when="midnight", utc=True, backupCount=_LOG_DAYS)
    lines.setFormatter(_Json())
    shown = logging.StreamHandler()
    shown.setLevel(logging.WARNING)
    shown.setFormatter(_OneLine())
    shown.addFilter(lambda record: not record.getMessage().startswith(_CLIENTS_FAULTS))
    log, before = logging.getLogger("kernelmark"), access.propagate
    log.addHandler(lines)
    log.addHandler(shown)
    seldom = {others: _Seldom() for others in _OTHERS}
    for others, once_a_minute in seldom.items():
        others.addHandler(lines)
        others.addHandler(shown)
        others.addFilter(once_a_minute)
    access.addHandler(lines)
    access.propagate, access.level = False, logging.INFO
    try:
        yield
    finally:
        for handler, logger in ((lines, log), (shown, log), (lines, access)):
            logger.removeHandler(handler)
        for others, once_a_minute in seldom.items():
            others.removeHandler(lines)
            others.removeHandler(shown)
            others.removeFilter(once_a_minute)
        access.propagate, access.level = before, logging.NOTSET
        with suppress(OSError):  # the disk is full
            lines.close()


class _LogFile(logging.handlers.TimedRotatingFileHandler):
    """Drops lines while the disk is full, instead of writing a traceback for each to stderr."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  # the library's name
        if not isinstance(sys.exc_info()[1], OSError):
            super().handleError(record)


class _Seldom(logging.Filter):
    """Lets the same words pass once a minute: who opens many connections must not fill the log."""

    def __init__(self) -> None:
        super().__init__()
        self._words, self._at_s = ("", ""), 0.0

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        words, now_s = (str(record.msg).partition("\n")[0], repr(error)), time.monotonic()
        if words == self._words and now_s - self._at_s < _SELDOM_S:
            return False
        self._words, self._at_s = words, now_s
        return True


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        if record.name == access.name:
            return record.getMessage()
        line: dict[str, object] = {
            "at_ns": round(record.created * 1e9),
            "level": record.levelname,
            "what": record.getMessage(),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)


class _OneLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        error = record.exc_info[1] if record.exc_info else None
        why = f" ({type(error).__name__}: {error}; the log has the traceback)" if error else ""
        text = record.getMessage() + why
        return " ".join(ascii(text)[1:-1].split()) if not text.isprintable() else text
