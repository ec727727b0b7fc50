"""The sessions of one grading: they start in threads, so that they boot side by side, and end together. Trusted."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait

from harness.judge.session.conversation import Session
from harness.problem import Limits
from harness.sandbox import Provider, Role
from harness.verdict import DeviceKind


class Sessions:
    """A runner for the submission and one for each baseline; for replayed calls, a launcher for each of them, too.

    All start when the submission's runner is first asked for, or with `start_all`: the launchers after the runners,
    which have torch to import. Those that start `ahead` of their job take no memory of the device before `wake`.
    """

    def __init__(
        self,
        provider: Provider,
        device: DeviceKind,
        limits: Limits,
        *,
        baselines: int,
        replayed: bool,
        ahead: bool = False,
    ) -> None:
        self._ahead, self._image = ahead, provider.image_digest() if ahead else None
        self._provider, self._device, self._limits = provider, device, limits
        self._baselines, self._replayed = baselines, replayed
        self._pool = ThreadPoolExecutor(2 * (baselines + 1))
        self._runner: Future[Session] | None = None
        self._runners: list[Future[Session]] = []
        self._launchers: list[Future[Session]] = []

    def are_as(self, other: Sessions) -> bool:
        """Whether these, which started ahead, are what the others would be: as many, of the same image and limits."""
        return self._kind == other._kind and self._image == other._provider.image_digest()

    @property
    def _kind(self) -> tuple[object, ...]:
        return self._provider.name, self._device, self._limits, self._baselines, self._replayed

    def start_all(self) -> None:
        """Begin to start them; does nothing if they have been."""
        if self._runner is None:
            self._runner = self._start("runner")
            self._runners = [self._start("runner") for _ in range(self._baselines)]
            runners = (self._runner, *self._runners)
            self._launchers = [self._start("launcher", after=runners) for _ in self._replayed * runners]

    def wake(self) -> None:
        """Let those that started ahead take the device, side by side: their job is here."""
        assert self._runner is not None
        self._runner = self._pool.submit(_up, self._runner)
        self._runners = [self._pool.submit(_up, runner) for runner in self._runners]
        self._launchers = [self._pool.submit(_up, launcher) for launcher in self._launchers]

    def runner(self) -> Session:
        """The submission's runner, as soon as it is launched; the others are still starting then.

        Raises:
            SandboxError: it did not start.
        """
        self.start_all()
        assert self._runner is not None
        return self._runner.result()

    def others(self) -> tuple[list[Session], list[Session]]:
        """The baselines' runners; and the launchers, the submission's first. Waits until they are launched.

        Raises:
            SandboxError: one did not start.
        """
        return [runner.result() for runner in self._runners], [launcher.result() for launcher in self._launchers]

    def wait(self) -> None:
        """Wait until all that has been started is up.

        Raises:
            SandboxError: one did not start.
        """
        for session in (self.runner(), *itertools.chain.from_iterable(self.others())):
            session.handshake()

    def close(self) -> None:
        """End every sandbox, side by side. Idempotent."""
        self._pool.shutdown()
        started = [begun for begun in (self._runner, *self._runners, *self._launchers) if begun is not None]
        up = [begun.result() for begun in started if begun.exception() is None]
        with ThreadPoolExecutor(max(1, len(up))) as pool:  # its own: another thread may be closing, too
            for _ in pool.map(Session.close, up):
                pass

    def _start(self, role: Role, after: Sequence[Future[Session]] = ()) -> Future[Session]:
        return self._pool.submit(self._started, role, after)

    def _started(self, role: Role, after: Sequence[Future[Session]]) -> Session:
        wait(after)
        records = self._replayed and role == "runner"
        return Session.start(self._provider, self._device, self._limits, records=records, role=role, ahead=self._ahead)


def _up(begun: Future[Session]) -> Session:
    session = begun.result()
    try:
        session.handshake()
    except BaseException:
        session.close()
        raise
    return session
