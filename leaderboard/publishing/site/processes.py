"""Work shared out to forked processes, for builds of many pages or ledgers.

`reading` and `folder` call it. Trusted. A process inherits what it works on, writes files, and answers with JSON alone:
nothing that could run code crosses back.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from harness.errors import HarnessError, KernelmarkError

T = TypeVar("T")


def share(tasks: Sequence[T], work: Callable[[Sequence[T]], Any], *, worth: int) -> list[Any]:
    """Do the tasks in as many processes as there are CPUs, `worth` tasks each at the least; returns their answers.

    Raises:
        HarnessError: one of the processes failed; its traceback went to stderr.
    """
    count = min(len(os.sched_getaffinity(0)), len(tasks) // worth)
    if count < 2:
        return [work(tasks)] if tasks else []
    children = [_fork(tasks[index::count], work) for index in range(1, count)]
    try:
        answers = [work(tasks[::count])]
    finally:
        told = [_answer(*child) for child in children]  # also where this process failed: no child is left behind
    if any(answer is None for answer in told):
        raise HarnessError("a process that builds the site failed", "its message stands above")
    return [*answers, *(json.loads(answer) for answer in told if answer is not None)]


def _fork(tasks: Sequence[T], work: Callable[[Sequence[T]], Any]) -> tuple[int, int]:
    """Begin a process; its answer can be read from the returned descriptor."""
    answer, told = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    process = os.fork()
    if process:
        os.close(told)
        return process, answer
    status = 1
    try:
        os.close(answer)
        with os.fdopen(told, "wb") as file:
            file.write(json.dumps(work(tasks)).encode())
        status = 0
    except KernelmarkError as error:
        print(f"kernelmark: error: {error}", file=sys.stderr, flush=True)
    except BaseException:  # noqa: BLE001 - the process ends here, and the traceback is kept
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(status)


def _answer(process: int, descriptor: int) -> bytes | None:
    with os.fdopen(descriptor, "rb") as file:
        told = file.read()
    _, status = os.waitpid(process, 0)
    return told if status == 0 else None
