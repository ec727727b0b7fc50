"""The command's side: it sends its job to the resident worker or grades it here, and starts the next resident worker.

Trusted; imports no torch. Both ways have the same verdict. Only the command records.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from harness.device import DEVICES
from harness.kinds import DeviceKind
from harness.verdict import Check, Verdict
from kernelmark.grading.fleet.messages import REPLY, JobAnswer, JobRequest, WorkerReady
from kernelmark.grading.fleet.process import PROGRAM
from kernelmark.grading.resident import place
from kernelmark.grading.resident.key import key_of
from kernelmark.grading.resident.standby import Plan, confines
from kernelmark.grading.setup import OnProgress, PreparedJob
from kernelmark.project.choice import providers
from kernelmark.project.problems import find_baselines, visible_test
from kernelmark.project.settings import DEBUG, Settings
from kernelmark.text.terminal import warn

if TYPE_CHECKING:
    from harness.judge.correctness.cases import OnFailure

_READY_S = 60.0  # how long a worker may take to start on a busy machine


def off(settings: Settings, device: DeviceKind) -> str:
    """Why commands use no resident worker, regardless of the sandbox; empty if they do."""
    if settings.resident is None and not DEVICES[device].on_host:  # few gradings have tested it on GPUs
        return "on a GPU only the setting `resident = true` turns it on"
    if settings.resident is False:
        return "the setting `resident` is false"
    if os.environ.get("CI") == "true":
        return "CI=true"
    return f"{DEBUG} is set" if os.environ.get(DEBUG) else ""


class CommandJudge:
    """Grades the job of one command: in the resident worker, or in this process if there is none or with `here`."""

    def __init__(self, job: PreparedJob, *, here: bool) -> None:
        self._job, self._environment = job, dict(os.environ)
        self._place = None if here or off(job.settings, job.device) else place.socket_of(job.settings.root)
        self._key = (key_of(job) if self._place is not None else None) or ""

    def check(
        self,
        on_progress: OnProgress,
        on_failure: OnFailure | None = None,
        only: Collection[str] = (),
        *,
        fail_fast: bool = False,
    ) -> Check:
        """As `PreparedJob.check`. With `on_failure` the job is graded in this process, which alone can call it."""
        answer = None
        if on_failure is None:
            for name in only:
                visible_test(self._job.problem, self._job.device, name)
            options = {"effort": "default", "baselines": (), "timed": False, "only": only, "fail_fast": fail_fast}
            answer = self._answer(on_progress, options)
        if answer is not None and answer.check is not None:
            return answer.check
        return self._job.check(on_progress, on_failure, only, fail_fast=fail_fast)

    def grade(self, on_progress: OnProgress) -> Verdict:
        """As `PreparedJob.grade`."""
        settings = self._job.settings
        answer = self._answer(on_progress, {"effort": settings.effort, "baselines": settings.baselines})
        return answer.verdict if answer is not None and answer.verdict is not None else self._job.grade(on_progress)

    def leave_one(self, result: Check) -> None:
        """Start the resident worker for the next command, with sandboxes like those of this result, if it may run."""
        job, where, name = self._job, self._place, result.environment.sandbox
        if where is None or not self._key:
            return
        if not any(provider.name == name and confines(provider, where) for provider in providers(job.settings)):
            return
        timed = isinstance(result, Verdict)
        plan = Plan(
            key=self._key,
            sandbox=job.settings.sandbox,
            device=job.device,
            limits=job.problem.limits,
            baselines=len(find_baselines(job.settings, job.problem, job.device)) if timed else 0,
            replayed=timed and DEVICES[job.device].captures and job.problem.timing == "replayed",
        )
        subprocess.Popen(
            [*PROGRAM, str(job.settings.root), "--slots", "1", "--resident", plan.model_dump_json()],
            env=self._environment,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _answer(self, on_progress: OnProgress, options: dict[str, Any]) -> JobAnswer | None:
        """The answer of the resident worker; None if there is no worker, or it was lost.

        If the command is interrupted, this ends the job and returns once its sandboxes are gone.

        Raises:
            KernelmarkError: the error of the job.
        """
        connection = place.connect(self._place) if self._place is not None and self._key else None
        if connection is None:
            return None
        answer = None
        with connection:
            try:
                if not self._takes_jobs(connection):
                    return None
                answer = self._talk(connection, on_progress, options)
            except (OSError, ValidationError):
                pass
            except BaseException:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(1 << 16):
                        pass
                raise
        if answer is None:
            warn("the resident worker was lost; grading here instead")
        elif (failure := answer.failure()) is not None:
            raise failure
        return answer

    def _takes_jobs(self, connection: socket.socket) -> bool:
        """Pass this process's output to the worker and wait until it is ready. A worker with another key ends."""
        connection.settimeout(_READY_S)
        sys.stdout.flush()
        sys.stderr.flush()
        with contextlib.suppress(OSError):
            socket.send_fds(connection, [self._key.encode()], [1, 2])
            return connection.recv(1, socket.MSG_PEEK) != b""
        return False

    def _talk(self, connection: socket.socket, on_progress: OnProgress, options: dict[str, Any]) -> JobAnswer | None:
        job, messages = self._job, connection.makefile("rb")
        connection.settimeout(None)
        WorkerReady.model_validate_json(messages.readline())
        request = JobRequest(
            run=secrets.token_hex(8),
            problem=str(job.problem.directory),
            problem_sha256=job.problem.sha256,
            final=bool(job.problem.final_tests),
            submission=job.submission,
            device=job.device,
            sandbox=job.settings.sandbox,
            progress=True,
            **options,
        )
        connection.sendall(request.line())
        for line in messages:
            message = REPLY.validate_json(line)
            if isinstance(message, JobAnswer):
                return message
            on_progress(message.step)
        return None
