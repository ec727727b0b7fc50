"""The conformance suite: one set of tests that every sandbox provider passes for what it claims.

Each test starts a small script where the runner would stand. The script connects to the judge's socket as the runner
does, tries something from inside, and reports what it found as JSON.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import resource
import secrets
import select
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest

from harness import sandbox
from harness.errors import SandboxError
from harness.sandbox import Exit, Launch, Sandbox, bwrap, cgroup, ending, gpu
from harness.sandbox.cgroup import MemoryGroup
from harness.verdict import SandboxName
from tests.leftovers import groups
from tests.open_files import open_files

REPO = Path(__file__).resolve().parents[2]
MIB = 1 << 20
START_S = 120.0  # far more than a start takes, with torch's import, on a machine that is busy with other tests

# What a provider promises beyond running the program. A test that names a claim runs for the providers that make it.
ISOLATION = frozenset({"identity", "files", "network", "host processes", "disk", "kernel limit on processes"})
CLAIMS: dict[SandboxName, frozenset[str]] = {"docker": ISOLATION, "bwrap": ISOLATION, "process": frozenset()}
MARKS = {"docker": [pytest.mark.docker], "bwrap": [pytest.mark.bwrap], "process": []}

PROLOGUE = """
import ctypes, errno, json, os, resource, signal, socket, subprocess, sys, time
judge = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
judge.connect(sys.argv[1])
def report(**facts): judge.send(json.dumps(facts).encode())
def attempt(action):
    try: action()
    except OSError as error: return errno.errorcode[error.errno]
    return "done"
"""


def providers(claim: str | None = None) -> pytest.MarkDecorator:
    """Parametrises a test over the providers that make the claim."""
    names = [name for name, claims in CLAIMS.items() if claim is None or claim in claims]
    return pytest.mark.parametrize("name", [pytest.param(name, marks=MARKS[name]) for name in names])


@dataclass
class Judge:
    """The judge's side of one launch."""

    sandbox: Sandbox
    listener: socket.socket
    token: str
    directory: Path
    containers: tuple[str, ...] = ()
    connection: socket.socket | None = None

    def report(self, within_s: float = START_S) -> dict[str, Any]:
        """The script's next report."""
        if self.connection is None:
            eventually(lambda: select.select([self.listener], [], [], 0)[0] or self.sandbox.ended())
            assert select.select([self.listener], [], [], 0)[0], f"it ended: {self.story()}"
            self.connection, _ = self.listener.accept()
        self.connection.settimeout(within_s)
        packet = self.connection.recv(MIB)
        assert packet, f"it hung up: {self.story()}"
        facts: dict[str, Any] = json.loads(packet)
        return facts

    def story(self) -> str:
        return f"{self.sandbox.ended()}; it printed: {self.sandbox.startup_log()}"

    def ended(self, within_s: float = START_S) -> Exit:
        return eventually(self.sandbox.ended, within_s)

    def left(self) -> list[str]:
        """Command lines of living processes that belong to this launch; the daemon has its own, for each container."""
        return [line for line in map(self._belongs, Path("/proc").glob("[0-9]*")) if line]

    def _belongs(self, process: Path) -> str:
        """They carry the launch's token, or are in the control group of its container."""
        with suppress(OSError):
            daemons = (process / "exe").readlink().name.startswith("containerd-shim")
            if daemons or (process / "cmdline").read_bytes().startswith(b"runc\0") or process.name == str(os.getpid()):
                return ""
        held = b""
        for name in ("cmdline", "environ", "cgroup"):
            with suppress(OSError):
                held += (process / name).read_bytes()
        with suppress(OSError):
            if any(mark.encode() in held for mark in (self.token, *self.containers)):
                return f"{process.name}: {(process / 'cmdline').read_text()[:200]!r}"
        return ""


T = TypeVar("T")


def eventually(look: Callable[[], T | None], within_s: float = START_S) -> T:
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if (seen := look()) is not None:
            return seen
        time.sleep(0.02)
    raise AssertionError(f"did not happen within {within_s} s")


@cache
def provider(name: SandboxName) -> sandbox.Provider:
    """One for all tests, as a judge has one for all gradings."""
    return sandbox.provider(name)


def descriptors() -> Counter[str]:
    """What this process has open, without Docker's client, which keeps a connection for each of the last 25 URLs."""
    provider.cache_clear()
    gc.collect()
    return open_files()


def containers_with(token: str) -> tuple[str, ...]:
    """Ids of containers, dead ones too, that carry the token."""
    if provider("docker").unavailable():
        return ()
    import docker

    with closing(docker.from_env()) as client:
        every = client.containers.list(all=True, filters={"label": "kernelmark=runner"}, ignore_removed=True)
        return tuple(container.id or "" for container in every if token in json.dumps(container.attrs))


@contextmanager
def launched(name: SandboxName, program: str, **changes: Any) -> Iterator[Judge]:
    """A sandbox of that provider which runs the program; closed afterwards, whatever happened."""
    token = secrets.token_hex(16)
    with tempfile.TemporaryDirectory(prefix="judge-") as made:
        directory = Path(made)
        directory.chmod(0o700)
        script = directory / "script.py"
        script.write_text(PROLOGUE + textwrap.dedent(program))
        script.chmod(0o644)
        path = directory / "socket"
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(str(path))
            path.chmod(0o666)
            listener.listen(1)
            limits = {"memory_bytes": 512 * MIB, "processes": 64, "disk_bytes": 8 * MIB, **changes}
            launch = Launch(socket=path, device="cpu", environment={"TOKEN": token}, program=script, **limits)
            judge = Judge(provider(name).launch(launch), listener, token, directory)
            try:
                if name == "docker":
                    judge.containers = containers_with(token)
                    assert judge.containers
                yield judge
            finally:
                judge.sandbox.close()
                if judge.connection:
                    judge.connection.close()


def report_of(name: SandboxName, program: str, within_s: float = START_S, **changes: Any) -> dict[str, Any]:
    """The first report of a program in a sandbox that is then closed."""
    with launched(name, program, **changes) as judge:
        return judge.report(within_s)


@pytest.fixture(scope="module")
def inspect_inside() -> Iterator[Callable[[SandboxName], dict[str, Any]]]:
    """What a script finds inside, once for each provider; several tests read it."""
    found: dict[SandboxName, dict[str, Any]] = {}
    os.environ["SECRET_OF_THE_JUDGE"] = "s3cret"

    def inspect(name: SandboxName) -> dict[str, Any]:
        if name not in found:
            with launched(name, INSPECTION) as judge:
                found[name] = judge.report() | {"token": judge.token, "directory": str(judge.directory)}
        return found[name]

    yield inspect
    del os.environ["SECRET_OF_THE_JUDGE"]


INSPECTION = f"""
status = dict(line.rstrip("\\n").split(":\\t", 1) for line in open("/proc/self/status"))
def names(at):
    try: return sorted(os.listdir(at))
    except OSError as error: return errno.errorcode[error.errno]
def text(path):
    try: return open(path).read()
    except OSError: return ""
def write(path): return attempt(lambda: open(path, "w").close())
home, tmpdir = os.environ["HOME"], os.environ["TMPDIR"]
def executes(at):
    open(at + "/tool", "w").write("#!/bin/sh\\nexit 7")
    os.chmod(at + "/tool", 0o755)
    return subprocess.run([at + "/tool"]).returncode
report(
    identity=[os.getuid(), os.geteuid(), os.getgid(), os.getegid()], groups=os.getgroups(),
    capabilities=[status["Cap" + kind] for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb")],
    no_new_privileges=status["NoNewPrivs"], environment=dict(os.environ), directory_inside=os.getcwd(),
    descriptors={{fd: os.readlink("/proc/self/fd/" + fd) for fd in os.listdir("/proc/self/fd")
                 if os.path.exists("/proc/self/fd/" + fd)}},
    own_socket=judge.fileno(),
    repository=names({str(REPO)!r}), root_home=names("/root"),
    runner_files=names("/kernelmark/harness"),
    writes={{path: write(path + "/x") for path in ("", "/etc", "/usr", "/usr/bin", "/kernelmark", "/kernelmark/harness",
            "/run", "/home", "/dev", "/proc", "/var", "/sys")}},
    socket_write=attempt(lambda: os.chmod(sys.argv[1], 0o600)),
    shown=[text(f"/proc/{{pid}}/{{name}}") for pid in os.listdir("/proc") if pid.isdecimal()
           for name in ("cmdline", "environ")],
    processes=[int(pid) for pid in os.listdir("/proc") if pid.isdecimal()], own_pid=os.getpid(),
    executes=[executes(home), executes(tmpdir)], sysrq=write("/proc/sysrq-trigger"),
    interfaces=[interface for _, interface in socket.if_nameindex()],
)
"""


@providers()
def test_the_runner_starts_in_a_clean_place(inspect_inside: Any, name: SandboxName) -> None:
    seen = inspect_inside(name)
    home, tmpdir = seen["environment"]["HOME"], seen["environment"]["TMPDIR"]
    expected = {
        "TOKEN": seen["token"],
        "PATH": seen["environment"]["PATH"],
        "HOME": home,
        "TMPDIR": tmpdir,
        "LANG": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        "XDG_CACHE_HOME": f"{home}/.cache",
        "TRITON_CACHE_DIR": f"{home}/.triton",
    }
    mark = {"KERNELMARK_RUN": seen["environment"].get("KERNELMARK_RUN")} if name == "process" else {}
    assert seen["environment"] == expected | mark
    assert seen["directory_inside"] == home
    assert seen["executes"] == [7, 7]
    if "files" in CLAIMS[name]:
        assert (home, tmpdir) == ("/home/runner", "/tmp")


@providers()
def test_no_descriptor_of_the_judge_comes_along(inspect_inside: Any, name: SandboxName) -> None:
    seen = inspect_inside(name)
    held = dict(seen["descriptors"])
    assert held.pop("0") == "/dev/null"
    assert held.pop("1").startswith("pipe:")
    assert held.pop("2").startswith("pipe:")
    assert held.pop(str(seen["own_socket"])).startswith("socket:")
    assert held == {}


@providers("identity")
def test_identity(inspect_inside: Any, name: SandboxName) -> None:
    seen = inspect_inside(name)
    assert 0 not in seen["identity"]
    assert 0 not in seen["groups"]
    assert seen["capabilities"] == ["0" * 16] * 5
    assert seen["no_new_privileges"] == "1"


@providers("identity")
def test_no_rights_can_be_gained(name: SandboxName) -> None:
    """A user namespace would give all capabilities inside it; keyrings are shared by the whole machine."""
    program = """
        libc = ctypes.CDLL(None, use_errno=True)
        def call(function, *arguments):
            return "done" if function(*arguments) >= 0 else errno.errorcode[ctypes.get_errno()]
        NEWUSER, KEYCTL = 0x10000000, {"x86_64": 250, "aarch64": 219}[os.uname().machine]
        GET_KEYRING_ID, SESSION = 0, -3
        report(unshare=call(libc.unshare, NEWUSER), keyctl=call(libc.syscall, KEYCTL, GET_KEYRING_ID, SESSION, 0),
               mount=call(libc.mount, b"none", b"/tmp", b"tmpfs", 0, None), chroot=call(libc.chroot, b"/tmp"),
               setuid=call(libc.setuid, 0), child=subprocess.run(["true"]).returncode)
    """
    report = report_of(name, program)
    assert report.pop("child") == 0
    assert report.pop("setuid") in ("EPERM", "EINVAL")  # EINVAL: a user namespace in which there is no user 0
    assert set(report.values()) == {"EPERM"}, report


@providers("files")
def test_files_of_the_host(inspect_inside: Any, name: SandboxName) -> None:
    seen = inspect_inside(name)
    # A virtual environment inside the checkout is all that may be seen of it.
    if seen["repository"] != "ENOENT":
        assert {REPO / entry for entry in seen["repository"]} == {Path(sys.prefix)}
    interpreter = {part for prefix in (sys.prefix, sys.base_prefix) for part in Path(prefix).parts}
    assert seen["root_home"] in ("EACCES", "ENOENT") or set(seen["root_home"]) <= interpreter
    modules = {"__init__.py", "arena", "errors.py", "languages", "recording", "runner", "shared", "wire"}
    assert modules == set(seen["runner_files"])
    assert "done" not in seen["writes"].values(), seen["writes"]
    assert seen["socket_write"] != "done"
    assert seen["sysrq"] != "done"
    with launched(
        name, "report(names=os.listdir(os.path.dirname(sys.argv[1])), seen=os.path.exists(sys.argv[0]))"
    ) as judge:
        assert judge.report()["seen"]
        with launched(name, f"report(reached=os.path.exists({str(judge.directory)!r}))") as other:
            assert other.report() == {"reached": False}


@providers("host processes")
def test_processes_of_the_host(inspect_inside: Any, name: SandboxName) -> None:
    seen = inspect_inside(name)
    assert set(seen["processes"]) <= set(range(1, seen["own_pid"] + 1))
    assert len(seen["processes"]) <= 4
    for secret in ("s3cret", str(REPO), seen["directory"]):
        assert not [shown for shown in seen["shown"] if secret in shown.replace(sys.prefix, "")]
    key = 0x6B6D
    program = f"report(queue=ctypes.CDLL(None).msgget({key}, 0))"
    libc = ctypes.CDLL(None)
    ours = libc.msgget(key, 0o1666)  # IPC_CREAT, for everybody
    assert ours >= 0
    try:
        with launched(name, program) as judge:
            report = judge.report()
    finally:
        libc.msgctl(ours, 0, None)
    assert report["queue"] == -1, "a message queue of the host is in reach"


@providers("network")
def test_network(inspect_inside: Any, name: SandboxName) -> None:
    assert inspect_inside(name)["interfaces"] == ["lo"]
    abstract = f"\0kernelmark-{secrets.token_hex(8)}"
    with socket.create_server(("0.0.0.0", 0)) as tcp, socket.socket(socket.AF_UNIX) as unix:
        unix.bind(abstract)
        unix.listen()
        program = f"""
            def connect(family, address): return attempt(lambda: socket.socket(family).connect(address))
            report(tcp=connect(socket.AF_INET, ("127.0.0.1", {tcp.getsockname()[1]})),
                   far=connect(socket.AF_INET, ("192.0.2.1", 80)),
                   unix=connect(socket.AF_UNIX, {abstract!r}))
        """
        with launched(name, program) as judge:
            assert judge.report() == {"tcp": "ECONNREFUSED", "far": "ENETUNREACH", "unix": "ECONNREFUSED"}


@providers("disk")
@pytest.mark.parametrize("variable", ["HOME", "TMPDIR"])
def test_scratch_is_bounded(name: SandboxName, variable: str) -> None:
    program = f"""
        written = 0
        def fill():
            global written
            with open(os.environ[{variable!r}] + "/hog", "wb", buffering=0) as file:
                for _ in range(64): written += file.write(bytes(1 << 20))
        report(ended=attempt(fill), written=written)
    """
    report = report_of(name, program)
    assert report["ended"] == "ENOSPC"
    assert 7 * MIB <= report["written"] <= 8 * MIB


@providers()
def test_a_memory_hog_is_distinguished_from_a_crash(name: SandboxName) -> None:
    program = """
        report()
        held = []
        for _ in range(60):
            held.append(b"x" * (8 << 20))
            time.sleep(0.02)
        report(survived=True)
        time.sleep(60)
    """
    with launched(name, program, memory_bytes=128 * MIB) as judge:
        judge.report()

        def reported() -> bool | None:
            breach, end = judge.sandbox.breach(), judge.sandbox.ended()
            assert end is None or end.out_of_memory or breach, end
            return (breach is not None and breach.kind == "memory") or (end is not None and end.out_of_memory) or None

        assert eventually(reported)


@pytest.mark.bwrap
def test_a_sandbox_starts_also_where_fewer_files_may_be_open(monkeypatch: pytest.MonkeyPatch) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    monkeypatch.setattr(bwrap, "_FILES", hard + 1)  # this process could not lower its own limit for this test alone
    with launched("bwrap", "report(files=resource.getrlimit(resource.RLIMIT_NOFILE))") as judge:
        assert judge.report() == {"files": [hard, hard]}


@pytest.mark.bwrap
def test_a_machine_without_memory_is_no_fault_of_the_submission(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container or a job of Slurm with less memory than a problem allows."""
    group = MemoryGroup.create(128 * MIB)
    if group is None:
        pytest.skip("this user may make no control group here")
    folder = group.entrance.parent
    with suppress(OSError):  # of version 2 alone
        (folder / "cgroup.subtree_control").write_text("+memory")
    monkeypatch.setattr(cgroup, "_candidates", lambda: [folder])
    program = """
        report()
        held = []
        while True:
            held.append(b"x" * (8 << 20))
    """
    try:
        with launched("bwrap", program, memory_bytes=512 * MIB) as judge:
            judge.report()
            with pytest.raises(SandboxError, match="had no memory left"):
                eventually(judge.sandbox.breach)
    finally:
        assert group.remove(START_S)


@providers()
def test_a_fork_bomb_is_bounded_and_leaves_nothing(name: SandboxName) -> None:
    program = """
        children = 0
        def bomb():
            global children
            for _ in range(80):
                if os.fork() == 0:
                    os.setsid()
                    signal.pause()
                children += 1
        report(ended=attempt(bomb), children=children)
        signal.pause()
    """
    with launched(name, program, processes=32) as judge:
        report = judge.report()
        if "kernel limit on processes" in CLAIMS[name]:
            assert report["ended"] == "EAGAIN"
            assert 8 <= report["children"] <= 32
        else:
            breach = judge.sandbox.breach()
            assert breach.kind == "processes"
        assert len(judge.left()) > 8
        judge.sandbox.close()
        assert judge.left() == []


@providers("files")
def test_a_sandbox_keeps_to_its_processors(name: SandboxName) -> None:
    one = max(os.sched_getaffinity(0))
    assert report_of(name, "report(cpus=sorted(os.sched_getaffinity(0)))", cpus=(one,))["cpus"] == [one]


@providers("kernel limit on processes")
def test_two_sandboxes_do_not_share_their_limits(name: SandboxName) -> None:
    program = """
        for _ in range(20):
            if os.fork() == 0: signal.pause()
        report(children=20)
        signal.pause()
    """
    with launched(name, program, processes=32) as one, launched(name, program, processes=32) as two:
        assert one.report() == two.report() == {"children": 20}


@providers()
def test_a_daemon_dies_with_its_sandbox(name: SandboxName) -> None:
    program = """
        running, says = os.pipe()
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                for fd in range(3): os.close(fd)
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                signal.signal(signal.SIGHUP, signal.SIG_IGN)
                report(daemon=True)
                os.write(says, b"!")
                while True: time.sleep(60)
            os._exit(0)
        os.wait()
        os.read(running, 1)
        os._exit(0)
    """
    with launched(name, program) as judge:
        assert judge.report() == {"daemon": True}
        assert judge.ended() == Exit(0, None)
        judge.sandbox.close()
        assert judge.left() == []


@providers()
def test_close_leaves_nothing_and_may_be_repeated(name: SandboxName, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with launched(name, "report()") as judge:  # what a provider keeps for good, it has afterwards
        judge.report()
    ending.wait()
    assert containers_with(judge.token) == ()
    del judge  # with its client
    before = descriptors()
    program = """
        os.makedirs(os.environ["HOME"] + "/deep/er")
        open(os.environ["HOME"] + "/deep/er/file", "w").close()
        os.chmod(os.environ["HOME"] + "/deep", 0)
        os.symlink("/", os.environ["TMPDIR"] + "/all")
        report()
        signal.pause()
    """
    with launched(name, program) as judge:
        judge.report()
        judge.sandbox.close()
        judge.sandbox.close()
        assert judge.left() == []
        ending.wait()
        assert containers_with(judge.token) == ()
        assert groups([os.getpid()]) == []
    assert list(tmp_path.iterdir()) == []
    assert judge.token not in Path("/proc/self/mountinfo").read_text()
    del judge
    after = descriptors()
    assert after.total() <= before.total(), f"opened: {after - before}"


ENDS = [
    pytest.param("print('no such luck', flush=True); sys.exit(3)", Exit(3, None), "no such luck", id="exits"),
    pytest.param("os.kill(os.getpid(), signal.SIGSEGV)", Exit(None, signal.SIGSEGV), "", id="crashes"),
    pytest.param("raise ValueError('at start')", Exit(1, None), "ValueError: at start", id="raises"),
]


@providers()
@pytest.mark.parametrize(("program", "expected", "printed"), ENDS)
def test_a_start_that_fails(name: SandboxName, program: str, expected: Exit, printed: str) -> None:
    with launched(name, program) as judge:
        assert judge.ended() == expected
        assert printed in judge.sandbox.startup_log()
        judge.sandbox.close()
        judge.sandbox.close()


@providers()
def test_a_flood_of_output_is_bounded(name: SandboxName) -> None:
    program = """
        report()
        for _ in range(64): os.write(1, b"x" * (1 << 20))
        report(done=True)
    """
    with launched(name, program) as judge:
        judge.report()
        assert len(eventually(lambda: judge.sandbox.startup_log() or None)) <= sandbox.STARTUP_LOG_BYTES


@providers()
def test_the_toolchain_is_inside(name: SandboxName) -> None:
    program = """
        import importlib.util, sysconfig
        source = os.environ["TMPDIR"] + "/seven.cpp"
        open(source, "w").write('#include <cmath>\\nextern "C" int seven() { return 7; }')
        library = os.environ["HOME"] + "/seven.so"
        built = subprocess.run(["g++", "-shared", "-fPIC", "-o", library, source], capture_output=True, text=True)
        import torch, triton
        report(built=built.stderr, seven=ctypes.CDLL(library).seven(), sum=float(torch.ones(3).sum()),
               triton=bool(triton.__version__), user=bool(__import__("getpass").getuser()),
               header=os.path.exists(sysconfig.get_path("include") + "/Python.h"))
    """
    report = report_of(name, program, memory_bytes=2048 * MIB)
    assert report == {"built": "", "seven": 7, "sum": 3.0, "triton": True, "user": True, "header": True}


@pytest.mark.skipif(gpu.toolkit() is None, reason="this host has no CUDA toolkit that could be bound; install nvcc")
@providers()
def test_the_cuda_toolkit_of_the_host_is_inside(name: SandboxName) -> None:
    program = """
        os.chdir(os.environ["TMPDIR"])
        open("twice.cu", "w").write('__global__ void twice(float* x) { x[threadIdx.x] *= 2; }')
        built = subprocess.run(["nvcc", "-arch=sm_90", "-cubin", "twice.cu"], capture_output=True, text=True)
        report(failed=built.returncode and built.stdout + built.stderr, made=os.path.exists("twice.cubin"))
    """
    assert report_of(name, program, disk_bytes=64 * MIB) == {"failed": 0, "made": True}


WAYS = [
    pytest.param({"Runtimes": {"runc": {}, "nvidia": {}}, "CDISpecDirs": ["/etc/cdi"]}, "toolkit", id="runtime"),
    pytest.param({"Runtimes": {"runc": {}}, "CDISpecDirs": ["/etc/cdi"]}, "cdi", id="cdi"),
    pytest.param({"Runtimes": {"runc": {}}, "CDISpecDirs": None}, "nodes", id="cdi is not enabled"),
    pytest.param({"Runtimes": {"runc": {}}}, "nodes", id="old daemon"),
]


@pytest.mark.parametrize(("info", "way"), WAYS)
def test_the_way_of_a_gpu_into_a_container(info: Any, way: str, tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "nvidia.yaml").write_text("cdiVersion: 0.6.0\nkind: nvidia.com/gpu\n")
    monkeypatch.setattr(gpu, "_CDI_DIRECTORIES", (str(tmp_path),))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gpu.way_for_docker(info) == way


@pytest.mark.parametrize(
    ("name", "at_once"),
    [pytest.param("bwrap", True, marks=MARKS["bwrap"]), pytest.param("docker", False, marks=MARKS["docker"])],
)
def test_a_judge_that_is_killed_leaves_nothing_for_long(name: SandboxName, at_once: bool, tmp_path: Path) -> None:
    """It closes nothing: bubblewrap dies with it, and the next judge removes its container."""
    program = f"""
        import sys
        sys.path[:0] = [{str(REPO)!r}, {str(Path(__file__).parent)!r}]
        from test_sandboxes import launched
        with launched({name!r}, "report(); signal.pause()") as judge:
            judge.report()
            print(judge.token, flush=True)
            sys.stdin.read()
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    ) as judge:
        token = judge.stdout.readline().strip()
        assert len(token) == 32
        containers = containers_with(token) if name == "docker" else ()
        watcher = Judge(None, None, token, tmp_path, containers)  # type: ignore[arg-type]
        assert watcher.left()
        judge.kill()
        judge.wait()
    if at_once:
        eventually(lambda: None if watcher.left() else True)
    provider.cache_clear()

    def swept() -> bool | None:
        with launched(name, "report()") as next_one:
            next_one.report()
        # A control group can be removed only once the kernel is done with the dead, which may be one launch later.
        return None if groups([judge.pid]) else True

    eventually(swept)
    assert watcher.left() == []
    assert containers_with(token) == ()


@pytest.mark.parametrize(("name", "remedy"), [("docker", "dockerd"), ("bwrap", "apt-get install bubblewrap")])
def test_a_named_provider_that_is_missing_is_an_error(name: Any, remedy: str, monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody.sock")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxError, match=remedy):
        sandbox.choose(name, [sandbox.provider(name)])
    candidates = [sandbox.provider(other) for other in ("docker", "bwrap", "process")]
    assert sandbox.choose("auto", candidates).name == "process"


@pytest.mark.docker
def test_a_missing_image_names_the_remedy() -> None:
    from harness.sandbox.docker import Docker

    assert "make image" in (Docker(image="kernelmark-no-such-image:latest").unavailable() or "")
