"""What every sandbox holds: the runner's files, its environment and its command line.

Called by the providers alone. Trusted. The runner's files are bound from the judge's own checkout, so that the two
sides of the wire are never of different versions.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from harness.errors import SandboxError
from harness.sandbox import Exit, Launch, Watcher

HARNESS = Path(__file__).resolve().parent.parent
ROOT = "/kernelmark"
PROGRAM = f"{ROOT}/program.py"
ENTER = f"{ROOT}/enter.py"
SOCKET = "/run/kernelmark.sock"
HOME = "/home/runner"
TMPDIR = "/tmp"
SHM_BYTES = 64 << 20
_FILES = ("__init__.py", "errors.py", "arena", "runner", "wire")


def runner_files(program: Path | None) -> dict[Path, str]:
    """Host path → path inside, for everything that the runner consists of; all to be bound read-only.

    Raises:
        SandboxError: a file is missing from the installation, or others than its owner may not read it.
    """
    files = {HARNESS / name: f"{ROOT}/harness/{name}" for name in _FILES}
    if program is not None:
        files[program.resolve()] = PROGRAM
    for path in files:
        if not path.exists():
            raise SandboxError(f"{path} is missing", "install kernelmark again")
        if not path.stat().st_mode & 0o004:
            raise SandboxError(f"the sandbox's user may not read {path}", "run `chmod -R o+rX` on the installation")
    return files


def runner(launch: Launch) -> str:
    """The path inside of what is run, where its files are bound below `ROOT`."""
    return PROGRAM if launch.program else f"{ROOT}/harness/runner/__main__.py"


def command(
    python: str, program: str, socket: str, variables: Mapping[str, str], watcher: Watcher | None = None
) -> list[str]:
    """The runner's command line; `env -i` drops what an image or a tool on the way has added to the environment."""
    return [
        "env",
        "-i",
        *(f"{key}={value}" for key, value in variables.items()),
        *(watcher.command if watcher else ()),
        python,
        "-I",
        "-B",
        "-u",
        program,
        socket,
    ]


def environment(
    launch: Launch, *, path: str, home: str = HOME, tmpdir: str = TMPDIR, extra: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The whole environment inside; nothing of the judge's is inherited. `extra` is what a GPU needs."""
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
    """A PATH of the given directories and the system's."""
    directories = [str(each) for each in first]
    return os.pathsep.join([*dict.fromkeys(directories), "/usr/local/bin", "/usr/bin", "/bin"])


def exit_of_init(code: int, out_of_memory: bool) -> Exit:
    """The runner's end from the status of the init process above it, which tells signal n as 128 + n."""
    return Exit(None, code - 128, out_of_memory) if 128 < code <= 192 else Exit(code, None, out_of_memory)
