"""The bubblewrap sandbox, for machines without Docker. Trusted.

All namespaces are unshared, the root contains only read-only binds of what the interpreter and the toolchain need, and
scratch file systems are private. If the judge is root, mounts are made as root, and the runner then drops to a user id
that no other sandbox has, so that the kernel's process limit applies to this sandbox alone. For any other user a user
namespace is made. Memory is limited by a control group if one can be created, otherwise by polling.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from harness.errors import SandboxError
from harness.files.outside import real
from harness.kinds import SandboxName
from harness.sandbox import gpu, inside, seccomp, uids
from harness.sandbox import tree as process_tree
from harness.sandbox.cgroup import MemoryGroup
from harness.sandbox.limits import over, too_many_sockets
from harness.sandbox.protocol import CLOSE_S, Breach, Exit, Launch
from harness.sandbox.startup import StartupLog

_SYSTEM = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/alternatives",
    "/etc/localtime",
    "/sys/devices/system",
)
_FOR_A_DRIVER = ("/sys/devices", "/sys/bus/pci")
_FILES = 4096


class Bwrap:
    """Provider of bubblewrap sandboxes, which run the judge's interpreter and packages."""

    name: SandboxName = "bwrap"

    def unavailable(self) -> str | None:
        for tool, package in (
            ("bwrap", "bubblewrap"),
            ("setpriv", "util-linux"),
            ("prlimit", "util-linux"),
            ("taskset", "util-linux"),
        ):
            if shutil.which(tool) is None:
                return f"the program {tool!r} is not installed; run `apt-get install {package}`"
        probe = ["bwrap", *_namespaces(os.geteuid() == 0), "--ro-bind", "/", "/", "--proc", "/proc", "true"]
        try:
            ran = subprocess.run(probe, capture_output=True, text=True, timeout=10)
        except subprocess.TimeoutExpired:
            return "bubblewrap did not end within 10 s; try `bwrap --unshare-all --ro-bind / / true`"
        if ran.returncode:
            return (
                f"bubblewrap is not allowed to create namespaces here ({ran.stderr.strip()}); set the sysctls "
                "kernel.unprivileged_userns_clone=1 and kernel.apparmor_restrict_unprivileged_userns=0, "
                "or in a container allow them (--privileged)"
            )
        return None

    def image_digest(self) -> str | None:
        return None

    def shows(self, path: Path) -> bool:
        toolkit = gpu.toolkit()
        bound = _system_paths([*([toolkit] if toolkit else []), *map(Path, _FOR_A_DRIVER)])
        return any(real(path).is_relative_to(real(place)) for place in bound)

    def launch(self, launch: Launch) -> BwrapSandbox:
        """Start the runner in new namespaces.

        Raises:
            SandboxError: bubblewrap failed, a file is missing, or there is no such GPU.
        """
        return BwrapSandbox(launch)


class BwrapSandbox:
    """One runner under bubblewrap."""

    def __init__(self, launch: Launch) -> None:
        self._limits = launch
        self._log = StartupLog()
        self._uid = uids.take() if os.geteuid() == 0 else None
        self._group: MemoryGroup | None = None
        self._closed = False
        try:
            self._group = MemoryGroup.create(launch.memory_bytes)
            self._start(*_command(launch, self._uid))
        except BaseException:
            self._log.close()
            self._release()
            raise

    def _start(self, options: list[str], command: list[str]) -> None:
        reader, writer = os.pipe()
        uid = os.getuid() if self._uid is None else self._uid
        users = _memory_file(uids.passwd(uid).encode())
        options = ["--info-fd", str(writer), "--perms", "0444", "--ro-bind-data", str(users), "/etc/passwd", *options]
        passed = [writer, users]
        if (program := seccomp.program(watched=self._limits.watcher is not None)) is not None:
            passed.append(_memory_file(program))
            options += ["--seccomp", str(passed[-1])]
        # The runner can read the command line and environment of bubblewrap, which is its first process, so neither may
        # reveal anything about the host.
        passed.append(_memory_file(b"".join(option.encode() + b"\0" for option in options)))
        # Set before bubblewrap installs the filter, which forbids changing this limit.
        bwrap = ["prlimit", f"--core={inside.core_bytes()}:{inside.core_bytes()}", "bwrap", "--args", str(passed[-1])]
        bwrap += ["--", *command]
        if self._limits.cpus:
            bwrap = ["taskset", "--cpu-list", ",".join(map(str, self._limits.cpus)), *bwrap]
        # The shell enters the control group and execs bubblewrap, so that no child is ever outside.
        enter = ["sh", "-c", 'echo $$ >"$0" && exec "$@"', str(self._group.entrance)] if self._group else []
        try:
            with self._log.writer() as output:
                self._process = subprocess.Popen(
                    [*enter, *bwrap],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    env={"PATH": os.environ.get("PATH", os.defpath)},
                    pass_fds=passed,
                )
            os.close(passed.pop(0))  # so that reading ends when the sandbox closes its copy
            with open(reader, encoding="utf-8", closefd=False) as file:
                info = file.read()
            self._init_pid = int(json.loads(info)["child-pid"])
            self._init = os.pidfd_open(self._init_pid)
        except (OSError, ValueError) as error:
            raise SandboxError(f"bubblewrap failed ({self._failure() or error})") from error
        finally:
            for fd in (reader, *passed):
                os.close(fd)

    def _failure(self) -> str:
        """What bubblewrap printed before it gave up."""
        process = getattr(self, "_process", None)
        if process is None:
            return ""
        process.kill()
        process.wait()
        return self._log.text().strip()

    def ended(self) -> Exit | None:
        code = self._process.poll()
        if code is None:
            return None
        out_of_memory = self._group is not None and not self._closed and self._group.exceeded()
        return inside.exit_of_init(code, out_of_memory) if code >= 0 else Exit(None, -code, out_of_memory)

    def breach(self) -> Breach | None:
        """Check the sockets; with a control group also whether the kernel killed a process, otherwise the usage.

        Raises:
            SandboxError: the kernel killed a process for lack of memory, and not of the sandbox's own.
        """
        if self._closed:
            return None
        if breach := too_many_sockets(self._init_pid, self._init):
            return breach
        if self._group is not None:
            what = f"more than {self._limits.memory_bytes:,} bytes of memory requested"
            return Breach("memory", what) if self._group.exceeded() else None
        return over(process_tree.usage(process_tree.tree({self._init_pid})), self._limits)

    def cpu_ns(self) -> int:
        return process_tree.cpu_ns(process_tree.tree({self._init_pid}))

    def close(self) -> None:
        """Kill the first process of the PID namespace; the kernel kills all others before it reports that death.

        Raises:
            SandboxError: processes or the control group remain.
        """
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._init, signal.SIGKILL)
        gone = bool(select.select([self._init], [], [], CLOSE_S)[0])
        if gone:
            self._process.wait()  # bubblewrap itself, which exits when that process dies
        self._log.close()
        os.close(self._init)
        if not gone:  # the control group and the user id are still in use
            raise SandboxError(f"the sandbox's first process {self._init_pid} cannot be killed", "look at `ps -l`")
        self._release()

    def _release(self) -> None:
        if self._uid is not None:
            uids.release(self._uid)
        if self._group is not None and not self._group.remove(CLOSE_S):
            raise SandboxError(f"the control group of {self._group.entrance} cannot be removed", "remove it by hand")

    def startup_log(self) -> str:
        return self._log.text()


def _memory_file(content: bytes) -> int:
    """A descriptor of a file with this content."""
    fd = os.memfd_create("bwrap", 0)
    os.write(fd, content)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _namespaces(root: bool) -> list[str]:
    """The options for new namespaces. Root needs no user namespace, and could not change to another user id in one."""
    new = ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    return new if root else [*new, "--unshare-user", "--disable-userns"]


def _command(launch: Launch, uid: int | None) -> tuple[list[str], list[str]]:
    """bubblewrap's options; and the command line to run: programs that drop privileges, then the runner."""
    options = [
        *_namespaces(uid is not None),
        "--die-with-parent",
        "--new-session",
        "--hostname",
        "runner",
        "--clearenv",
        "--cap-drop",
        "ALL",
    ]
    if uid is not None:
        options += [word for name in ("SETUID", "SETGID", "SETPCAP") for word in ("--cap-add", f"CAP_{name}")]
    toolkit = gpu.toolkit()
    libraries = gpu.driver_libraries() if launch.device == "cuda" else ()
    driver = [*libraries, *map(Path, _FOR_A_DRIVER)] if libraries else []
    tools = [path for path in (toolkit, launch.watcher and launch.watcher.directory) if path]
    places = {path: str(path) for path in _system_paths([*tools, *driver])}
    # connect() needs write permission on the socket's inode, which a read-only mount does not affect.
    places |= {inside.staged(launch): inside.ROOT, launch.socket: inside.SOCKET}
    options += ["--proc", "/proc", "--dev", "/dev"]
    # The whole machine shares the number of pseudo-terminals, so an empty file system is mounted over devpts.
    options += ["--perms", "0555", "--size", "4096", "--tmpfs", "/dev/pts", "--remount-ro", "/dev/pts"]
    options += _parents([inside.HOME, inside.TMPDIR, *places.values()])
    sizes_bytes = {inside.HOME: launch.disk_bytes, inside.TMPDIR: launch.disk_bytes, "/dev/shm": inside.SHM_BYTES}
    for at, size_bytes in sizes_bytes.items():
        options += ["--perms", "1777", "--size", str(size_bytes), "--tmpfs", at]
    # The interpreter may be below TMPDIR, where the new file system hides it, so it is bound again.
    options += _parents([at for at in places.values() if at.startswith(f"{inside.TMPDIR}/")], below=inside.TMPDIR)
    for path, at in places.items():
        options += _bind(path, at)
    if launch.device == "cuda":
        for node in gpu.device_nodes(launch.gpu_index):
            options += ["--dev-bind", str(node), str(node)]
    options += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", inside.HOME]
    search_path = inside.search_path(Path(sys.executable).parent, *([toolkit / "bin"] if toolkit else []))
    searched = gpu.library_path(libraries, host_system=True)
    extra = {"LD_LIBRARY_PATH": searched} if searched else {}
    variables = inside.environment(launch, path=search_path, extra=extra)
    runner = inside.command(sys.executable, inside.runner(launch), inside.SOCKET, variables, launch.watcher)
    return options, [*_drop_privileges(launch, uid), *runner]


def _system_paths(wanted: Iterable[Path]) -> list[Path]:
    """The paths of the system, the interpreter and `wanted` that exist, without paths below others."""
    prefixes = {Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).resolve().parent.parent}
    paths: list[Path] = []
    for path in [*map(Path, _SYSTEM), *sorted(prefixes), *wanted]:
        if path.exists() and not any(path.is_relative_to(above) for above in paths):
            paths.append(path)
    return paths


def _bind(path: Path, at: str) -> list[str]:
    """The options for a read-only bind; a symbolic link at the root (/bin → usr/bin) stays a link."""
    if path.is_symlink() and str(path) == at and len(path.parts) == 2:
        return ["--symlink", str(path.readlink()), at]
    return ["--ro-bind", str(path), at]


def _parents(places: Iterable[str], below: str = "/") -> list[str]:
    """The options that make the parent directories of the paths. Only root could enter those that bubblewrap makes."""
    parents = {parent for at in places for parent in Path(at).parents if Path(below) in parent.parents}
    return [word for parent in sorted(parents) for word in ("--perms", "0755", "--dir", str(parent))]


def _drop_privileges(launch: Launch, uid: int | None) -> list[str]:
    """The command line that drops privileges just before the runner starts.

    Since Linux 5.14 the process limit in a user namespace counts only that namespace. Earlier kernels count all of the
    user's processes, so there the limit is enforced by polling.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = _FILES if most == resource.RLIM_INFINITY else min(_FILES, most)  # inside, nothing may raise it
    limit = ["prlimit", f"--nofile={files}:{files}"]
    if uid is None:
        release = tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2])
        return [*limit, *([f"--nproc={launch.processes}:{launch.processes}"] if release >= (5, 14) else []), "--"]
    drop = [
        "setpriv",
        f"--reuid={uid}",
        f"--regid={uid}",
        "--clear-groups",
        "--inh-caps=-all",
        "--ambient-caps=-all",
        "--bounding-set=-all",
        "--no-new-privs",
        "--",
    ]
    return [*drop, *limit, f"--nproc={launch.processes}:{launch.processes}", "--"]
