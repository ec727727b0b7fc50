"""A filter for system calls that namespaces do not restrict; Docker's default filter blocks most of them, too.

Called by `bwrap`, and by `docker`, whose daemon may have an older default filter. Trusted. It refuses:

- user namespaces, which would give the runner all capabilities over the kernel's most attacked parts;
- keyrings, which have no namespace; bpf, perf, userfaultfd and io_uring, used by exploits, not by GPU kernels;
- socket families other than those below, since AF_VSOCK reaches out of a virtual machine, past the network namespace;
- asynchronous I/O contexts, whose number the whole machine shares (fs.aio-max-nr);
- locks, leases and notifications on files, since sandboxes share files of the host, and could communicate through them;
- changing the limit on core dumps, since only 1 keeps the kernel from piping a dump to the host's handler.

A tool that watches the runner, such as a profiler, needs more: with it, files can be locked and watched, all of netlink
is allowed, and the limit on core dumps can be changed.

Calls that programs try but can do without are answered as by a kernel that does not have them. See seccomp(2) for the
layout of the filter program and of the data that it examines.
"""

from __future__ import annotations

import errno
import fcntl
import platform
import resource
import socket
import struct
from collections.abc import Iterable

_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_LOAD, _EQUAL, _ANY_BIT, _AT_LEAST, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16
_X32_CALLS = 0x40000000

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
# Call numbers on x86_64 and on aarch64; None if there is no such call.
_NUMBERS: dict[str, tuple[int | None, int | None]] = {
    "clone": (56, 220),
    "clone3": (435, 435),
    "unshare": (272, 97),
    "setns": (308, 268),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "syslog": (103, 116),
    "io_setup": (206, 0),
    "io_submit": (209, 2),
    "inotify_init": (253, None),
    "inotify_init1": (294, 26),
    "fanotify_init": (300, 262),
    "cachestat": (451, 451),
    "flock": (73, 32),
    "fcntl": (72, 25),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "setrlimit": (160, 164),
    "prlimit64": (302, 261),
}
_FORBIDDEN = (
    *("setns", "add_key", "request_key", "keyctl", "bpf", "perf_event_open", "userfaultfd"),
    *("io_uring_setup", "io_uring_enter", "io_uring_register", "syslog"),
)
# These are answered with "no such call", which makes the C library use clone instead of clone3 (whose flags are behind
# a pointer), filelock use plain lock files instead of flock, and so on.
_MISSING = (
    *("clone3", "io_setup", "io_submit", "inotify_init", "inotify_init1", "fanotify_init", "cachestat", "flock"),
)
_NEEDED_BY_WATCHERS = ("inotify_init", "inotify_init1", "cachestat", "flock", "fcntl", "setrlimit", "prlimit64")
FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK)
_CLONE_NEWUSER = 0x10000000
_NETLINK_ROUTE = 0
_SET_RW_HINT, _SET_FILE_RW_HINT = 1036, 1038
_FILE_LOCKS = (fcntl.F_GETLK, fcntl.F_SETLK, fcntl.F_SETLKW, fcntl.F_OFD_GETLK, fcntl.F_OFD_SETLK, fcntl.F_OFD_SETLKW)
_FILE_NEWS = (fcntl.F_SETLEASE, fcntl.F_GETLEASE, fcntl.F_NOTIFY, _SET_RW_HINT, _SET_FILE_RW_HINT)


def program(*, watched: bool = False) -> bytes | None:
    """The filter in the form that the kernel and `bwrap --seccomp` read; None if the call numbers are not known.

    `watched`: omit rules that may break Nsight Compute. It is not known which of them do; watched runs are rare, at an
    organizer's request.
    """
    if platform.machine() not in _ARCHITECTURES:
        return None
    no_rights, no_such_call = _error(errno.EPERM), _error(errno.ENOSYS)
    rules: dict[str, list[bytes]] = {
        **dict.fromkeys(_FORBIDDEN, no_rights),
        **dict.fromkeys(_MISSING, no_such_call),
        "clone": [*_argument(0), _step(_ANY_BIT, _CLONE_NEWUSER, otherwise=1), *no_rights, *_allowed()],
        "fcntl": [*_argument(1), *_if_in((*_FILE_LOCKS, *_FILE_NEWS), no_such_call), *_allowed()],
        "socket": _socket(watched=watched),
        "setrlimit": [*_argument(0), *_if_in([resource.RLIMIT_CORE], no_rights), *_allowed()],
        "prlimit64": _prlimit(),
    }
    rules["unshare"], rules["socketpair"] = rules["clone"], rules["socket"]
    for call in _NEEDED_BY_WATCHERS if watched else ():
        del rules[call]
    steps = [
        _step(_LOAD, _ARCHITECTURE_AT),
        _step(_EQUAL, _ARCHITECTURES[platform.machine()], then=1),
        _step(_RETURN, _KILL),
        _step(_LOAD, _NUMBER_AT),
        _step(_AT_LEAST, _X32_CALLS, otherwise=1),
        *no_such_call,
    ]
    for call, rule in rules.items():
        if (number := _NUMBERS[call][list(_ARCHITECTURES).index(platform.machine())]) is not None:
            steps += [_step(_EQUAL, number, otherwise=len(rule)), *rule]
    return b"".join([*steps, *_allowed()])


def _socket(*, watched: bool) -> list[bytes]:
    """Allow only the families above, like a kernel without others, and of netlink only NETLINK_ROUTE."""
    return [
        *_argument(0),
        *_if_in([family for family in FAMILIES if watched or family != socket.AF_NETLINK], _allowed()),
        _step(_EQUAL, socket.AF_NETLINK, then=1),
        *_error(errno.EAFNOSUPPORT),
        *_argument(2),
        *_if_in([_NETLINK_ROUTE], _allowed()),
        *_error(errno.EPROTONOSUPPORT),
    ]


def _prlimit() -> list[bytes]:
    """Refuse like setrlimit if the pointer to the new limit is not NULL (either half is not 0); else it only reads."""
    no_rights = _error(errno.EPERM)
    return [
        *_argument(1),
        _step(_EQUAL, resource.RLIMIT_CORE, then=1),
        *_allowed(),
        *_argument(2),
        _step(_EQUAL, 0, then=1),
        *no_rights,
        _step(_LOAD, _ARGUMENTS_AT + 2 * 8 + 4),
        _step(_EQUAL, 0, then=1),
        *no_rights,
        *_allowed(),
    ]


def _argument(index: int) -> list[bytes]:
    """Load the lower half of an argument (both architectures are little-endian); the kernel ignores the upper half."""
    return [_step(_LOAD, _ARGUMENTS_AT + index * 8)]


def _if_in(values: Iterable[int], answer: list[bytes]) -> list[bytes]:
    """Return the answer if the loaded word is one of the values, otherwise continue."""
    return [step for value in values for step in (_step(_EQUAL, value, otherwise=len(answer)), *answer)]


def _allowed() -> list[bytes]:
    return [_step(_RETURN, _ALLOW)]


def _error(number: int) -> list[bytes]:
    return [_step(_RETURN, _ERRNO | number)]


def _step(code: int, value: int, *, then: int = 0, otherwise: int = 0) -> bytes:
    """One instruction. After a test, `then` or `otherwise` instructions are skipped."""
    return struct.pack("=HBBI", code, then, otherwise, value)
