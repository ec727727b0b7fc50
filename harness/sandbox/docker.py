"""The Docker sandbox, the default if a daemon answers. Trusted.

Each run has a container: no network, a read-only root, an unprivileged user, no capabilities, the daemon's seccomp
filter and our own, and limits that the kernel enforces (memory, processes, the size of both scratch file systems). The
daemon receives few requests: create, start and inspect at the start, inspect after the end, and remove, for which no
verdict waits.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from harness.errors import SandboxError
from harness.files.outside import real
from harness.kinds import SandboxName
from harness.sandbox import cgroup, ending, gpu, inside, seccomp, uids
from harness.sandbox import tree as process_tree
from harness.sandbox.limits import too_many_sockets
from harness.sandbox.protocol import CLOSE_S, STARTUP_LOG_BYTES, Breach, Exit, Launch

LABEL, JUDGE_LABEL = "kernelmark", "kernelmark.judge"
DAEMON_S = 30
_AGAIN_S = 0.5
_BYTES_PER_FILE = 4096
# The daemon learns of an OOM kill by another channel than of the exit itself, and sometimes later.
OOM_NEWS_S = 0.5


class Docker:
    """Provider of containers.

    Attributes:
        binds: host paths that a thin image lacks (/usr, /opt).
        python: the Python inside the container.
    """

    name: SandboxName = "docker"

    def __init__(self, image: str, binds: Sequence[Path] = (), python: str = "python3") -> None:
        self.image, self.python = image, python
        self.binds = tuple(binds)

    def unavailable(self) -> str | None:
        try:
            with _translated():
                self._image_id()
        except SandboxError as error:
            return str(error)
        return None

    def image_digest(self) -> str | None:
        """The image's id.

        Raises:
            SandboxError: there is no daemon or no image.
        """
        with _translated():
            return self._image_id()

    def shows(self, path: Path) -> bool:
        return any(real(path).is_relative_to(real(bind)) for bind in self.binds)

    def launch(self, launch: Launch) -> Container:
        """Create and start a container.

        Raises:
            SandboxError: the daemon refused, a host path is missing, or there is no such GPU.
        """
        with _translated(), contextlib.ExitStack() as undone:
            uid = uids.take(self._uids)
            undone.callback(uids.release, uid)
            created: str = self._api.create_container(
                self.image,
                command=self._command(launch),
                use_config_proxy=False,  # the account's proxy settings may contain passwords
                entrypoint=[],
                user=f"{uid}:{uid}",
                working_dir=inside.HOME,
                hostname="runner",
                labels={LABEL: "runner", JUDGE_LABEL: f"{_process_space()} {os.getpid()}"},
                host_config=self._host_config(launch, uid),
            )["Id"]
            container = Container(self._api, created, uid, launch.memory_bytes)
            undone.pop_all()
            try:
                self._api.start(created)
                container.watch()
                _ = self._swept_once
            except BaseException:
                container.close()
                raise
            return container

    def _command(self, launch: Launch) -> list[str]:
        variables, program = self._environment(launch), inside.runner(launch)
        if (refused := seccomp.program(watched=launch.watcher is not None)) is None:
            return inside.command(self.python, program, inside.SOCKET, variables, launch.watcher)
        *begin, entered, socket = inside.command(self.python, inside.ENTER, inside.SOCKET, variables, launch.watcher)
        return [*begin, entered, refused.hex(), program, socket]

    @cached_property
    def _api(self) -> Any:
        import docker

        return docker.from_env(timeout=DAEMON_S).api

    @cached_property
    def _daemon(self) -> dict[str, Any]:
        described: dict[str, Any] = self._api.info()
        return described

    @cached_property
    def _gpu_way(self) -> gpu.Way:
        return gpu.way_for_docker(self._daemon)

    @property
    def _uids(self) -> range:
        return uids.among(self._daemon)

    @cached_property
    def _swept_once(self) -> bool:
        """Remove, once, the containers that killed judges left on this machine."""
        for container in self._api.containers(all=True, filters={"label": f"{LABEL}=runner"}):
            space, _, judge = container["Labels"].get(JUDGE_LABEL, "").rpartition(" ")
            if space == _process_space() and not Path("/proc", judge).exists():
                _remove(self._api, container["Id"])
        return True

    def _image_id(self) -> str:
        return str(self._api.inspect_image(self.image)["Id"])

    def _is_bound(self, path: Path) -> bool:
        return any(path.is_relative_to(bind) for bind in self.binds)

    def _libraries(self, launch: Launch) -> tuple[Path, ...]:
        return gpu.driver_libraries() if launch.device == "cuda" and self._gpu_way == "nodes" else ()

    def _environment(self, launch: Launch) -> dict[str, str]:
        toolkit = gpu.toolkit()
        programs = [toolkit / "bin"] if toolkit else []
        if Path(self.python).is_absolute():  # its directory also contains programs of its packages, such as ninja
            programs.append(Path(self.python).parent)
        searched = gpu.library_path(self._libraries(launch), host_system=self._is_bound(Path("/usr")))
        extra = {"LD_LIBRARY_PATH": searched} if searched else {}
        return inside.environment(launch, path=inside.search_path(*programs, Path("/usr/local/cuda/bin")), extra=extra)

    def _mounts(self, launch: Launch, uid: int) -> list[Any]:
        from docker.types import Mount

        places = {path: str(path) for path in self.binds}
        tools = [path for path in (gpu.toolkit(), launch.watcher and launch.watcher.directory) if path]
        wanted = [*self._libraries(launch), *tools]
        places |= {path: str(path) for path in wanted if not self._is_bound(path)}
        places[inside.staged(launch)] = inside.ROOT
        users = launch.socket.with_name("passwd")
        users.write_text(uids.passwd(uid))
        users.chmod(0o644)
        places[users] = "/etc/passwd"
        mounts = [Mount(at, str(path), type="bind", read_only=True) for path, at in places.items()]
        # connect() needs write permission on the socket's inode, which a read-only mount does not affect.
        return [*mounts, Mount(inside.SOCKET, str(launch.socket), type="bind", read_only=True)]

    def _host_config(self, launch: Launch, uid: int) -> Any:
        from docker.types import LogConfig, Ulimit

        # The user must own the file system, because runc gives it the mode of an existing directory.
        scratch = f"rw,exec,nosuid,nodev,uid={uid},gid={uid},mode=0700,size={launch.disk_bytes}"
        scratch += f",nr_inodes={launch.disk_bytes // _BYTES_PER_FILE}"  # even an empty file takes kernel memory
        return self._api.create_host_config(
            network_mode="none",
            read_only=True,
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
            ipc_mode="private",
            init=True,
            mem_limit=launch.memory_bytes,
            memswap_limit=launch.memory_bytes,
            cpuset_cpus=",".join(map(str, launch.cpus)) or None,
            pids_limit=launch.processes,
            shm_size=inside.SHM_BYTES,
            # The whole machine shares the number of pseudo-terminals, so an empty file system replaces devpts.
            tmpfs={inside.HOME: scratch, inside.TMPDIR: scratch, "/dev/pts": "ro,size=4k"},
            mounts=self._mounts(launch, uid),
            # As in `inside.core_bytes`, but the daemon may always set it.
            ulimits=[Ulimit(name="core", soft=1, hard=1), Ulimit(name="nofile", soft=4096, hard=4096)],
            log_config=LogConfig(type="json-file", config={"max-size": "64k", "max-file": "1"}),
            **self._gpu_options(launch),
        )

    def _gpu_options(self, launch: Launch) -> dict[str, Any]:
        from docker.types import DeviceRequest

        if launch.device != "cuda":
            return {}
        if self._gpu_way == "nodes":
            return {"devices": [f"{node}:{node}:rw" for node in gpu.device_nodes(launch.gpu_index)]}
        if self._gpu_way == "cdi":
            return {"device_requests": [DeviceRequest(driver="cdi", device_ids=[f"nvidia.com/gpu={launch.gpu_index}"])]}
        capabilities = [["gpu", "compute", "utility"]]
        ids = [str(launch.gpu_index)]
        return {"device_requests": [DeviceRequest(driver="nvidia", device_ids=ids, capabilities=capabilities)]}


class Container:
    """One running container."""

    def __init__(self, api: Any, container: str, uid: int, memory_bytes: int) -> None:
        self._api, self._id, self._uid, self._memory_bytes = api, container, uid, memory_bytes
        self._pidfd = self._pid = -1
        self._group: Path | None = None
        self._died_at: float | None = None
        self._exit: Exit | None = None
        self._closed = False

    def watch(self) -> None:
        """Open a descriptor of the first process, so that its exit is noticed without a request to the daemon.

        This is impossible if the daemon's process ids are not valid here (a remote daemon, a judge in a container).
        Then every call of `ended` is a request to the daemon.
        """
        pid = self._api.inspect_container(self._id)["State"]["Pid"]
        with contextlib.suppress(OSError, AttributeError):
            pidfd = os.pidfd_open(pid)
            # Checked after opening, so that the descriptor certainly belongs to a process of our container.
            if self._id in Path(f"/proc/{pid}/cgroup").read_text():
                self._pidfd, self._pid, self._group = pidfd, pid, cgroup.group_of(pid)
                if self._group is not None:
                    cgroup.limit_sockets(self._group)  # runc ignores Docker's own option for it
            else:
                os.close(pidfd)

    def ended(self) -> Exit | None:
        if self._exit is None and not (self._pidfd >= 0 and not select.select([self._pidfd], [], [], 0)[0]):
            with _translated():
                self._exit = self._inspect()
        return self._exit

    def breach(self) -> Breach | None:
        """Check the sockets, and whether the kernel killed the runner or a process that it started.

        This works only if the container's processes and their control group are visible here. `ended` reports the
        runner's own exit. The kernel enforces all other limits.

        Raises:
            SandboxError: the kernel killed a process for lack of memory, and not of the sandbox's own.
        """
        if self._closed or self._pidfd < 0:
            return None
        if self._group is not None and cgroup.exceeded(self._group):
            return Breach("memory", f"more than {self._memory_bytes:,} bytes of memory requested")
        return too_many_sockets(self._pid, self._pidfd)

    def cpu_ns(self) -> int | None:
        """The CPU time, as in `Sandbox`; None if the daemon's process ids are not valid here."""
        return process_tree.cpu_ns(process_tree.tree({self._pid})) if self._pidfd >= 0 else None

    def close(self) -> None:
        """Kill all processes if this process may, and let the daemon remove the container afterwards.

        Otherwise the daemon kills and removes the container now. It gives up on a slow kill, so the request is
        repeated as needed.

        Raises:
            SandboxError: the container is still there, or the daemon is gone; the next judge will remove it.
        """
        if self._closed:
            return
        self._closed = True
        pidfd, self._pidfd = self._pidfd, -1
        try:
            killed = pidfd >= 0 and self._kill(pidfd)
        finally:
            if pidfd >= 0:
                os.close(pidfd)
        if killed:
            ending.later(self._remove)
        else:
            self._remove()

    def _kill(self, pidfd: int) -> bool:
        """Kill the first process of the PID namespace; the kernel ends all others before it reports that death.

        Returns whether this process may do that. Unless the judge is root, usually only the daemon may.

        Raises:
            SandboxError: the process does not end.
        """
        try:
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        except PermissionError:
            return False
        except ProcessLookupError:
            pass  # it has ended, and so have all others
        if not select.select([pidfd], [], [], CLOSE_S)[0]:
            raise SandboxError(f"the sandbox's first process {self._pid} cannot be killed", "look at `ps -l`")
        return True

    def _remove(self) -> None:
        with _translated():
            _remove_until_gone(self._api, self._id)
        uids.release(self._uid)

    def startup_log(self) -> str:
        with _translated():
            printed: bytes = self._api.logs(self._id, stdout=True, stderr=True, tail=1000)
        return printed[-STARTUP_LOG_BYTES:].decode("utf-8", "replace")

    def _inspect(self) -> Exit | None:
        state = self._api.inspect_container(self._id)["State"]
        if state["Running"]:
            return None
        now = time.monotonic()
        self._died_at = self._died_at or now
        code, out_of_memory = int(state["ExitCode"]), bool(state["OOMKilled"])
        if code == 128 + 9 and not out_of_memory and now - self._died_at < OOM_NEWS_S:
            return None
        return inside.exit_of_init(code, out_of_memory)


def _remove(api: Any, container: str) -> None:
    """Kill and remove a container, unless another judge does."""
    import docker

    try:
        api.remove_container(container, force=True, v=True)
    except docker.errors.NotFound:
        return
    except docker.errors.APIError as error:
        if error.status_code != 409:
            raise


def _remove_until_gone(api: Any, container: str) -> None:
    """Kill and remove a container of this judge.

    The request is repeated for `CLOSE_S` while the daemon refuses or does not answer in time, and for `DAEMON_S` while
    it is not running.
    """
    import docker
    import requests

    begun = time.monotonic()
    while True:
        try:
            api.remove_container(container, force=True, v=True)
            return
        except docker.errors.NotFound:
            return
        except requests.RequestException as error:
            unreachable = isinstance(error, requests.ConnectionError) and not isinstance(error, requests.Timeout)
            if time.monotonic() - begun > (DAEMON_S if unreachable else CLOSE_S):
                raise
        time.sleep(_AGAIN_S)


@cache
def _process_space() -> str:
    """Identify where process ids are valid: this boot and this PID namespace."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    return f"{boot.read_text().strip()} {Path('/proc/self/ns/pid').readlink()}" if boot.exists() else "unknown"


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    """Turn exceptions of the SDK into a `SandboxError` with its remedy."""
    try:
        import docker
        import requests
    except ImportError as error:
        raise SandboxError(f"the Python package {error.name!r} is not installed", "run `pip install docker`") from error
    try:
        yield
    except docker.errors.ImageNotFound as error:
        raise SandboxError(f"there is no such image ({error.explanation})", "run `make image`") from error
    except docker.errors.APIError as error:
        raise SandboxError(f"the Docker daemon refused ({error.explanation or error})") from error
    except (docker.errors.DockerException, requests.RequestException) as error:
        if "Permission denied" in str(error):
            raise SandboxError("this user may not use the Docker daemon", "add it to the group docker") from error
        raise SandboxError(f"no Docker daemon answers ({error})", "start dockerd, or set DOCKER_HOST") from error
