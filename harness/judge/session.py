"""The judge's side of one conversation with a runner: a command, a deadline, a reply, and every way that this can end.

A single thread waits on the socket, the runner's output and the clock. What goes wrong before the submission has been
handed over is our fault (`SandboxError`); what goes wrong after is the submission's (`SubmissionFault`, a value in
disguise that the grading turns into an outcome). Trusted; nothing that arrives is evaluated. No torch is imported, so
that the sandbox can start while the judge imports it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import selectors
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import NoReturn, Self, TypeVar

from harness import wire
from harness.errors import SandboxError
from harness.judge.output import Output
from harness.problem import Limits
from harness.sandbox import Exit, Launch, Provider, Sandbox, Watcher, gpu
from harness.verdict import DeviceKind, Outcome

R = TypeVar("R", bound=wire.Reply)

_START_S = 120.0  # torch's import on a busy machine; ours to wait for, never held against the submission
_POLL_S = 0.05
_BATCH_S = 0.1  # most batches last a fifth of this
_PREFIX = "kernelmark-session-"
_FRESH_S = 10.0  # a folder is locked a moment after it was made
# One allocation a tensor, so that a watcher sees where each of them ends.
_WATCHED = {"KERNELMARK_WATCHED": "1", "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
_DEATH_S = 3.0  # from the end of the connection to the end of the process


class SubmissionFault(Exception):
    """The submission did something that decides its outcome.

    `survives`: the runner can be asked again. `memory_fault`: it touched memory that it may not touch.
    """

    def __init__(
        self, outcome: Outcome, message: str, traceback: str = "", *, survives: bool = False, memory_fault: bool = False
    ) -> None:
        super().__init__(message)
        self.outcome, self.message, self.traceback = outcome, message, traceback
        self.survives, self.memory_fault = survives, memory_fault


class Session:
    """One sandbox, used once. Starting is split in two so that the sandbox boots while the caller does other work."""

    def __init__(
        self, provider: Provider, device: DeviceKind, limits: Limits, *, watcher: Watcher | None = None
    ) -> None:
        self._limits, self._device = limits, device
        self._handed_over = False
        self._folder, self._lock = _folder()
        self._socket: socket.socket | None = None
        self._sandbox: Sandbox | None = None
        self.output = Output(limits.output_bytes)
        self.hello = wire.Hello(protocol=0, python="")
        self.ready = wire.Ready(torch="", triton="")
        try:
            self._listener = self._listen()
            self._sandbox = provider.launch(
                Launch(
                    socket=self._folder / "socket",
                    device=device,
                    gpu_index=gpu.index_in_use() if device == "cuda" else 0,
                    memory_bytes=limits.memory_bytes,
                    processes=limits.processes,
                    disk_bytes=limits.disk_bytes,
                    environment={
                        "KERNELMARK_DEVICE": device,
                        # NumPy's starts a thread a core on import, and dies by SIGSEGV where it may not.
                        "OPENBLAS_NUM_THREADS": str(max(1, limits.processes // 4)),
                        **({"TRITON_INTERPRET": "1"} if device == "cpu" else {}),
                        **(_WATCHED if watcher else {}),
                    },
                    watcher=watcher,
                )
            )
        except BaseException:
            self.close()
            raise

    def _listen(self) -> socket.socket:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        path = self._folder / "socket"
        listener.bind(str(path))
        path.chmod(0o666)  # the runner's uid is not ours; the folder around it is private
        listener.listen(1)
        return listener

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the runner and everything that it started, and remove what the session made."""
        with contextlib.ExitStack() as stack:
            stack.callback(self._unlock)
            stack.callback(shutil.rmtree, self._folder, ignore_errors=True)
            stack.callback(self.output.close)
            if self._sandbox is not None:
                stack.callback(self._sandbox.close)
            if self._socket is not None:
                stack.callback(self._socket.close)
            if hasattr(self, "_listener"):
                stack.callback(self._listener.close)

    def finish(self, seconds: float) -> str:
        """Hang up, so that the runner ends by itself, at most `seconds`; returns what a watcher printed by then."""
        assert self._socket is not None
        assert self._sandbox is not None
        self._socket.close()
        deadline = time.monotonic() + seconds
        while self._sandbox.ended() is None and time.monotonic() < deadline:
            self.output.drain()
            self._sandbox.startup_log()  # read on, so that the watcher need not wait for room
            time.sleep(_POLL_S)
        return self._sandbox.startup_log()

    def _unlock(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def handshake(self) -> None:
        """Wait until the runner has connected and its torch and device are up.

        Raises:
            SandboxError: it did not come up; what it printed is in the message.
        """
        deadline = time.monotonic() + _START_S
        self._listener.settimeout(_POLL_S)
        while self._socket is None:
            try:
                self._socket, _ = self._listener.accept()
            except TimeoutError:
                self._look_after(deadline, "starting")
        self._listener.close()
        try:
            token, hello = wire.decode(self._receive(deadline, "starting"), wire.REPLIES)
        except wire.WireError:
            self._died("starting")
        if not isinstance(hello, wire.Hello) or token != 0 or hello.protocol != wire.PROTOCOL:
            raise SandboxError("the runner speaks another protocol", "use the runner of this checkout")
        self.hello = hello
        with self.output.write_end() as descriptor:
            self.ready = self.ask(
                wire.Welcome(), wire.Ready, descriptors=[descriptor], seconds=_START_S, doing="starting"
            )

    def hand_over(self, command: wire.Build, source: bytes, seconds: float) -> wire.Built:
        """Send the submission; from here on every failure of the runner is the submission's."""
        descriptor = os.memfd_create("source", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, source)
            self._handed_over = True
            return self.ask(command, wire.Built, descriptors=[descriptor], seconds=seconds, doing="building")
        finally:
            os.close(descriptor)

    def ask(
        self,
        command: wire.Command,
        expect: type[R],
        *,
        seconds: float,
        doing: str,
        descriptors: Sequence[int] = (),
    ) -> R:
        """Send one command and wait for its one reply, at most `seconds`.

        Raises:
            SubmissionFault: anything but the expected reply came of it, and the submission was in the sandbox.
            SandboxError: the same before the submission was handed over.
        """
        deadline = time.monotonic() + seconds
        token = secrets.randbits(63)
        assert self._socket is not None
        try:
            self._socket.settimeout(seconds)
            wire.send(self._socket, token, command, descriptors)
            if isinstance(command, wire.Round) and self._device == "cuda":
                # Not on a CPU, where it would take a core from the calls.
                wire.await_readable(self._socket, min(seconds, _BATCH_S))
            echoed, reply = wire.decode(self._receive(deadline, doing, seconds), wire.REPLIES)
            if echoed != token:
                raise wire.WireError("a frame that answers no question")
        except wire.Closed:
            self._died(doing)
        except wire.WireError as error:
            raise self._fault(Outcome.REJECTED, f"the runner broke the protocol while {doing}: {error}") from None
        except TimeoutError:
            raise self._late(seconds, doing) from None
        if isinstance(reply, expect):
            return reply
        if isinstance(reply, wire.Failed):
            outcome, fatal = Outcome(reply.outcome), reply.fatal
            raise self._fault(outcome, reply.message, reply.traceback, survives=not fatal, memory_fault=fatal)
        raise self._fault(Outcome.REJECTED, f"the runner answered {type(reply).__name__} while {doing}")

    def bind(
        self,
        commands: Sequence[wire.Declare | wire.Bind],
        descriptors: Sequence[int],
        *,
        seconds: float,
        doing: str,
    ) -> None:
        """Declare the tensors of a call, and bind them to a pair of arenas.

        Raises:
            SubmissionFault, SandboxError: as for `ask`.
        """
        for command in commands:
            attached = descriptors if isinstance(command, wire.Bind) else ()
            self.ask(command, wire.Done, seconds=seconds, doing=doing, descriptors=attached)

    def _receive(self, deadline: float, doing: str, seconds: float = _START_S) -> bytes:
        assert self._socket is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            if not self.output.ended:
                selector.register(self.output, selectors.EVENT_READ)
            while True:
                ready = [key.fileobj for key, _ in selector.select(_POLL_S)]
                if self.output in ready:
                    self.output.drain()
                    if self.output.ended:
                        selector.unregister(self.output)
                if self._socket in ready:
                    return wire.receive_frame(self._socket)
                self._look_after(deadline, doing, seconds)

    def _look_after(self, deadline: float, doing: str, seconds: float = _START_S) -> None:
        """What is checked each time that nothing has come for a moment."""
        assert self._sandbox is not None
        if self.output.over_limit:
            limit = self._limits.output_bytes
            raise self._fault(Outcome.RUNTIME_ERROR, f"printed more than the {limit:,} bytes allowed, while {doing}")
        if breach := self._sandbox.breach():
            outcome = Outcome.MEMORY_LIMIT if breach.kind == "memory" else Outcome.RUNTIME_ERROR
            raise self._fault(outcome, f"{breach.kind} limit: {breach.detail}, while {doing}")
        if self._socket is None and self._sandbox.ended() is not None:
            self._died(doing)
        if time.monotonic() > deadline:
            raise self._late(seconds, doing)

    def _late(self, seconds: float, doing: str) -> Exception:
        return self._fault(Outcome.TIMEOUT, f"gave no answer within {seconds:.3g} s, while {doing}")

    def _died(self, doing: str) -> NoReturn:
        """The connection is closed: find out how the process ended, and raise."""
        assert self._sandbox is not None
        patience = time.monotonic() + _DEATH_S
        while (ended := self._sandbox.ended()) is None and time.monotonic() < patience:
            time.sleep(0.01)
        self.output.drain()
        if ended is None:
            raise self._fault(Outcome.REJECTED, f"the runner closed its connection and lives on, while {doing}")
        if ended.out_of_memory:
            limit = self._limits.memory_bytes
            raise self._fault(
                Outcome.MEMORY_LIMIT, f"used more than the {limit:,} bytes of memory allowed, while {doing}"
            )
        wild = ended.signal in (signal.SIGSEGV, signal.SIGBUS)
        raise self._fault(Outcome.RUNTIME_ERROR, f"{_how(ended)}, while {doing}", memory_fault=wild)

    def _fault(self, outcome: Outcome, message: str, traceback: str = "", **nature: bool) -> Exception:
        if self._handed_over:
            return SubmissionFault(outcome, message, traceback, **nature)
        log = wire.printable(self._sandbox.startup_log().strip()[-300:]) if self._sandbox else ""
        last = f" (it printed: {log})" if log else ""
        return SandboxError(
            f"the runner failed before it had the submission: {message}{last}", "run `kernelmark doctor`"
        )


def _how(ended: Exit) -> str:
    number = ended.signal
    if number is None:
        return f"the process ended by itself (exit status {ended.code})"
    name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    explained = {
        "SIGSEGV": "the process was ended by SIGSEGV (it touched memory that it has no right to)",
        "SIGBUS": "the process was ended by SIGBUS (it touched memory that is not there)",
        "SIGFPE": "the process was ended by SIGFPE (an integer division by zero)",
        "SIGABRT": "the process was ended by SIGABRT (it aborted itself)",
    }
    return explained.get(name, f"the process was ended by {name}")


def _folder() -> tuple[Path, int]:
    """A private folder for one session, and the lock on it that lives as long as this process.

    What judges that were killed have left is removed first: a folder that nobody holds any more.
    """
    for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            lock = os.open(left, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if os.fstat(lock).st_uid == os.getuid() and time.time() - os.fstat(lock).st_mtime > _FRESH_S:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(left)
            finally:
                os.close(lock)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    return folder, lock
