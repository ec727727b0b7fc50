"""Builds submissions in separate sandboxes, before the grading waits for the device, and caches the results. Trusted.

Such a sandbox has no GPU, and ends before the first case runs. The only sizes that it learns are those of visible
cases, for which Triton's kernels are compiled. Its result is an archive, which the judge never unpacks: only runners of
the same submission do. A build folder that a runner has used is never kept, since it could contain something that the
runner learned, such as hidden sizes.
"""

from __future__ import annotations

import dataclasses
import hashlib
import logging
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from importlib import metadata
from pathlib import Path

from harness.device import DEVICES
from harness.errors import HarnessError
from harness.files.identity import length_prefixed_sha256
from harness.files.kept import Kept
from harness.files.outside import stamp
from harness.judge.session.build_request import BuildRequest
from harness.judge.session.conversation import Session
from harness.judge.session.documents import documents
from harness.judge.session.fault import SubmissionFault
from harness.judge.session.launching import Mode
from harness.judge.session.time_limit import TimeLimit
from harness.kinds import DeviceKind, isolates
from harness.languages import LANGUAGES
from harness.problem import Limits
from harness.sandbox import Provider, gpu, inside
from harness.submission import Submission
from harness.verdict import Outcome
from harness.wire import commands, frame, replies

_COMPILES = (b"cpp_extension", b"nvcc")  # words in Python files that compile something
_COMPILERS = {True: 1, False: 2}  # by whether the language is compiled; Python may run one for C++ and one for CUDA
AheadCommand = commands.Declare | commands.Ahead
CompilerTurn = Callable[[int], AbstractContextManager[object]]
"""Makes a context manager that is held while the given number of compilers runs."""
_FINAL = (Outcome.TIMEOUT, Outcome.MEMORY_LIMIT)
_log = logging.getLogger("kernelmark")


class Builds:
    """The builds of one grading. Another thread may close it, which ends a build that is running."""

    def __init__(self, provider: Provider, device: DeviceKind, limits: Limits, kept: Kept | None) -> None:
        self._provider, self._device, self._limits = provider, device, limits
        self._kept = kept if kept is not None and not provider.shows(kept.folder) else None
        self._done: dict[str, bytes | SubmissionFault] = {}
        self._session: Session | None = None
        self._closed = False

    def can_prebuild(self, submission: Submission) -> bool:
        """Whether a submission seems to compile something, and this can happen in a separate sandbox."""
        files = (submission.source, *dict(submission.beside).values())
        compiled = LANGUAGES[submission.language].compiler is not None
        compiles = compiled or any(mark in content for mark in _COMPILES for content in files)
        return compiles and self.are_isolated

    @property
    def are_isolated(self) -> bool:
        """Whether builds get separate sandboxes, which needs a kind of sandbox that isolates."""
        return isolates(self._provider.name)

    def build(self, request: BuildRequest, turn: CompilerTurn, ahead: Sequence[AheadCommand] = ()) -> None:
        """Build a submission, or use the result of an earlier build. If neither works, its runner builds it.

        Args:
            turn: its context manager is held while compilers run.
            ahead: commands that describe the calls whose Triton kernels are compiled, too.
        """
        key = self._key(request)
        calls = b"".join(frame.encode(0, command) for command in ahead)
        kept_as = hashlib.sha256(key.encode() + calls).hexdigest()
        found = self._kept.get(kept_as) if self._kept is not None else None
        if found is None:
            try:
                with turn(_COMPILERS[LANGUAGES[request.build.language].compiler is not None]):
                    found = self._build_archive(request, ahead)
            except SubmissionFault as fault:
                if fault.survives or fault.outcome in _FINAL:
                    self._done[key] = fault
                return
            except HarnessError as error:
                _log.debug("the separate build failed: %s", error)
                return
            if self._kept is not None:
                self._kept.put(kept_as, found)
        self._done[key] = found

    def with_objects(self, request: BuildRequest) -> BuildRequest:
        """The request with the result of its separate build, if there was one.

        Raises:
            SubmissionFault: that build failed, as a build by its runner would.
        """
        done = self._done.get(self._key(request), b"") if self._done else b""
        if isinstance(done, SubmissionFault):
            raise done
        return dataclasses.replace(request, objects=done)

    def close(self) -> None:
        """End a build that is running or about to begin."""
        self._closed = True
        if (session := self._session) is not None:
            session.close()

    def _build_archive(self, request: BuildRequest, ahead: Sequence[AheadCommand]) -> bytes:
        """Build in a new sandbox and return the archive of the result; empty if it is too large or cannot be fetched.

        Raises:
            SubmissionFault: the build failed; `survives` is true if a compiler refused the source.
            HarnessError: the harness failed.
        """
        limit = TimeLimit(self._limits.build_s)
        modes: list[Mode] = ["builds", *(("triton",) if ahead else ())]
        with Session.start(self._provider, self._device, self._limits, modes=modes) as session:
            self._session = session
            if self._closed:
                raise HarnessError("the grading was closed")
            session.handshake()
            try:
                session.build(request, limit.seconds)
            except SubmissionFault as fault:
                fault.printed = session.output.text()
                raise
            try:
                for command in ahead:
                    session.ask(command, replies.Done, limit=limit, doing="building")
                offer = session.ask(commands.Pack(), replies.Profiled, limit=limit, doing="packing")
                return dict(documents(session, offer, limit, "packing", [])).get("objects", b"")
            except SubmissionFault as fault:  # the build itself succeeded
                _log.debug("the result of the build could not be fetched: %s", fault.message)
                return b""

    def _key(self, request: BuildRequest) -> str:
        """A hash of everything that the result depends on: the submission, the device, the sandbox and the tools."""
        build = request.build
        parts: list[object] = [build.language, build.architecture, build.line_info, request.source]
        parts += [part for file in sorted(request.extra_files.items()) for part in file]
        parts += [
            self._device,
            DEVICES[self._device].properties(),
            self._provider.name,
            self._provider.image_digest(),
            *_tools(),
        ]
        return length_prefixed_sha256(*(part if isinstance(part, bytes) else str(part).encode() for part in parts))


def _tools() -> list[object]:
    """What identifies the processor (C++ is compiled for it), this machine's compilers, and the runner's files."""
    described = Path("/proc/cpuinfo").read_text().splitlines()
    tools: list[object] = [*sorted({line for line in described if line.startswith(("model name", "flags"))})]
    tools.append([metadata.version(package) for package in ("torch", "triton")])
    toolkit = gpu.toolkit()
    named = [sys.executable, shutil.which("g++"), shutil.which("ninja"), toolkit and toolkit / "bin" / "nvcc"]
    for path in [Path(name).resolve() for name in named if name]:
        tools.append((path, stamp(path)))
    files = [path for package in ("runner", "languages") for path in sorted((inside.HARNESS / package).glob("*.py"))]
    return [*tools, *(path.read_bytes() for path in files)]
