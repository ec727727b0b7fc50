"""Entry point inside the sandbox: connects to the judge, imports torch, and executes commands until the judge closes.

Called as `python -I -B -u PATH SOCKET`. It is untrusted once the submission is built, so nothing here is a defence: a
hostile submission can patch any check. The checks help authors of honest submissions.
"""

from __future__ import annotations

import contextlib
import gc
import os
import platform
import select
import socket
import sys
from collections.abc import Iterator
from pathlib import Path


def main(address: str) -> None:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from harness.runner import triton_start

    triton_start.bring(Path("/opt/triton"))
    if os.environ.pop("KERNELMARK_TRITON", None) is not None:  # before there is a thread or a connection
        triton_start.begin()
    gc.disable()  # imports leave no garbage, and looking for it takes an eighth of the time
    from harness.wire import frame, protocol, replies

    judge = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    judge.connect(address)
    frame.send(judge, 0, replies.Hello(protocol=protocol.PROTOCOL, python=platform.python_version()))
    _lock_by_existence()
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

        # Before the context exists, since that loads the first images. Without CUPTI nothing can be recorded.
        with contextlib.suppress(DeviceError):
            images = LoadedImages()
    elif not ahead_of_its_job:
        # Not if images are recorded: CUPTI's callback would wait for the GIL while its thread holds the driver's lock.
        warm_context(os.environ["KERNELMARK_DEVICE"])
    # Importing torch takes 2.3 s of the 6 s that a participant waits. At the same time the judge imports its own torch.
    with _one_blas_thread() if os.environ["KERNELMARK_DEVICE"] == "cuda" else contextlib.nullcontext():
        from harness.runner.devices import open_device
        from harness.runner.serve import RunnerServer

    gc.enable()
    ahead = None
    if os.environ["KERNELMARK_DEVICE"] == "cuda" and "KERNELMARK_WATCHED" not in os.environ:
        from harness.runner.ahead import CompileAhead

        ahead = CompileAhead()
    if ahead_of_its_job:  # wait for the job before creating a context, which takes device memory
        select.select([judge], [], [])
    device = open_device(os.environ["KERNELMARK_DEVICE"], images)
    token, _, [output] = frame.receive_command(judge)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    RunnerServer(device, ahead=ahead).run(judge, token)


@contextlib.contextmanager
def _one_blas_thread() -> Iterator[None]:
    """Keep NumPy, which torch imports, from starting threads; afterwards the variable has its old value again.

    NumPy's OpenBLAS starts a thread per core, and each spins for 0.1 s before it sleeps. On 32 cores that was 4 s of
    the 5.5 s of CPU time that the import took. On a GPU NumPy has little to do. torch has its own number of threads.
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
    """Give torch.compile lock files that work although the sandbox refuses `flock`.

    filelock would fall back to them by itself, but torch's subclass breaks that.
    """
    import filelock

    filelock.FileLock = filelock.SoftFileLock


if __name__ == "__main__":
    main(sys.argv[1])
