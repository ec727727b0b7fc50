"""The content of every sandbox: the runner's files, its environment and its command line.

Called only by the providers. Trusted. The runner's files come from the judge's own installation, so that both sides of
the protocol always have the same version.
"""

from __future__ import annotations

import os
import resource
import shutil
from collections.abc import Mapping
from pathlib import Path

from harness.errors import SandboxError
from harness.sandbox.protocol import Exit, Launch, Watcher

HARNESS = Path(__file__).resolve().parent.parent
ROOT = "/kernelmark"
PROGRAM = f"{ROOT}/program.py"
ENTER = f"{ROOT}/enter.py"
COLLECT = f"{ROOT}/harness/runner/collect.py"
SOCKET = "/run/kernelmark.sock"
HOME = "/home/runner"
TMPDIR = "/tmp"
SHM_BYTES = 64 << 20
# Files that every role needs in addition to its own package.
_SHARED = ("__init__.py", "arena", "errors.py", "languages", "recording", "shared", "wire")


def staged(launch: Launch) -> Path:
    """Copy the runner's files next to the judge's socket; the provider binds the copy read-only at `ROOT`.

    A runner can see in /proc/self/mountinfo what is bound. A copy does not reveal the path of the installation, and
    sandboxes do not share the files, whose state (such as locks) the kernel would share. The creator of the socket's
    directory removes the copy.

    Raises:
        SandboxError: a file is missing from the installation, or the copy cannot be written.
    """
    at = launch.socket.parent / "runner"
    try:
        for name in (*_SHARED, launch.role):
            _copy(HARNESS / name, at / "harness" / name)
        _copy(HARNESS / "sandbox" / "enter.py", at / "enter.py")
        if launch.program is not None:
            _copy(launch.program, at / "program.py")
        for path in (at, *at.rglob("*")):  # independent of the umask, since the runner is another user
            path.chmod(0o755 if path.is_dir() else 0o644)
    except OSError as error:
        why = error.args[0][0][-1] if isinstance(error, shutil.Error) else error  # that of the first file
        raise SandboxError(f"the runner's files cannot be copied ({why})", "look there, or install again") from error
    return at


def _copy(source: Path, to: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, to, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, to)


def core_bytes() -> int:
    """The core dump limit that prevents all dumps: less than a page, but not 0.

    If /proc/sys/kernel/core_pattern is a pipe, 0 means no limit to the kernel, and 1 means no dumps. If the judge's own
    limit is 0 and it may not raise it, 0 is all that it can pass on.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    if hard == 0:
        try:
            resource.setrlimit(resource.RLIMIT_CORE, (soft, 1))
        except (ValueError, OSError):
            return 0
    return 1


def runner(launch: Launch) -> str:
    """The path of the program inside the sandbox, where its files are bound below `ROOT`."""
    return PROGRAM if launch.program else f"{ROOT}/harness/{launch.role}/__main__.py"


def command(
    python: str,
    program: str,
    socket: str,
    variables: Mapping[str, str],
    watcher: Watcher | None = None,
    collect: str = COLLECT,
) -> list[str]:
    """The runner's command line. `env -i` removes variables that an image or a wrapper has added."""
    started = [python, "-I", "-B", "-u"]
    return [
        "env",
        "-i",
        *(f"{key}={value}" for key, value in variables.items()),
        *([*started, collect, socket, watcher.to_json()] if watcher else ()),
        *started,
        program,
        socket,
    ]


def environment(
    launch: Launch, *, path: str, home: str = HOME, tmpdir: str = TMPDIR, extra: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The whole environment inside the sandbox, which inherits nothing from the judge. `extra`: variables for a GPU."""
    return {
        "PATH": path,
        "HOME": home,
        "TMPDIR": tmpdir,
        "LANG": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        "XDG_CACHE_HOME": f"{home}/.cache",
        "TRITON_CACHE_DIR": f"{home}/.triton",
        **(extra or {}),
        **launch.environment,
    }


def search_path(*first: Path) -> str:
    """A PATH of these directories, followed by the system's."""
    return os.pathsep.join([*dict.fromkeys(map(str, first)), "/usr/local/bin", "/usr/bin", "/bin"])


def exit_of_init(code: int, out_of_memory: bool) -> Exit:
    """The runner's exit, from the exit status of the init process, which reports signal n as 128 + n."""
    return Exit(None, code - 128, out_of_memory) if 128 < code <= 192 else Exit(code, None, out_of_memory)
