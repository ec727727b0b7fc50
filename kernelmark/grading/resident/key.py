"""The hash of everything that a resident worker depends on. A command with another hash ends the worker. Trusted."""

from __future__ import annotations

import os
import resource
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

import kernelmark
from harness.errors import UsageError
from harness.files import outside
from harness.files.identity import length_prefixed_sha256
from harness.problem.load import private_files
from kernelmark.grading.setup import PreparedJob
from kernelmark.project.problems import private_folder, problem_directories

_OF_A_JOB = {"author", "effort", "baselines"}  # settings that are part of each request
# Variables that differ between terminals and do not affect a grading.
_OF_A_TERMINAL = ("TERM", "COLORTERM", "COLUMNS", "LINES", "PWD", "OLDPWD", "SHLVL", "_", "WINDOWID")
_LIMITS = (resource.RLIMIT_CORE, resource.RLIMIT_MEMLOCK, resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC)


def key_of(job: PreparedJob) -> str | None:
    """The key of a worker that may grade this job; None if a file cannot be read.

    It covers the version and the sources of this program, the interpreter and its packages, the settings, all problems
    and private cases of the project, the environment, and other attributes that a process inherits.
    """
    try:
        return length_prefixed_sha256(*_parts(job))
    except (OSError, UsageError):
        return None


def _parts(job: PreparedJob) -> Iterator[bytes]:
    package, installed = Path(kernelmark.__file__ or "").parent, Path(sysconfig.get_path("purelib"))
    yield repr((kernelmark.__version__, sys.executable, installed.stat().st_mtime_ns)).encode()
    for name in ("harness", "leaderboard", "kernelmark"):
        yield from _contents(sorted((package.parent / name).rglob("*.py")))
    yield job.settings.model_dump_json(exclude=_OF_A_JOB).encode()
    private = private_folder(job.settings)
    for directory in sorted({*problem_directories(job.settings), job.problem.directory}):
        yield from _contents([directory / "problem.toml", directory / "reference.py"])
        yield from _contents(private_files(private, directory.name) if private is not None else ())
    yield repr(sorted(item for item in os.environ.items() if not _of_a_terminal(item[0]))).encode()
    inherited = os.sched_getaffinity(0), os.getgroups(), os.getpriority(os.PRIO_PROCESS, 0)
    yield repr((*inherited, *map(resource.getrlimit, _LIMITS))).encode()
    yield Path("/proc/self/cgroup").read_bytes()
    yield repr([space.readlink() for space in sorted(Path("/proc/self/ns").iterdir())]).encode()


def _contents(paths: Iterable[Path]) -> Iterator[bytes]:
    for path in paths:
        yield os.fsencode(path)
        yield outside.read(path, outside.TEXT_BYTES, follow=True) if path.exists() else b""


def _of_a_terminal(variable: str) -> bool:
    return variable in _OF_A_TERMINAL or variable.startswith(("SSH_", "TMUX", "VTE_", "TERM_", "VSCODE_"))
