"""Starts the sessions of one grading in parallel, and ends them together. Trusted."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait

from harness.judge.session.conversation import Session
from harness.judge.session.launching import Mode
from harness.problem import Limits
from harness.sandbox import Provider, Role
from harness.verdict import DeviceKind


class Sessions:
    """A runner for the submission and one for each baseline; for replayed calls, also a launcher for each runner.

    They start at the first call of `runner` or `start_all`: first the runners, which have to import torch, then the
    launchers. Sessions that start `ahead` of their job take no device memory before `wake`.
    """

    def __init__(
        self,
        provider: Provider,
        device: DeviceKind,
        limits: Limits,
        *,
        baselines: int,
        replayed: bool,
        triton: bool = False,
        ahead: bool = False,
    ) -> None:
        """`triton`: whether the submission seems to use Triton."""
        self._ahead, self._image = ahead, provider.image_digest() if ahead else None
        self._provider, self._device, self._limits = provider, device, limits
        self._baselines, self._replayed, self._triton = baselines, replayed, triton
        self._pool = ThreadPoolExecutor(2 * (baselines + 1))
        self._runner: Future[Session] | None = None
        self._runners: list[Future[Session]] = []
        self._launchers: list[Future[Session]] = []

    def matches(self, other: Sessions) -> bool:
        """Whether these sessions, which started ahead, have the configuration and the image of the others."""
        return self._configuration == other._configuration and self._image == other._provider.image_digest()

    @property
    def _configuration(self) -> tuple[object, ...]:
        return self._provider.name, self._device, self._limits, self._baselines, self._replayed

    def start_all(self) -> None:
        """Begin to start the sessions. Idempotent."""
        if self._runner is None:
            modes: list[Mode] = ["records", "one_queue"] if self._replayed else []
            self._runner = self._start("runner", [*modes, "triton"] if self._triton else modes)
            self._runners = [self._start("runner", modes) for _ in range(self._baselines)]
            runners = (self._runner, *self._runners)
            self._launchers = [self._start("launcher", ["one_queue"], runners) for _ in self._replayed * runners]

    def start_launcher(self) -> Future[Session]:
        """Begin to start another launcher, with as many hardware queues as is usual."""
        started = self._start("launcher")
        self._launchers.append(started)
        return started

    def wake(self) -> None:
        """Let sessions that started ahead take the device, since their job has arrived."""
        assert self._runner is not None
        self._ahead = False
        self._runner = self._pool.submit(_handshaken, self._runner)
        self._runners = [self._pool.submit(_handshaken, runner) for runner in self._runners]
        self._launchers = [self._pool.submit(_handshaken, launcher) for launcher in self._launchers]

    def runner(self) -> Session:
        """The submission's runner, as soon as it is launched. The others may still be starting.

        Raises:
            SandboxError: it did not start.
        """
        self.start_all()
        assert self._runner is not None
        return self._runner.result()

    def others(self) -> tuple[list[Session], list[Session]]:
        """The runners of the baselines, and the launchers, the submission's first. Waits until they are launched.

        Raises:
            SandboxError: one did not start.
        """
        return [runner.result() for runner in self._runners], [launcher.result() for launcher in self._launchers]

    def wait(self) -> None:
        """Wait until all sessions are up.

        Raises:
            SandboxError: one did not start.
        """
        for session in (self.runner(), *itertools.chain.from_iterable(self.others())):
            session.handshake()

    def close(self) -> None:
        """End all sandboxes in parallel. Idempotent."""
        self._pool.shutdown()
        started = [session for session in (self._runner, *self._runners, *self._launchers) if session is not None]
        up = [session.result() for session in started if session.exception() is None]
        with ThreadPoolExecutor(max(1, len(up))) as pool:  # a local one, since another thread may be closing, too
            for _ in pool.map(Session.close, up):
                pass

    def _start(self, role: Role, modes: Sequence[Mode] = (), after: Sequence[Future[Session]] = ()) -> Future[Session]:
        every: list[Mode] = [*modes, "ahead"] if self._ahead else [*modes]
        return self._pool.submit(self._started, role, every, after)

    def _started(self, role: Role, modes: Sequence[Mode], after: Sequence[Future[Session]]) -> Session:
        wait(after)
        return Session.start(self._provider, self._device, self._limits, role=role, modes=modes)


def _handshaken(started: Future[Session]) -> Session:
    session = started.result()
    try:
        session.handshake()
    except BaseException:
        session.close()
        raise
    return session
