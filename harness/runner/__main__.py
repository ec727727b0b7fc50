"""Entry point inside the sandbox: connect to the judge, import torch, then execute commands until the judge hangs up.

Called as `python -I -B -u PATH SOCKET`. Untrusted once the submission is built, so nothing below is a defence: a
hostile submission can patch any check. The checks are for honest ones.
"""

from __future__ import annotations

import contextlib
import gc
import os
import platform
import select
import shutil
import socket
import sys
from collections.abc import Iterator
from pathlib import Path


def main(address: str) -> None:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    gc.disable()  # imports leave no garbage, and looking for some takes an eighth of the time
    from harness.wire import frame, protocol, replies

    judge = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    judge.connect(address)
    frame.send(judge, 0, replies.Hello(protocol=protocol.PROTOCOL, python=platform.python_version()))
    _lock_by_existence()
    _bring_triton_helper(Path("/opt/triton"))
    if "KERNELMARK_BUILDS" in os.environ:
        from harness.runner import building

        with _one_blas_thread() if os.environ["KERNELMARK_DEVICE"] == "cuda" else contextlib.nullcontext():
            building.serve(judge)
        return
    from harness.arena import warm_context

    ahead_of_its_job = os.environ.pop("KERNELMARK_AHEAD", None) is not None
    images = None
    if "KERNELMARK_RECORDS" in os.environ:
        from harness.errors import DeviceError
        from harness.runner.images import LoadedImages

        # What is recorded is replayed by a launcher, so this context needs no more than one hardware queue. With the
        # usual eight it takes twice as long to make and to end, under a lock that all processes of the machine share.
        os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = "1"
        # Before there is a context, which loads the first images. Without CUPTI nothing is recorded.
        with contextlib.suppress(DeviceError):
            images = LoadedImages()
    elif not ahead_of_its_job:
        # Not with a listener: its callback would wait for the GIL in a thread that holds the driver's lock.
        warm_context(os.environ["KERNELMARK_DEVICE"])
    # This is slow, 2.3 s of the 6 s that a participant waits; meanwhile the judge imports its own torch.
    with _one_blas_thread() if os.environ["KERNELMARK_DEVICE"] == "cuda" else contextlib.nullcontext():
        from harness.runner.devices import open_device
        from harness.runner.serve import Server

    gc.enable()
    ahead = None
    if os.environ["KERNELMARK_DEVICE"] == "cuda" and "KERNELMARK_WATCHED" not in os.environ:
        from harness.runner.ahead import CompileAhead

        ahead = CompileAhead()
    if ahead_of_its_job:  # until then there is no context, which takes memory of the device
        select.select([judge], [], [])
    device = open_device(os.environ["KERNELMARK_DEVICE"], images)
    token, _, [output] = frame.receive_command(judge)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    Server(device, ahead=ahead).run(judge, token)


@contextlib.contextmanager
def _one_blas_thread() -> Iterator[None]:
    """Let NumPy, which torch imports, start no threads; programs that are started later find the variable as it was.

    NumPy's OpenBLAS starts a thread per core, and each spins for 0.1 s before it sleeps: of the 5.5 s of processor time
    that the import took on 32 cores, 4 s. On a GPU NumPy has little to do. torch's own number of threads is another.
    """
    name = "OPENBLAS_NUM_THREADS"
    wanted = os.environ.get(name)
    os.environ[name] = "1"
    try:
        yield
    finally:
        del os.environ[name]
        if wanted is not None:
            os.environ[name] = wanted


def _lock_by_existence() -> None:
    """Give torch.compile locks that work although the sandbox refuses `flock`.

    filelock falls back to them by itself, but torch's subclass does not survive that.
    """
    import filelock

    filelock.FileLock = filelock.SoftFileLock


def _bring_triton_helper(compiled: Path) -> None:
    """Copy what Triton launches kernels by into this sandbox's cache, if the image has it: `tools/triton_helper.py`."""
    with contextlib.suppress(OSError):  # without it Triton compiles its own
        shutil.copytree(compiled, os.environ["TRITON_CACHE_DIR"], dirs_exist_ok=True)


if __name__ == "__main__":
    main(sys.argv[1])
