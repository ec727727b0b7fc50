"""Kernels that a model writes: the prompt, the answer's source, and what it earns. Needs no library for training."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import kernelmark
from harness.problem import load

LANGUAGES = {"py": "a Python file, in Triton or PyTorch", "cu": "a CUDA file", "cpp": "a C++ file"}
BLOCK = re.compile(r"^```[^\n`]*\n(.*?)^```[ \t]*$", re.DOTALL | re.MULTILINE)
TRIES = 3
WAIT_S = 10.0


def prompt(problem: Path, language: str = "py") -> str:
    """The task as a model is given it: the problem's statement, its definition, and the form of the answer."""
    read = load(problem)
    return "\n".join(
        [
            (problem / "README.md").read_text(encoding="utf-8"),
            "The definition, which your outputs are compared with:\n",
            f"```python\n{(problem / 'reference.py').read_text(encoding='utf-8')}```\n",
            f"Write `{read.entry}` as {LANGUAGES[language]}. It must be right, and as fast as you can make it.",
            "Give the whole file in one code block. Of several blocks the last one counts.",
        ]
    )


def source_in(answer: str) -> str | None:
    """The last code block of an answer; None if it has none, or was cut off before the end of its first."""
    blocks = BLOCK.findall(answer)
    return blocks[-1] if blocks else None


class Grading:
    """One fleet for all the answers of a training, which may come from many tasks of an event loop at a time."""

    def __init__(self) -> None:
        self._fleet: kernelmark.Fleet | None = None
        self._running: dict[tuple[Path, str, str], asyncio.Task[float]] = {}

    async def open(self) -> None:
        """Start the fleet.

        Raises:
            kernelmark.KernelmarkError: no worker or no sandbox can be started here.
        """
        self._fleet = kernelmark.Fleet()
        await asyncio.to_thread(self._fleet.start)

    async def close(self) -> None:
        """End it. What is still being graded is lost."""
        if self._fleet is not None:
            await asyncio.to_thread(self._fleet.close)

    async def reward(self, problem: Path, answer: str, *, language: str = "py", baseline: str = "eager") -> float:
        """What an answer earns; 0 without a code block. Equal answers that are graded at a time share one grading.

        Raises:
            kernelmark.HarnessError: the machine failed, which says nothing about the answer: leave it out.
            kernelmark.UsageError: the problem cannot be graded here, so every answer would fail.
        """
        source = source_in(answer)
        if source is None:
            return 0.0
        key = (problem, language, source)
        if key not in self._running:
            self._running[key] = asyncio.create_task(self._graded(problem, source, language, baseline))
            self._running[key].add_done_callback(lambda _: self._running.pop(key))
        return await asyncio.shield(self._running[key])  # others may wait for it when this call is cancelled

    async def _graded(self, problem: Path, source: str, language: str, baseline: str) -> float:
        """Grade one answer; after a failure of the harness or the machine wait, and try again."""
        assert self._fleet is not None
        job = kernelmark.Job(problem=problem, submission=source, language=language)
        for attempt in range(TRIES):
            if attempt:
                await asyncio.sleep(WAIT_S)
            result = await self._fleet.agrade(job, effort="screen", baselines=[baseline])
            if result.verdict is not None:
                return kernelmark.reward(result.verdict, baseline)
            if isinstance(result.error, kernelmark.SubmissionError):  # too long, or not text: the answer's own fault
                return 0.0
            if isinstance(result.error, kernelmark.UsageError):
                break
        assert result.error is not None
        raise result.error
