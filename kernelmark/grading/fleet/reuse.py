"""A cache of answers, for jobs whose source was graded before: in one call, in one fleet, or by other programs.

The key of an answer is a hash of everything that determines it. Trusted: the cached files belong to the judge's user.
"""

from __future__ import annotations

import platform
import threading
from collections import OrderedDict
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Literal, get_args

from pydantic import ValidationError

from harness.errors import UsageError
from harness.files.identity import length_prefixed_sha256
from harness.files.kept import Kept, cache_folder
from harness.sandbox.gpu import toolkit
from harness.verdict import Outcome
from harness.wire.protocol import PROTOCOL
from kernelmark.grading.fleet.messages import JobAnswer, Message
from kernelmark.grading.setup import PreparedJob
from kernelmark.project.calibrations import stored
from kernelmark.project.choice import choose_provider, cuda_is_here, device_name, visible_gpus
from kernelmark.project.settings import Settings

Reuse = Literal[True, False, "run", "disk"]
"""Which earlier answers count for a job with the same source: none (False), those of the same call (True), of all calls
of the fleet ("run"), or of all programs of this user on this machine ("disk").
"""
KEPT = 1000  # the most answers in memory
_PACKAGES = ("kernelmark", "torch", "triton", "numpy")
_BY_CHANCE = (Outcome.TIMEOUT, Outcome.MEMORY_LIMIT)
_DRIVER = Path("/proc/driver/nvidia/version")


class KeptAnswer(Message):
    """An answer as it is stored."""

    answer: JobAnswer
    device: str
    """The name of the device that graded it."""


class Answers:
    """The most recently used answers, by key. Any thread may use it."""

    def __init__(self, kept: Kept | None = None) -> None:
        """`kept`: a folder in which answers are stored as well; None: they are in memory only."""
        self._kept, self._lock = kept, threading.Lock()
        self._answers: OrderedDict[str, KeptAnswer] = OrderedDict()

    def get(self, key: str) -> KeptAnswer | None:
        """The answer with this key, or None. Less recently used answers are dropped before it from now on."""
        with self._lock:
            if key in self._answers:
                self._answers.move_to_end(key)
                return self._answers[key]
        if self._kept is not None and (content := self._kept.get(key)) is not None:
            with suppress(ValidationError):  # a development version wrote it
                return KeptAnswer.model_validate_json(content)
        return None

    def put(self, key: str, answer: JobAnswer, device: str) -> None:
        """Store an answer that is no error. A time or memory limit, which a busy machine may have caused, is not stored
        in the folder: another grading might succeed.
        """
        kept = KeptAnswer(answer=answer, device=device)
        result = answer.verdict or answer.check
        if self._kept is not None and result is not None and result.outcome not in _BY_CHANCE:
            self._kept.put(key, kept.line())
        with self._lock:
            self._answers[key] = kept
            while len(self._answers) > KEPT:
                self._answers.popitem(last=False)


def on_disk(settings: Settings) -> Answers:
    """Answers that are also stored in this user's cache folder, unless the settings allow it no bytes."""
    return Answers(Kept(cache_folder(), settings.cache_bytes) if settings.cache_bytes else None)


def refuse_unknown(reuse: Reuse) -> None:
    """Raise a UsageError if a value is not one of `Reuse`."""
    if reuse not in get_args(Reuse):
        raise UsageError("reuse", f"{reuse!r} is not valid", 'give True, False, "run" or "disk"')


def key_of(job: PreparedJob, machine: bytes, baselines: tuple[str, ...], *, timed: bool, record: bool) -> str:
    """The key of a job: jobs with the same key have the same verdict on the same machine.

    If the job is recorded, the key includes the author and the name of the submission, which the record shows.
    """
    own, settings = job.submission, job.settings
    how = f"{settings.effort} {timed} {record} {bool(job.problem.final_tests)} {baselines}"
    author = (own.author, own.name) if record else ()
    parts = (how, job.problem.sha256, own.sha256, *author)
    return length_prefixed_sha256(
        b"kernelmark answer", machine, *(part.encode() for part in parts), *_baseline_sources(job, baselines)
    )


def _baseline_sources(job: PreparedJob, baselines: tuple[str, ...]) -> list[bytes]:
    """The contents of the baselines' files, in the order of their names."""
    folder = job.settings.locate("reference") / job.problem.slug
    names = {"eager" if name == "auto" else name for name in baselines}
    return [file.read_bytes() for file in sorted(folder.glob("*")) if file.stem in names and file.is_file()]


def machine_of(settings: Settings) -> bytes:
    """The part of a key that is the same for all jobs of a program: the devices, the sandbox and the versions.

    Raises:
        SandboxError: the sandbox cannot be used here.
    """
    provider, gpus = choose_provider(settings), settings.device != "cpu" and cuda_is_here()
    devices = sorted(gpu.name for gpu in visible_gpus()) if gpus else [device_name("cpu")]
    driver = _DRIVER.read_text() if gpus and _DRIVER.exists() else ""
    sandbox = (provider.name, provider.image_digest(), toolkit(), settings.docker_binds, settings.docker_python)
    calibrations = [calibration.model_dump_json() for calibration in stored(settings)]
    versions = (PROTOCOL, platform.python_version(), platform.release(), list(map(_version, _PACKAGES)), driver)
    return f"{devices} {sandbox} {versions} {calibrations}".encode()


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
