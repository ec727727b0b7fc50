"""A system call filter: what Docker's default filter takes away, or should, and namespaces alone do not.

Called by `bwrap`, and by `docker`, whose daemon may be older than that advice. Trusted. A user namespace would hand the
runner a full set of capabilities over the kernel's most attacked parts, keyrings have no namespace, and bpf, perf,
userfaultfd and io_uring serve exploits and no kernel author. See seccomp(2) for the layout of the filter's program and
of the data that it looks at.
"""

from __future__ import annotations

import errno
import platform
import struct

_CLONE_NEWUSER = 0x10000000
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_LOAD, _EQUAL, _ANY_BIT, _AT_LEAST, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_ARGUMENT_AT = 0, 4, 16
_X32_CALLS = 0x40000000

# machine: (AUDIT_ARCH, clone, unshare, then setns add_key request_key keyctl bpf perf_event_open userfaultfd)
_NUMBERS = {
    "x86_64": (0xC000003E, 56, 272, (308, 248, 249, 250, 321, 298, 323)),
    "aarch64": (0xC00000B7, 220, 97, (268, 217, 218, 219, 280, 241, 282)),
}
_IO_URING, _CLONE3 = (425, 426, 427), 435


def program() -> bytes | None:
    """The filter, as the kernel and `bwrap --seccomp` read it; None on a machine whose call numbers are not known."""
    if platform.machine() not in _NUMBERS:
        return None
    architecture, clone, unshare, refused = _NUMBERS[platform.machine()]
    steps = [
        _step(_LOAD, _ARCHITECTURE_AT),
        _step(_EQUAL, architecture, then=1),
        _step(_RETURN, _KILL),
        _step(_LOAD, _NUMBER_AT),
        _step(_AT_LEAST, _X32_CALLS, otherwise=1),
        _step(_RETURN, _ERRNO | errno.ENOSYS),
        # clone3 hides its flags behind a pointer. "No such call" makes the C library fall back to clone.
        _step(_EQUAL, _CLONE3, otherwise=1),
        _step(_RETURN, _ERRNO | errno.ENOSYS),
    ]
    for number in (*refused, *_IO_URING):
        steps += [_step(_EQUAL, number, otherwise=1), _step(_RETURN, _ERRNO | errno.EPERM)]
    steps += [
        _step(_EQUAL, clone, then=1),
        _step(_EQUAL, unshare, otherwise=3),
        _step(_LOAD, _FIRST_ARGUMENT_AT),
        _step(_ANY_BIT, _CLONE_NEWUSER, otherwise=1),
        _step(_RETURN, _ERRNO | errno.EPERM),
        _step(_RETURN, _ALLOW),
    ]
    return b"".join(steps)


def _step(code: int, value: int, *, then: int = 0, otherwise: int = 0) -> bytes:
    """One instruction; `then` and `otherwise` are how many of the following ones a test passes over."""
    return struct.pack("=HBBI", code, then, otherwise, value)
