"""Answers that are given again to jobs with an equal source: in one call, in all of a fleet's, or in later programs.

The key of an answer says everything that decides it. Trusted; what is kept on disk is the judge's user's own.
"""

from __future__ import annotations

import platform
import threading
from collections import OrderedDict
from importlib import metadata
from pathlib import Path
from typing import Literal, get_args

from harness.errors import UsageError
from harness.files.identity import length_prefixed_sha256
from harness.files.kept import Kept, cache_folder
from harness.sandbox.gpu import toolkit
from harness.wire.protocol import PROTOCOL
from kernelmark.grading.fleet.messages import JobAnswer, Message
from kernelmark.grading.setup import PreparedJob
from kernelmark.project.choice import choose_provider, cuda_is_here, device_name, visible_gpus
from kernelmark.project.settings import Settings

Reuse = Literal[True, False, "run", "disk"]
"""Whether an equal source gets a copy: no, of an answer in the same call (True), in any call of the fleet ("run"), or
of any that this user's programs on this machine had ("disk").
"""
KEPT = 1000  # answers in memory
_PACKAGES = ("kernelmark", "torch", "triton", "numpy")
_DRIVER = Path("/proc/driver/nvidia/version")


class KeptAnswer(Message):
    """An answer on disk."""

    answer: JobAnswer
    device: str
    """The name of the device that it came from."""


class Answers:
    """The last answers, by key; any thread may call it."""

    def __init__(self, kept: Kept | None = None) -> None:
        """`kept`: where they are on disk, too."""
        self._kept, self._lock = kept, threading.Lock()
        self._answers: OrderedDict[str, KeptAnswer] = OrderedDict()

    def get(self, key: str) -> KeptAnswer | None:
        """The answer to an equal job, which is now the last to go."""
        with self._lock:
            if key in self._answers:
                self._answers.move_to_end(key)
                return self._answers[key]
        content = self._kept.get(key) if self._kept is not None else None
        return None if content is None else KeptAnswer.model_validate_json(content)

    def put(self, key: str, answer: JobAnswer, device: str) -> None:
        """Keep an answer that is no error."""
        made = KeptAnswer(answer=answer, device=device)
        if self._kept is not None:
            self._kept.put(key, made.line())
        with self._lock:
            self._answers[key] = made
            while len(self._answers) > KEPT:
                self._answers.popitem(last=False)


def on_disk(settings: Settings) -> Answers:
    """The answers of this and of earlier programs."""
    return Answers(Kept(cache_folder(), settings.cache_bytes) if settings.cache_bytes else None)


def refuse_unknown(reuse: Reuse) -> None:
    """Raise if this is none of them.

    Raises:
        UsageError: it is not.
    """
    if reuse not in get_args(Reuse):
        raise UsageError("reuse", f"{reuse!r} is not valid", 'give True, False, "run" or "disk"')


def key_of(job: PreparedJob, machine: bytes, baselines: tuple[str, ...], *, timed: bool, record: bool) -> str:
    """What has the same verdict on one machine; recorded ones differ by author and name, which the record shows."""
    own, settings = job.submission, job.settings
    asked = f"{settings.effort} {timed} {record} {bool(job.problem.final_tests)} {baselines}"
    author = (own.author, own.name) if record else ()
    parts = (asked, job.problem.sha256, own.sha256, *author)
    return length_prefixed_sha256(
        b"kernelmark answer", machine, *(part.encode() for part in parts), *_kernels(job, baselines)
    )


def _kernels(job: PreparedJob, baselines: tuple[str, ...]) -> list[bytes]:
    """The sources of the baselines."""
    folder = job.settings.locate("reference") / job.problem.slug
    names = {"eager" if name == "auto" else name for name in baselines}
    return [file.read_bytes() for file in sorted(folder.glob("*")) if file.stem in names and file.is_file()]


def machine_of(settings: Settings) -> bytes:
    """What else decides a verdict where programs of several days share answers: device, sandbox and versions.

    Raises:
        SandboxError: the sandbox cannot be used here.
    """
    provider, gpus = choose_provider(settings), settings.device != "cpu" and cuda_is_here()
    devices = sorted(gpu.name for gpu in visible_gpus()) if gpus else [device_name("cpu")]
    driver = _DRIVER.read_text() if gpus and _DRIVER.exists() else ""
    sandbox = (provider.name, provider.image_digest(), toolkit(), settings.docker_binds, settings.docker_python)
    versions = (PROTOCOL, platform.python_version(), platform.release(), list(map(_version, _PACKAGES)), driver)
    return f"{devices} {sandbox} {versions}".encode()


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
