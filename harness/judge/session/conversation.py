"""The judge's side of one conversation with a runner: commands, replies, deadlines, and every way this can end.

One thread waits on the socket, the runner's output and the clock. A failure before the submission was sent is the
harness's (`SandboxError`); after that it is the submission's (`SubmissionFault`, which the grading turns into an
outcome). Trusted; nothing that arrives is evaluated. This module imports no torch, so that the sandbox can start while
the judge imports it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import select
import selectors
import shutil
import signal
import socket
import struct
import threading
import time
from collections.abc import Collection, Sequence
from typing import NoReturn, Self, TypeVar

from harness.device import DEVICES
from harness.errors import SandboxError
from harness.judge.session import folder as session_folder
from harness.judge.session.build_request import BuildRequest
from harness.judge.session.fault import SubmissionFault
from harness.judge.session.launching import Mode, launch_of
from harness.judge.session.memory_file import memory_file
from harness.judge.session.output import PrintedOutput
from harness.judge.session.time_limit import TimeLimit
from harness.problem import Limits
from harness.sandbox import CLOSE_S, Provider, Role, Sandbox, Watcher
from harness.sandbox.ending import end
from harness.verdict import DeviceKind, Outcome
from harness.wire import checks, commands, frame, protocol, replies

R = TypeVar("R", bound=replies.Reply)

_START_S = 120.0  # torch's import on a busy machine; never charged to the submission
_POLL_S = 0.05
_BATCH_S = 0.1  # five times what most batches take
_DEATH_S = 3.0  # allowed from the end of the connection to the end of the process
_log = logging.getLogger("kernelmark")


class Session:
    """One sandbox, used once. Starting is split in two so that the sandbox boots while the caller does other work."""

    def __init__(self, device: DeviceKind, limits: Limits, role: Role) -> None:
        self._limits, self._device, self._role = limits, DEVICES[device], role
        self._has_submission = self._up = self._watched = False
        self._closing = threading.Lock()
        self._folder, self._lock = session_folder.make()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket: socket.socket | None = None
        self._runner = -1  # a pidfd
        self._sandbox: Sandbox | None = None
        self.output = PrintedOutput(limits.output_bytes)
        self.hello = replies.Hello(protocol=0, python="")
        self.ready = replies.Ready(torch="", triton="")
        self.interpreted = False
        """Whether Triton's interpreter has run a kernel of the submission. The submission can forge this."""

    @classmethod
    def start(
        cls,
        provider: Provider,
        device: DeviceKind,
        limits: Limits,
        *,
        watcher: Watcher | None = None,
        role: Role = "runner",
        modes: Collection[Mode] = (),
    ) -> Self:
        """Launch a sandbox; `handshake` waits until it is up.

        Args:
            watcher: a tool under which the runner is started.
            role: which program runs in the sandbox.
            modes: what it will do.

        Raises:
            SandboxError: it could not be launched; nothing of it remains.
        """
        try:
            session = cls(device, limits, role)
            try:
                session._watched = watcher is not None
                path = session_folder.listen(session._listener, session._folder)
                session._sandbox = provider.launch(launch_of(path, session._device, limits, role, watcher, modes))
            except BaseException:
                session.close()
                raise
        except OSError as error:
            raise SandboxError(f"no sandbox can be made ({error})", "run `kernelmark doctor`") from error
        return session

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the runner and everything that it started, and remove the session's files. Idempotent.

        Another thread may call this; a second caller waits for the first. This never invalidates a verdict: anything
        that remains of the sandbox only gives a warning.
        """
        with self._closing, contextlib.ExitStack() as stack:
            sandbox, self._sandbox = self._sandbox, None
            lock, self._lock = self._lock, -1
            runner, self._runner = self._runner, -1
            if lock >= 0:
                stack.callback(os.close, lock)
            stack.callback(shutil.rmtree, self._folder, ignore_errors=True)
            stack.callback(self.output.close)
            if sandbox is not None:
                stack.callback(end, sandbox)
            if self._socket is not None:
                stack.callback(self._socket.close)
            if runner >= 0:
                stack.callback(os.close, runner)
            stack.callback(self._listener.close)

    def cpu_ns(self) -> int | None:
        """The CPU time of its sandbox, as `Sandbox.cpu_ns`."""
        return self._sandbox.cpu_ns() if self._sandbox is not None else None

    def reconnect(self, seconds: float) -> replies.Profiled:
        """Close the connection to a watched runner, wait until it and the tool have ended, and receive an offer of
        files.

        Raises:
            SubmissionFault: they did not end in that time, or something other than an offer arrived.
        """
        assert self._socket is not None
        self._socket.close()
        runner, self._socket, self._runner = self._runner, None, -1
        if runner >= 0:
            os.close(runner)
        doing, limit = "waiting for the tool", TimeLimit(seconds)
        try:
            with limit.running() as deadline:
                self._accept(deadline)
                token, offer = frame.decode(self._receive(deadline, doing), replies.REPLIES)
        except checks.WireError as error:
            raise self._fault(Outcome.REJECTED, f"{error}, while {doing}") from None
        except TimeoutError:
            raise self._late(limit, doing) from None
        if not isinstance(offer, replies.Profiled) or token != 0:
            raise self._fault(Outcome.REJECTED, f"{type(offer).__name__} came while {doing}")
        return offer

    def connect(self, seconds: float = _START_S) -> tuple[Sandbox, socket.socket]:
        """Wait until the program in the sandbox connects; for programs that speak another protocol than a runner's.

        Raises:
            SandboxError: it did not start; the message contains what it printed.
        """
        assert self._sandbox is not None
        limit = TimeLimit(seconds)
        try:
            with limit.running() as deadline:
                return self._sandbox, self._accept(deadline)
        except TimeoutError:
            raise self._late(limit, "starting") from None

    def handshake(self) -> None:
        """Wait until the runner has connected and its torch and device are up; idempotent.

        Raises:
            SandboxError: it did not start; the message contains what it printed.
        """
        if self._up:
            return
        limit = TimeLimit(_START_S)
        try:
            with limit.running() as deadline:
                self._accept(deadline)
                token, hello = frame.decode(self._receive(deadline, "starting"), replies.REPLIES)
        except checks.WireError:
            self._died("starting")
        except TimeoutError:
            raise self._late(limit, "starting") from None
        if self._watched and isinstance(hello, replies.Profiled):
            raise self._fault(Outcome.RUNTIME_ERROR, "the tool ended before it had started the runner")
        if not isinstance(hello, replies.Hello) or token != 0 or hello.protocol != protocol.PROTOCOL:
            raise SandboxError("the runner speaks another protocol", "use the runner of this checkout")
        self.hello = hello
        with self.output.write_end() as descriptor:
            limit = TimeLimit(_START_S)
            self.ready = self.ask(
                commands.Welcome(), replies.Ready, descriptors=[descriptor], limit=limit, doing="starting"
            )
        self._up = True

    def _accept(self, deadline: float) -> socket.socket:
        self._listener.settimeout(_POLL_S)
        while self._socket is None:
            try:
                self._socket, _ = self._listener.accept()
            except TimeoutError:
                self._look_after(deadline, "starting")
            except OSError as error:
                raise self._fault(Outcome.RUNTIME_ERROR, f"its connection was not accepted ({error})") from error
        if not self._watched:  # else a collector will connect after the runner
            self._listener.close()
        pid, _, _ = struct.unpack("3i", self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        with contextlib.suppress(OSError):  # it has ended, or its process id is not valid in this namespace
            self._runner = os.pidfd_open(pid)
        return self._socket

    def build(self, request: BuildRequest, seconds: float) -> replies.Built:
        """Send the submission and its extra files, and let the runner build it.

        From then on every failure of the runner is the submission's.

        Raises:
            SubmissionFault: the submission could not be built.
            SandboxError: it could not be sent.
        """
        limit = TimeLimit(seconds)
        if request.objects:
            with memory_file(request.objects) as descriptor:
                self.ask(commands.Unpack(), replies.Done, descriptors=[descriptor], limit=limit, doing="building")
        for name, content in request.extra_files.items():
            with memory_file(content) as descriptor:
                self.ask(commands.Place(name), replies.Done, descriptors=[descriptor], limit=limit, doing="building")
        with memory_file(request.source) as descriptor:
            return self.ask(request.build, replies.Built, descriptors=[descriptor], limit=limit, doing="building")

    def ask(
        self,
        command: commands.Command,
        expect: type[R],
        *,
        limit: TimeLimit,
        doing: str,
        descriptors: Sequence[int] = (),
    ) -> R:
        """Send one command and wait for its reply, both within the rest of the limit.

        If no time is left, nothing is sent.

        Raises:
            SubmissionFault: anything but the expected reply came, and the submission was in the sandbox.
            SandboxError: the same before the submission was sent, or a launcher failed by itself.
        """
        try:
            with limit.running() as deadline:
                reply = self._exchange(command, descriptors, deadline, doing)
        except frame.Closed:
            self._died(doing)
        except checks.WireError as error:
            raise self._fault(Outcome.REJECTED, f"the runner broke the protocol while {doing}: {error}") from None
        except TimeoutError:
            raise self._late(limit, doing) from None
        if isinstance(reply, replies.Built | replies.Called):
            self.interpreted = reply.interpreted
        if isinstance(reply, expect):
            return reply
        if isinstance(reply, replies.Failed):
            # If the kernel killed a compiler for lack of memory, the runner only knows that the compiler failed.
            self._look_for_breach(doing)
            outcome, fatal = Outcome(reply.outcome), reply.fatal
            if outcome is Outcome.UNSUPPORTED and not self._device.on_host:
                text = f"reported that it cannot run without a GPU, although it has one, while {doing}"
                raise self._fault(Outcome.REJECTED, text)
            raise self._fault(outcome, reply.message, reply.traceback, survives=not fatal, memory_fault=fatal)
        if isinstance(reply, replies.Broken) and self._role == "launcher":
            _log.debug("%s", reply.traceback)
            raise SandboxError(f"the launcher failed while {doing}: {checks.printable(reply.message)}", "report this")
        raise self._fault(Outcome.REJECTED, f"the runner answered {type(reply).__name__} while {doing}")

    def _exchange(
        self, command: commands.Command, descriptors: Sequence[int], deadline: float, doing: str
    ) -> replies.Reply:
        """Send a command and receive its reply, both before the deadline.

        Raises:
            WireError: the runner is gone, or broke the protocol.
            TimeoutError: the deadline has passed.
        """
        assert self._socket is not None
        left_s = deadline - time.monotonic()
        if left_s <= 0:  # a timeout of 0 would make the socket non-blocking
            raise TimeoutError
        # A runner could peek at its commands, answer them, and leave them in the socket until it is full.
        if frame.unread_bytes(self._socket):
            raise checks.WireError("it answered a command that it had not received")
        token = secrets.randbits(63)
        self._socket.settimeout(left_s)
        frame.send(self._socket, token, command, descriptors)
        # A build sandbox's archive is the submission's work, too.
        self._has_submission |= isinstance(command, commands.Unpack | commands.Build | commands.Load)
        if isinstance(command, commands.Round) and not self._device.on_host:
            # Not on a CPU, where waiting would take a core from the calls.
            frame.await_readable(self._socket, min(left_s, _BATCH_S))
        echoed, reply = frame.decode(self._receive(deadline, doing), replies.REPLIES)
        if echoed != token:
            raise checks.WireError("a frame that answers no question")
        return reply  # type: ignore[no-any-return]  # decoded as one of REPLIES

    def _receive(self, deadline: float, doing: str) -> bytes:
        """Receive the next frame, and drain the runner's output meanwhile.

        Raises:
            WireError: the runner is gone, or broke the protocol.
            TimeoutError: the deadline has passed.
        """
        assert self._socket is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            if not self.output.ended:
                selector.register(self.output, selectors.EVENT_READ)
            while True:
                left_s = max(0.0, deadline - time.monotonic())
                ready = [key.fileobj for key, _ in selector.select(min(_POLL_S, left_s))]
                if self.output in ready:
                    self.output.drain()
                    if self.output.ended:
                        selector.unregister(self.output)
                if self._socket in ready:
                    return frame.receive_frame(self._socket)
                self._look_after(deadline, doing)

    def _look_after(self, deadline: float, doing: str) -> None:
        """Check limits and the deadline; called whenever nothing has arrived for a moment.

        Raises:
            TimeoutError: the deadline has passed.
        """
        assert self._sandbox is not None
        if self.output.over_limit:
            limit = self._limits.output_bytes
            raise self._fault(Outcome.RUNTIME_ERROR, f"printed more than the {limit:,} bytes allowed, while {doing}")
        self._look_for_breach(doing)
        if self._socket is None and self._sandbox.ended() is not None:
            self._died(doing)
        if time.monotonic() > deadline:
            raise TimeoutError

    def _look_for_breach(self, doing: str) -> None:
        assert self._sandbox is not None
        if breach := self._sandbox.breach():
            outcome = Outcome.MEMORY_LIMIT if breach.kind == "memory" else Outcome.RUNTIME_ERROR
            raise self._fault(outcome, f"{breach.detail}, while {doing}")

    def _late(self, limit: TimeLimit, doing: str) -> Exception:
        self._look_for_breach(doing)  # a breached memory limit may be why it is late
        return self._fault(Outcome.TIMEOUT, f"gave no answer within {limit.seconds:.3g} s, while {doing}{limit.note}")

    def _died(self, doing: str) -> NoReturn:
        """The connection is closed: find out how the process ended, and raise."""
        assert self._sandbox is not None
        if self._watched:  # the sandbox lives on with the tool and the collector
            raise self._fault(Outcome.RUNTIME_ERROR, f"the process ended, while {doing}")
        closed = time.monotonic()
        while (ended := self._sandbox.ended()) is None:
            self._look_for_breach(doing)
            # A sandbox ends with its last process: if the runner is dead, the kernel is still ending the others.
            patience_s = CLOSE_S if self._runner_is_dead() else _DEATH_S
            if time.monotonic() - closed > patience_s:
                break
            time.sleep(0.01)
        self.output.drain()
        if ended is None:
            raise self._fault(Outcome.REJECTED, f"the runner closed its connection but is still alive, while {doing}")
        if ended.out_of_memory:
            limit = self._limits.memory_bytes
            raise self._fault(
                Outcome.MEMORY_LIMIT, f"used more than the {limit:,} bytes of memory allowed, while {doing}"
            )
        wild = ended.signal in (signal.SIGSEGV, signal.SIGBUS)
        raise self._fault(Outcome.RUNTIME_ERROR, f"{ended.description}, while {doing}", memory_fault=wild)

    def _runner_is_dead(self) -> bool:
        return self._runner >= 0 and bool(select.select([self._runner], [], [], 0)[0])

    def _fault(self, outcome: Outcome, message: str, traceback: str = "", **nature: bool) -> Exception:
        if self._has_submission:
            return SubmissionFault(outcome, message, traceback, **nature)
        log = checks.printable(self._sandbox.startup_log().strip()[-300:]) if self._sandbox else ""
        last = f" (it printed: {log})" if log else ""
        what = f"the {self._role} failed before it was asked anything: {message}{last}"
        return SandboxError(what, "run `kernelmark doctor`")
