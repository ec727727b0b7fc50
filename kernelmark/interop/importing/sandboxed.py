"""Asks the importer about one problem, in a sandbox of its own that is used once. Trusted.

The conversation is one packet with two descriptors: the question, to be read, and a pipe for the answer, which is read
here until it ends, a limit is exceeded or the time is up.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import socket
import time
from collections.abc import Iterator

from harness.device import DEVICES
from harness.errors import SandboxError
from harness.judge.session import folder as session_folder
from harness.judge.session.end import end
from harness.judge.session.memory_file import memory_file
from harness.kinds import DeviceKind
from harness.sandbox import Launch, Provider, Sandbox
from kernelmark.interop.importing.answer import MAX_BYTES, line
from kernelmark.interop.importing.checkout import ForeignProblem, NotImportedError

LIMIT_S = 300.0  # some draw ill-conditioned matrices for minutes
_START_S = 120.0
_POLL_S = 0.05
_MEMORY_BYTES = 16 << 30
_DISK_BYTES = 256 << 20
_PROCESSES = 256


def ask(provider: Provider, device: DeviceKind, problem: ForeignProblem, limit_s: float = LIMIT_S) -> bytes:
    """The answer of the importer.

    Raises:
        NotImportedError: the foreign code ended its process, used too much, or did not end.
        SandboxError: the sandbox did not start.
    """
    with _started(provider, device) as (sandbox, listener):
        connection = _accepted(sandbox, listener)
        reader, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        os.set_blocking(writer, True)
        try:
            with connection, memory_file(_question(problem, device)) as question:
                socket.send_fds(connection, [b"?"], [question, writer])
        finally:
            os.close(writer)
        try:
            return _read(sandbox, reader, limit_s)
        finally:
            os.close(reader)


def _question(problem: ForeignProblem, device: DeviceKind) -> bytes:
    """A GPU is used as it is by code that names one; the sizes of a KernelBench problem need none."""
    question = {
        "form": problem.form,
        "files": {file.name: file.content.decode("utf-8", "replace") for file in problem.files},
        "cases": [dict(case) for case in problem.cases],
        "devices": ["cuda"] if device == "cuda" and problem.form == "gpu-mode" else ["meta", "cpu"],
    }
    return json.dumps(question).encode()


@contextlib.contextmanager
def _started(provider: Provider, device: DeviceKind) -> Iterator[tuple[Sandbox, socket.socket]]:
    """A sandbox with the importer, and the socket to which it will connect."""
    judged = DEVICES[device]
    with contextlib.ExitStack() as stack:
        folder, lock = session_folder.make()
        stack.callback(os.close, lock)
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        listener = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
        launch = Launch(
            socket=session_folder.listen(listener, folder),
            device=device,
            gpu_index=judged.index(),
            memory_bytes=_MEMORY_BYTES,
            processes=_PROCESSES,
            disk_bytes=_DISK_BYTES,
            environment={
                "KERNELMARK_DEVICE": device,
                "OPENBLAS_NUM_THREADS": str(_PROCESSES // 4),
                **judged.runner_environment,
            },
            role="importer",
        )
        sandbox = provider.launch(launch)
        stack.callback(end, sandbox)
        yield sandbox, listener


def _accepted(sandbox: Sandbox, listener: socket.socket) -> socket.socket:
    deadline = time.monotonic() + _START_S
    listener.settimeout(_POLL_S)
    while time.monotonic() < deadline:
        try:
            return listener.accept()[0]
        except TimeoutError:
            if sandbox.ended() is not None:
                break
    printed = line(sandbox.startup_log().strip()[-300:])
    raise SandboxError(f"the importer did not start (it printed: {printed or 'nothing'})", "run `kernelmark doctor`")


def _read(sandbox: Sandbox, reader: int, limit_s: float) -> bytes:
    """Everything that comes before the pipe ends."""
    deadline, answer = time.monotonic() + limit_s, bytearray()
    while True:
        if select.select([reader], [], [], _POLL_S)[0]:
            chunk = os.read(reader, 1 << 16)
            answer += chunk
            if not chunk:
                break
            if len(answer) > MAX_BYTES:
                raise NotImportedError(f"the description of its sizes has more than {MAX_BYTES >> 20} MiB")
        if breach := sandbox.breach():
            raise NotImportedError(f"it went beyond the {breach.kind} limit ({breach.detail})")
        if time.monotonic() > deadline:
            raise NotImportedError(f"it did not end within {limit_s:.3g} s")
    if not answer:
        raise NotImportedError(_how_it_ended(sandbox))
    return bytes(answer)


def _how_it_ended(sandbox: Sandbox) -> str:
    deadline = time.monotonic() + 3.0
    while (ended := sandbox.ended()) is None and time.monotonic() < deadline:
        time.sleep(0.01)
    if breach := sandbox.breach():
        return f"it went beyond the {breach.kind} limit ({breach.detail})"
    if ended is None:
        return "it closed its connection"
    return f"it needs more than {_MEMORY_BYTES >> 30} GiB of memory" if ended.out_of_memory else ended.description
