"""Runs inside a container before the runner, and blocks system calls that the daemon's own filter may allow.

`python enter.py FILTER PROGRAM ARGUMENT...` installs the filter, a seccomp program in hexadecimal, in addition to the
daemon's (older ones allow io_uring), and runs PROGRAM. Trusted: the submission is not there yet, and a filter can never
be removed. Uses only the standard library.
"""

from __future__ import annotations

import ctypes
import runpy
import sys

_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _FILTER = 38, 22, 2


class _Program(ctypes.Structure):
    """`struct sock_fprog` of linux/filter.h: instructions of eight bytes."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def install(program: bytes) -> None:
    """Install the filter for this process and all processes that it will start."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    if prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no_new_privs was refused")
    if prctl(_PR_SET_SECCOMP, _FILTER, ctypes.byref(_Program(len(program) // 8, program)), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "the system call filter was refused")


if __name__ == "__main__":
    install(bytes.fromhex(sys.argv[1]))
    sys.argv = sys.argv[2:]
    runpy.run_path(sys.argv[0], run_name="__main__")
