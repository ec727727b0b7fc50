# Strategy: system calls that make namespaces, mounts and programs in the kernel, or reach beyond a sandbox.
# Surface: the system call filter, and the rights that the runner has been left.
import ctypes
import os
import platform

import torch

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
page = ctypes.create_string_buffer(4096)
at = ctypes.addressof(page)
# name: (number on x86_64, on aarch64, arguments)
CALLS = {
    "unshare user": (272, 97, (0x10000000,)), "unshare mount": (272, 97, (0x00020000,)),
    "unshare net": (272, 97, (0x40000000,)), "setns": (308, 268, (0, 0)),
    "mount": (165, 40, (b"none", b"/tmp", b"tmpfs", 0, 0)), "umount2": (166, 39, (b"/proc", 2)),
    "open_tree": (428, 428, (-100, b"/", 1)), "fsopen": (430, 430, (b"tmpfs", 0)),
    "pivot_root": (155, 41, (b"/tmp", b"/tmp")), "chroot": (161, 51, (b"/tmp",)),
    "bpf": (321, 280, (0, at, 64)), "perf_event_open": (298, 241, (at, 0, -1, -1, 0)),
    "userfaultfd": (323, 282, (0,)), "userfaultfd user": (323, 282, (1,)), "io_uring_setup": (425, 425, (8, at)),
    "add_key": (248, 217, (b"user", b"x", b"y", 1, -3)), "keyctl": (250, 219, (0, -3, 1)),
    "request_key": (249, 218, (b"user", b"x", b"", -3)), "init_module": (175, 105, (at, 64, b"")),
    "kexec_load": (246, 104, (0, 0, at, 0)), "reboot": (169, 142, (0xFEE1DEAD, 672274793, 0, 0)),
    "swapon": (167, 224, (b"/tmp/x", 0)), "sethostname": (170, 161, (b"x", 1)),
    "settimeofday": (164, 170, (at, 0)), "open_by_handle_at": (304, 265, (-100, at, 0)),
    "setuid": (105, 146, (0,)), "setgroups": (116, 159, (1, at)), "quotactl": (179, 60, (0x800002, b"/", 0, at)),
    "syslog": (103, 116, (3, at, 4096)), "acct": (163, 89, (b"/tmp/x",)), "fanotify_init": (300, 262, (0, 0)),
    "nfsservctl": (180, 42, (0, 0, 0)), "clone3": (435, 435, (at, 64)), "lookup_dcookie": (212, 18, (0, at, 64)),
}  # fmt: skip
column = {"x86_64": 0, "aarch64": 1}[platform.machine()]
done = []
for name, call in CALLS.items():
    if name == "clone3":
        ctypes.c_uint64.from_buffer(page).value = 0x10000000  # CLONE_NEWUSER
    arguments = [a if isinstance(a, bytes) else ctypes.c_long(a) for a in call[2]]
    if libc.syscall(ctypes.c_long(call[column]), *arguments) >= 0:
        done.append(name)
    if name == "clone3" and done[-1:] == [name] and os.getpid() == 1:
        os._exit(0)
status = dict(line.split(":\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\t" in line)
rights = f"capabilities {int(status['CapEff'], 16)} of {int(status['CapBnd'], 16)}, no new {status['NoNewPrivs']}"
print(f"attack: {len(CALLS)} calls, allowed: {', '.join(done) or 'none'}; {rights}", flush=True)


def twice(x, y):
    torch.mul(x, 2, out=y)
