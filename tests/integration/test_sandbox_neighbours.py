"""The conformance suite's second part: what a sandbox could use up, tell its neighbours or reach past a namespace.

Each test starts a script where the runner would stand, as in `test_sandboxes`.
"""

from __future__ import annotations

import os
import platform
import re
import resource
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.sandbox import Watcher, uids
from harness.verdict import SandboxName
from tests.integration.test_sandboxes import MIB, REPO, launched, providers, report_of

CALLS = """
import fcntl
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
column = {"x86_64": 0, "aarch64": 1}[os.uname().machine]
def call(numbers, *arguments):
    if libc.syscall(*map(ctypes.c_long, (numbers[column], *arguments))) >= 0: return "done"
    return errno.errorcode[ctypes.get_errno()]
page = ctypes.create_string_buffer(4096)
at = ctypes.addressof(page)
"""


def script(program: str) -> str:
    """The program with what calls the kernel directly before it, at the indentation of the prologue."""
    return CALLS + "\n".join(line.removeprefix(" " * 8) for line in program.splitlines())


@providers("network")
def test_no_socket_of_another_family(name: SandboxName) -> None:
    """AF_VSOCK leads to the host of a virtual machine. The kernel takes an `int`, whatever stands above it."""
    program = """
        SOCKET, PAIR, ABOVE = (41, 198), (53, 199), 1 << 32
        kinds = (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET)
        tried = {family: sorted({call(SOCKET, above + family, kind, 0) for kind in kinds for above in (0, ABOVE)}
                                | {call(PAIR, above + family, kind, 0, at) for kind in kinds for above in (0, ABOVE)})
                 for family in range(64)}
        own = socket.create_server(("127.0.0.1", 0))
        netlink = [call(SOCKET, socket.AF_NETLINK, socket.SOCK_RAW, protocol) for protocol in range(32)]
        report(tried=tried, netlink=netlink, interfaces=[interface for _, interface in socket.if_nameindex()],
               reached=attempt(lambda: socket.create_connection(own.getsockname())))
    """
    report = report_of(name, script(program))
    opened = {int(family): outcomes for family, outcomes in report["tried"].items() if outcomes != ["EAFNOSUPPORT"]}
    assert {1, 2, 16} <= set(opened) <= {1, 2, 10, 16}, opened  # a kernel may come without IPv6
    assert all("done" in outcomes for outcomes in opened.values()), opened
    assert report["netlink"] == ["done"] + 31 * ["EPROTONOSUPPORT"]
    assert report["interfaces"] == ["lo"]
    assert report["reached"] == "done"


@providers("kernel limit on processes")
def test_nothing_that_the_machine_has_one_number_of(name: SandboxName) -> None:
    """Contexts of asynchronous I/O, watches of files and terminals are counted for all users, or can be seen by all."""
    program = """
        file = open(os.environ["HOME"] + "/file", "w")
        fd = file.fileno()
        lock = {"lock": lambda: fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB), "flock": lambda: fcntl.flock(fd, 2 | 4)}
        commands = {f"fcntl {command}": command for command in (5, 6, 7, 36, 37, 38, 1024, 1025, 1026, 1036, 1038)}
        ABOVE = 1 << 32
        report(
            refused={"io_setup": call((206, 0), 8, at), "io_submit": call((209, 2), 0, 0, 0),
                     "inotify_init1": call((294, 26), 0), "fanotify_init": call((300, 262), 0x200, 0),
                     "cachestat": call((451, 451), fd, at, at, 0),
                     **({"inotify_init": call((253,))} if column == 0 else {}),
                     **{key: attempt(action) for key, action in lock.items()},
                     **{key: call((72, 25), fd, command, at) for key, command in commands.items()},
                     **{key + " above": call((72, 25), fd, command + ABOVE, at) for key, command in commands.items()}},
            terminals=[attempt(os.openpty), *(attempt(lambda: os.open(path, os.O_RDWR))
                       for path in ("/dev/ptmx", "/dev/pts/ptmx"))],
            allowed=[attempt(lambda: fcntl.fcntl(fd, get)) for get in (fcntl.F_GETFD, fcntl.F_GETFL, fcntl.F_DUPFD)],
            sealed=attempt(lambda: fcntl.fcntl(os.memfd_create("x", os.MFD_ALLOW_SEALING), 1033, 1)),
        )
    """
    report = report_of(name, script(program))
    assert set(report["refused"].values()) == {"ENOSYS"}, report["refused"]
    assert len(report["refused"]) >= 29
    assert "done" not in report["terminals"]
    assert report["allowed"] == ["done"] * 3
    assert report["sealed"] == "done"


@providers("files")
def test_locks_carry_nothing_to_a_neighbour(name: SandboxName) -> None:
    """Files of the host are the same files in all sandboxes, and a lock needs no right to write."""
    holds = """
        paths = ["/dev/null", "/dev/urandom", os.path.realpath(sys.executable), "/usr/bin/env", "/kernelmark/enter.py",
                 "/sys/devices/system/cpu/online", "/sys/devices/system", "/proc/1/exe", "/etc/passwd"]
        files = {}
        for path in paths:
            try: files[path] = os.open(path, os.O_RDONLY)
            except OSError: pass
        LOCK = ctypes.create_string_buffer(32)  # struct flock: F_RDLCK, the whole file
        def kept(path, action):
            return attempt(lambda: action(files[path])) == "done"
        taken = [[path, kind] for path in files for kind, action in {
            "flock": lambda fd: fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB),
            "fcntl": lambda fd: fcntl.fcntl(fd, fcntl.F_SETLK, LOCK.raw),
            "open file": lambda fd: fcntl.fcntl(fd, fcntl.F_OFD_SETLK, LOCK.raw),
        }.items() if kept(path, action)]
        report(taken=taken, files=sorted(files))
        signal.pause()
    """
    looks = """
        import struct
        def held(path):
            fd = os.open(path, os.O_RDONLY)
            if attempt(lambda: fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)) == "EAGAIN": return True
            WRITE = struct.pack("hhllixxxx", 1, 0, 0, 0, 0)
            for command in (fcntl.F_GETLK, fcntl.F_OFD_GETLK):
                try:
                    if struct.unpack("hhllixxxx", fcntl.fcntl(fd, command, WRITE))[0] != 2: return True
                except OSError: pass
            return False
        report(held=[path for path in {files} if held(path)])
    """
    with launched(name, script(holds)) as one:
        first = one.report()
        assert {"/dev/null", "/usr/bin/env", "/kernelmark/enter.py"} <= set(first["files"])
        with launched(name, script(looks.replace("{files}", repr(first["files"])))) as two:
            assert two.report() == {"held": []}
    assert first["taken"] == []


@providers("files")
def test_a_lock_of_pythons_is_still_one(name: SandboxName) -> None:
    """filelock, which torch.compile asks, falls back to files that exist or not: one process at a time holds it."""
    program = '''
        COUNT = """
        import filelock, sys, time
        for _ in range(10):
            with filelock.FileLock(sys.argv[1]):
                old = int(open(sys.argv[1] + ".count").read())
                time.sleep(0.002)
                open(sys.argv[1] + ".count", "w").write(str(old + 1))
        """
        path = os.environ["HOME"] + "/lock"
        open(path + ".count", "w").write("0")
        children = [subprocess.Popen([sys.executable, "-c", COUNT, path]) for _ in range(3)]
        ended = [child.wait() for child in children]
        report(counted=int(open(path + ".count").read()), ended=ended)
    '''
    assert report_of(name, script(program)) == {"counted": 30, "ended": [0, 0, 0]}


@providers("identity")
def test_no_user_is_shared(name: SandboxName) -> None:
    """Pending signals, message queues, watches and pipes are counted by user."""
    program = """
        import pwd
        report(uid=os.getuid(), gid=os.getgid(), user=pwd.getpwuid(os.getuid()).pw_name)
        signal.pause()
    """
    with launched(name, program) as one, launched(name, program) as two:
        seen = [one.report(), two.report()]
    assert [user["user"] for user in seen] == ["runner", "runner"]
    if name == "docker" or os.geteuid() == 0:
        assert len({user["uid"] for user in seen} | {user["gid"] for user in seen}) == 2
        assert not {user["uid"] for user in seen} & {0, 65534}


DAEMONS = [
    pytest.param({"SecurityOptions": ["name=seccomp,profile=default"]}, uids.HIGH, id="usual"),
    pytest.param({"SecurityOptions": None}, uids.HIGH, id="says nothing"),
    pytest.param({"SecurityOptions": ["name=seccomp", "name=rootless"]}, range(10_000, 60_000), id="rootless"),
    pytest.param({"SecurityOptions": ["name=userns"]}, range(10_000, 60_000), id="remapped"),
]


@pytest.mark.parametrize(("daemon", "expected"), DAEMONS)
def test_user_ids_exist_in_the_daemons_containers(daemon: Any, expected: range) -> None:
    assert uids.among(daemon) == expected
    taken = [uids.take(expected), uids.take(expected)]
    for uid in taken:
        uids.release(uid)
    assert len(set(taken)) == 2
    assert set(taken) <= set(expected)


@providers()
def test_a_crash_leaves_no_core(name: SandboxName) -> None:
    """With a pipe in core_pattern 0 means no limit and 1 none at all (docs/sandboxes.md): it must not become 0."""
    program = """
        CORE = resource.RLIMIT_CORE
        if os.fork() == 0: os.kill(os.getpid(), signal.SIGSEGV)
        status = os.wait()[1]
        zero = lambda: resource.setrlimit(CORE, (0, 0))
        def attempted(action):
            try: action()
            except (OSError, ValueError): return "refused"
            return "done"
        set_to = (ctypes.c_uint64 * 2)(0, 0)
        report(dumped=os.WCOREDUMP(status), limit=resource.getrlimit(CORE), other=attempted(lambda: resource.setrlimit(
                   resource.RLIMIT_NOFILE, resource.getrlimit(resource.RLIMIT_NOFILE))),
               lowered=[attempted(zero), attempted(lambda: resource.prlimit(0, CORE, (0, 0))),
                        call((160, 164), CORE, ctypes.addressof(set_to)),
                        call((302, 261), 0, CORE + (1 << 32), ctypes.addressof(set_to), 0)],
               after=resource.getrlimit(CORE))
    """
    report = report_of(name, script(program))
    limit = [1, 1] if name == "docker" or resource.getrlimit(resource.RLIMIT_CORE)[1] else [0, 0]
    assert report["limit"] == limit
    assert not report["dumped"]
    assert report["other"] == "done"
    if name != "process":
        assert report["lowered"] == ["refused", "refused", "EPERM", "EPERM"]
        assert report["after"] == limit


@providers("files")
def test_mounts_do_not_show_where_the_checkout_is(name: SandboxName) -> None:
    with launched(name, "report(mounts=open('/proc/self/mountinfo').read())") as judge:
        mounts = judge.report()["mounts"]
    assert "/kernelmark ro," in mounts
    assert str(REPO) not in mounts.replace(sys.prefix, "")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="calls of 32-bit programs, which only x86_64 has")
@providers("identity")
def test_calls_of_another_architecture_are_deadly(name: SandboxName) -> None:
    """`socketcall` of 32 bits would make any socket; its numbers mean other calls than those that the filter knows."""
    program = """
        import mmap
        code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        code.write(bytes.fromhex("53b814000000cd805bc3"))  # push rbx; mov eax, 20 (getpid); int 0x80; pop rbx; ret
        getpid = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
        if os.fork() == 0:
            getpid()
            os._exit(0)
        status = os.wait()[1]
        report(signal=os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0)
    """
    report = report_of(name, script(program))
    assert report["signal"] in (signal.SIGSYS, signal.SIGSEGV)  # SIGSEGV: a kernel without 32-bit calls


@providers("network")
@pytest.mark.parametrize("address", [(socket.AF_NETLINK, (0, 0)), (socket.AF_INET, ("127.0.0.1", 0))])
def test_sockets_are_bounded(name: SandboxName, address: Any) -> None:
    """What is queued at them is in part not counted as memory: 2500 of netlink's held 500 MiB in a sandbox of 256."""
    program = f"""
        def opened(count):
            held = [socket.socket({int(address[0])}, socket.SOCK_DGRAM) for _ in range(count)]
            for one in held: one.bind({address[1]!r})
            return held
        few = opened(200)
        report(few=len(few))
        judge.recv(1)
        many = opened(1000)
        report(many=len(many))
        signal.pause()
    """
    with launched(name, program) as judge:
        judge.report()
        assert judge.sandbox.breach() is None
        judge.connection.send(b"!")
        judge.report()
        breach = judge.sandbox.breach()
        assert breach.kind == "memory"
        assert re.fullmatch(r"1,2\d\d sockets open, 1,024 allowed", breach.detail), (
            breach
        )  # the kernel has some of its own
        judge.sandbox.close()
        assert judge.sandbox.breach() is None


@providers("network")
def test_buffers_of_tcp_are_bounded(name: SandboxName) -> None:
    """They count against a limit of the whole machine; 500 connections fill a quarter of it where nothing else does."""
    if not Path("/sys/fs/cgroup/memory/memory.kmem.tcp.limit_in_bytes").exists():
        pytest.skip("this machine has version 2 of control groups, which counts them as memory: nothing to bound apart")
    program = """
        report()
        judge.recv(1)  # a launch has returned, and set the limit, before a submission is sent
        server, held, sent = socket.create_server(("127.0.0.1", 0), backlog=500), [], 0
        for _ in range(400):
            held += [socket.create_connection(server.getsockname()), server.accept()[0]]
            held[-2].setblocking(False)
            with __import__("contextlib").suppress(BlockingIOError):
                while True: sent += held[-2].send(bytes(1 << 16))
        report(sent=sent)
    """
    with launched(name, program) as judge:
        judge.report()
        assert judge.connection is not None
        judge.connection.send(b"1")
        assert 16 * MIB < judge.report()["sent"] < 64 * MIB


@providers("network")
def test_a_watcher_may_lock_and_watch_files_and_leads_no_further_out(name: SandboxName, tmp_path: Path) -> None:
    """Nsight Compute ended with `Failed to profile` under the filter of a grading."""
    tmp_path.chmod(0o755)
    program = """
        import fcntl
        def locked(): fcntl.flock(open(os.environ["HOME"] + "/one", "w"), fcntl.LOCK_EX)
        def watched():
            libc = ctypes.CDLL(None, use_errno=True)
            if libc.inotify_init1(0) < 0: raise OSError(ctypes.get_errno(), "inotify")
        report(locked=attempt(locked), watched=attempt(watched), vsock=attempt(lambda: socket.socket(40, 1)))
    """
    found = []
    for watcher in (None, Watcher(("/usr/bin/env",), tmp_path)):
        with launched(name, program, watcher=watcher) as judge:
            found.append(judge.report())
    assert found == [
        {"locked": "ENOSYS", "watched": "ENOSYS", "vsock": "EAFNOSUPPORT"},
        {"locked": "done", "watched": "done", "vsock": "EAFNOSUPPORT"},
    ]
