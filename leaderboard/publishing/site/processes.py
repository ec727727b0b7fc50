"""Divides work among forked processes, for builds of many pages.

`folder` calls it. Trusted. A child process inherits its tasks, writes files, and answers only with JSON,
so nothing that could run code is returned.
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


def share(tasks: Sequence[T], work: Callable[[Sequence[T]], Any]) -> list[Any]:
    """Do the tasks in up to one process per CPU; returns one answer per process.

    Raises:
        HarnessError: one of the processes failed; its error was printed to stderr.
    """
    count = min(len(os.sched_getaffinity(0)), len(tasks))
    if count < 2:
        return [work(tasks)] if tasks else []
    children = [_fork(tasks[index::count], work) for index in range(1, count)]
    try:
        answers = [work(tasks[::count])]
    finally:
        outputs = [_answer(*child) for child in children]  # even if this process failed, so that no child is left
    if any(output is None for output in outputs):
        raise HarnessError("a process that builds the site failed", "its message is above")
    return [*answers, *(json.loads(output) for output in outputs if output is not None)]


def _fork(tasks: Sequence[T], work: Callable[[Sequence[T]], Any]) -> tuple[int, int]:
    """Fork a process for these tasks; returns its id and the descriptor to read its answer from."""
    answer, output = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    process = os.fork()
    if process:
        os.close(output)
        return process, answer
    status = 1
    try:
        os.close(answer)
        with os.fdopen(output, "wb") as file:
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
        output = file.read()
    _, status = os.waitpid(process, 0)
    return output if status == 0 else None
