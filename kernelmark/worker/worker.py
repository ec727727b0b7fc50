"""One start of a worker: its threads, which claim, report, listen and answer, over the judges of a fleet. Trusted.

Each thread has its own connection. While the server is away, gradings go on, and answers are sent when it is back.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime

from harness.errors import HarnessError, KernelmarkError, UsageError
from kernelmark import __version__
from kernelmark.client.connection import Connection, Refused, Unreachable, shown
from kernelmark.grading.fleet.judges import Judges
from kernelmark.grading.fleet.pool import Devices
from kernelmark.service.work import (
    CLAIM_WAIT_S,
    HEARTBEAT_WAIT_S,
    WORK_PROTOCOL,
    Acknowledged,
    Answer,
    Claim,
    Heartbeat,
    HeartbeatResponse,
    Leases,
    WorkerHello,
    WorkerWelcome,
)
from kernelmark.text.terminal import counted, say, unexpected, visible, warn
from kernelmark.worker.answers import KeptAnswers
from kernelmark.worker.checkout import Checkout
from kernelmark.worker.gradings import Gradings

_REREAD_S = 60.0
_LEAST_S = 1.0
_GATHER_S = 0.25  # steps within this time are told together
_FIRST_PAUSE_S, _LONGEST_PAUSE_S, _MOST_PAUSE_S = 0.5, 10.0, 600.0
_ALIVE_S = 15.0
_NO_ACCESS = (401, 403)
ANOTHER_LIVES = "second-worker"
"""The code of the refusal of a hello: an earlier start of this worker is not known to have ended yet."""
HELLO_FIRST = "hello-first"
"""The code of the refusal of anything else: the server does not know this start."""


class ServerWorker:
    """Grades for one server from `run` until `stop`."""

    def __init__(self, origin: str, token: str, checkout: Checkout, judges: Judges) -> None:
        """Nothing is started. `judges` is closed at the end of `run`.

        Raises:
            UsageError: the address is not a server's.
            HarnessError: answers cannot be kept.
        """
        self._instance = secrets.token_hex(16)
        self._token, self._checkout, self._judges = token, checkout, judges
        with Connection(origin) as connection:
            self._origin = connection.origin
        self._kept = KeptAnswers(checkout.settings.root, self._origin)
        self._gradings = Gradings(self._instance, checkout, judges, self._kept, self._graded)
        self._holding = self._gradings.holding
        self._over, self._wake, self._to_send = self._gradings.over, threading.Event(), threading.Event()
        self._error: KernelmarkError | None = None
        self._claim: Claim | None = None
        self._hello: WorkerHello | None = None
        self._told_steps, self._paused = 0, ""
        self._is_forgotten = self._is_away = self._is_told = False

    def run(self) -> None:
        """Grade until `stop` is called.

        Raises:
            UsageError: the server refuses this worker, or its devices are of several kinds.
            HarnessError: the judges did not start.
        """
        threads = [self._thread(step) for step in (self._claims, self._listens, self._reports, self._delivers)]
        try:
            self._judges.start()
            self._refuse_several_kinds(self._gradings.devices)
            with self._connection() as connection:
                for answer in self._kept.all():  # before the server gives its job to others
                    with suppress(Refused, HarnessError):
                        self._post_answer(connection, answer)
                pause_s = _FIRST_PAUSE_S
                while not self._over.is_set() and not self._greeted(connection):
                    self._over.wait(pause_s)
                    pause_s = min(2 * pause_s, _ALIVE_S)
                for thread in threads:
                    thread.start()
                while not self._over.is_set():
                    self._wake.wait(_REREAD_S)
                    self._wake.clear()
                    self._look_after_itself(connection)
        finally:
            self.stop()
            self._judges.close()
            self._leave()
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Let `run` end; what is being graded goes back to the server. Any thread may call it."""
        self._over.set()
        self._wake.set()
        self._to_send.set()
        with self._holding.changed:
            self._holding.changed.notify_all()

    # What the main thread does.

    def _refuse_several_kinds(self, devices: Devices) -> None:
        if len(devices.names) > 1:
            names = ", ".join(sorted(devices.names))
            remedy = "start one worker for each kind, with CUDA_VISIBLE_DEVICES"
            raise UsageError("kernelmark worker", f"has devices of several kinds ({names})", remedy)

    def _greeted(self, connection: Connection) -> bool:
        """Say hello; whether the server knows this worker now."""
        devices = self._gradings.devices
        self._refuse_several_kinds(devices)
        [pool] = devices.names
        hello = WorkerHello(
            instance=self._instance,
            version=__version__,
            protocol=WORK_PROTOCOL,
            pool=pool,
            device=devices.kind,
            sandbox=self._judges.sandbox,
            devices=devices.count,
            slots=devices.slots,
            problems=self._checkout.problems(),
            unfit=self._gradings.fitness.why_not[:500],
        )
        if hello == self._hello and not self._is_forgotten:
            return True
        try:
            welcome = connection.post("worker/hello", hello, WorkerWelcome)
        except Unreachable as error:
            self._no_answer(error)
            return False
        except HarnessError as error:  # an answer that is none of ours, such as a proxy's while the server is away
            if self._hello is None:  # or the address is wrong
                raise
            warn(str(error))
            return False
        except Refused as refused:
            if refused.code != ANOTHER_LIVES and refused.status != 429:
                raise
            if not self._is_told:
                say(f"{refused}; trying until it is so")
            self._is_told = True
            return False
        self._answers_again()
        if self._hello is None:
            slots = counted(hello.slots, "slot")
            where = f"{hello.devices} × {visible(pool)}, {slots}, {hello.sandbox}"
            say(f"worker {shown(welcome.name)} grades for {self._origin} ({where})")
            self._to_send.set()
        self._hello, self._is_forgotten = hello, False
        self._pause(welcome.paused)
        return True

    def _look_after_itself(self, connection: Connection) -> None:
        """Read the checkout again, try its own kernel if there is reason to, and tell the server what has changed."""
        if self._over.is_set():
            return
        if self._checkout.refresh():
            self._is_forgotten = True  # so that a hello lets it claim again what it gave back
        self._gradings.try_itself()
        try:
            while not self._over.is_set() and not self._greeted(connection):
                self._over.wait(_ALIVE_S)
        except Refused as refused:
            if refused.status in _NO_ACCESS:
                self._end(refused)
            else:
                warn(str(refused))

    def _leave(self) -> None:
        """Give the leases back, so that the server need not wait for them to run out."""
        with suppress(Refused, HarnessError), self._connection() as connection:
            if self._hello is not None:
                for answer in self._kept.all():
                    with suppress(Refused):  # the next start sends it again
                        self._post_answer(connection, answer)
                leaving = Heartbeat(instance=self._instance, held=(), leaves=True)
                connection.post("worker/heartbeat", leaving, HeartbeatResponse)
        self._kept.close()

    # The threads.

    def _thread(self, step: Callable[[Connection], None]) -> threading.Thread:
        def work() -> None:
            pause_s = _FIRST_PAUSE_S
            try:
                with self._connection() as connection:
                    while not self._over.is_set():
                        try:
                            step(connection)
                            pause_s = _FIRST_PAUSE_S
                            continue
                        except Refused as refused:
                            if refused.status in _NO_ACCESS:
                                raise
                            warn(str(refused))
                            self._is_forgotten = True  # as far as is known here
                            self._wake.set()
                            pause_s = max(pause_s, min(refused.retry_after_s or 0, _MOST_PAUSE_S))
                        except Unreachable as error:
                            self._no_answer(error)
                        except HarnessError as error:  # an answer that is none of ours
                            warn(str(error))
                        self._over.wait(pause_s)
                        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
            except KernelmarkError as error:
                self._end(error)
            except Exception as error:  # noqa: BLE001 - the thread ends here, and the worker with it
                self._end(HarnessError(unexpected(error)))

        return threading.Thread(target=work, name=f"worker{step.__name__}", daemon=True)

    def _claims(self, connection: Connection) -> None:
        """Claim as many tasks as there are free slots, and one more, whose sandboxes can start."""
        if self._claim is None and (free := self._free()):
            self._claim = Claim(instance=self._instance, claim=secrets.token_hex(16), free=free)
        if self._claim is None:
            return
        try:
            begun = time.monotonic()
            leases = connection.post("worker/claim", self._claim, Leases, wait_s=CLAIM_WAIT_S)
        except Unreachable:
            raise  # the same claim is made again, and gets the same leases
        except KernelmarkError:
            self._claim = None
            raise
        claimed, self._claim = self._claim.free, None
        self._answers_again()
        for lease in leases.leases[:claimed]:
            self._gradings.begin(lease)
        if not leases.leases:
            self._not_too_often(begun)

    def _free(self) -> int:
        """Wait until there is room; 0: the worker is ending."""

        with self._holding.changed:
            self._holding.changed.wait_for(
                lambda: self._over.is_set() or (not self._paused and self._gradings.free > 0)
            )
            return 0 if self._over.is_set() else self._gradings.free

    def _listens(self, connection: Connection) -> None:
        """Ask what has been cancelled; the server answers when something is, or after ten seconds."""
        beat = Heartbeat(instance=self._instance, held=self._holding.all(), wait_s=HEARTBEAT_WAIT_S)
        begun = time.monotonic()
        told = connection.post("worker/heartbeat", beat, HeartbeatResponse, wait_s=HEARTBEAT_WAIT_S)
        self._heed(told)
        if not told.end:
            self._not_too_often(begun)

    def _reports(self, connection: Connection) -> None:
        """Tell how far gradings are, soon after each change."""
        with self._holding.changed:
            self._holding.changed.wait_for(lambda: self._over.is_set() or self._holding.steps != self._told_steps)
        if not self._over.wait(_GATHER_S):
            self._told_steps = self._holding.steps
            beat = Heartbeat(instance=self._instance, held=self._holding.all())
            self._heed(connection.post("worker/heartbeat", beat, HeartbeatResponse))

    def _heed(self, told: HeartbeatResponse) -> None:
        self._answers_again()
        self._pause(told.paused)
        for lease in told.end:
            self._gradings.end(lease)

    def _delivers(self, connection: Connection) -> None:
        """Send the answers that are kept."""
        self._to_send.wait()
        self._to_send.clear()
        try:
            for answer in self._kept.all():
                self._deliver(connection, answer)
        except BaseException:
            self._to_send.set()
            raise

    def _deliver(self, connection: Connection, answer: Answer) -> None:
        try:
            self._post_answer(connection, answer)
        except Refused as refused:
            if refused.status in (*_NO_ACCESS, 429) or refused.code == HELLO_FIRST:
                raise
            if refused.status == 409:
                warn(f"an answer does not count any more ({refused})")
                self._kept.drop(answer.lease)
            else:
                self._kept.refused(answer.lease, str(refused))
            self._holding.drop(answer.lease)

    def _post_answer(self, connection: Connection, answer: Answer) -> None:
        """Send an answer, and forget it once the server has it."""
        now = {"instance": self._instance, "answered_at": datetime.now(UTC)}
        connection.post("worker/answer", answer.model_copy(update=now), Acknowledged)
        self._kept.drop(answer.lease)
        self._holding.drop(answer.lease)
        self._answers_again()

    # What threads share.

    def _connection(self) -> Connection:
        return Connection(self._origin, self._token, patience_s=0)

    def _graded(self) -> None:
        self._to_send.set()
        self._wake.set()

    def _not_too_often(self, begun: float) -> None:
        """Wait a moment if a server that should have waited did not."""
        self._over.wait(max(0.0, begun + _LEAST_S - time.monotonic()))

    def _pause(self, why: str) -> None:
        if why != self._paused:
            say(f"the server gives this worker no tasks: {shown(why)}" if why else "the server gives tasks again")
        with self._holding.changed:
            self._paused = why
            self._holding.changed.notify_all()

    def _no_answer(self, error: Unreachable) -> None:
        if not self._is_away and not self._over.is_set():
            say(f"{error}; trying until it answers, and what is being graded goes on")
        self._is_away = True

    def _answers_again(self) -> None:
        if self._is_away:
            say(f"{self._origin} answers again")
        self._is_away = False

    def _end(self, error: KernelmarkError) -> None:
        self._error = self._error or error
        self.stop()
