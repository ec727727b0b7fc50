"""The console scripts: they run the commands of `kernelmark.commands.cli`, then exit without interpreter shutdown.

The shutdown of torch and the CUDA driver takes 0.4 s and is not needed: by then the sandboxes are removed and the
ledger is on disk. Importing all commands takes 0.2 s; until then this module handles Ctrl-C, and after that `cli` does.
"""

from __future__ import annotations

import contextlib
import gc
import io
import logging
import os
import signal
import sys
from types import FrameType
from typing import NoReturn

_STREAMS = ("stdin", "stdout", "stderr")


def submit() -> NoReturn:
    """The script `submit`."""
    _run("submit")


def main() -> NoReturn:
    """The script `kernelmark`."""
    _run("main")


def _run(command: str) -> NoReturn:
    _end_at_ctrl_c()
    _open_streams()
    # NumPy's BLAS, which the judge does not use, starts a thread per core that spins for 0.1 s. Sandboxes inherit no
    # variables.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.set_threshold(10_000, 20, 20)  # imports leave little garbage, and looking for it takes a tenth of their time
    if os.environ.get("KERNELMARK_DEBUG"):
        logging.basicConfig(format="%(message)s")
        logging.getLogger("kernelmark").setLevel(logging.DEBUG)
    from kernelmark.commands import cli

    try:
        getattr(cli, command).main()
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else 0
    from harness.sandbox import ending

    try:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError):  # the reader is gone
                stream.flush()
        ending.wait()
    except KeyboardInterrupt:  # if there is another one, the next judge removes what is left
        _end_at_ctrl_c()
        ending.wait()
    os._exit(status)


def _open_streams() -> None:
    """Make names and texts UTF-8 in any locale, and standard streams that are closed `/dev/null`."""
    # The encoding of file names cannot change in a running process. With `-E` or `-I` Python ignores the variable.
    if sys.getfilesystemencoding() != "utf-8" and os.environ.get("PYTHONUTF8") != "1":
        os.environ["PYTHONUTF8"] = "1"
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
    # Otherwise the next file that is opened would be one of them.
    while (descriptor := os.open(os.devnull, os.O_RDWR)) < len(_STREAMS):
        os.set_inheritable(descriptor, True)
        setattr(sys, _STREAMS[descriptor], os.fdopen(descriptor, "w" if descriptor else "r", encoding="utf-8"))
    os.close(descriptor)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _end_at_ctrl_c() -> None:
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # otherwise it is ignored, as in the background
        signal.signal(signal.SIGINT, _interrupted)


def _interrupted(_number: int, _frame: FrameType | None) -> NoReturn:
    os.write(2, b"\nkernelmark: error: interrupted\n")
    os._exit(130)
