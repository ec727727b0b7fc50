"""Grades answers: their rewards, and the feedback that the model gets. Needs no library for training."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import kernelmark

BLOCK = re.compile(r"^```[^\n`]*\n(.*?)^```[ \t]*$", re.DOTALL | re.MULTILINE)
TRIES = 3
WAIT_S = 10.0
MOST_SAID = 4000  # characters of a compiler's output or a traceback
NO_BLOCK = "Your answer has no code block that ends. Give the whole file in one code block."
FASTER = "It is right. Make it faster, and give the whole file again; the last answer counts."
WRONG = "Correct it, and give the whole file again; the last answer counts."


@dataclass(frozen=True)
class Graded:
    """The reward of an answer, and the feedback on it."""

    reward: float
    said: str
    """The feedback for the model: messages of the compiler and the checker, or the time."""


def source_in(answer: str) -> str | None:
    """The last code block of an answer; None if it has none, or was cut off before the end of its first."""
    blocks = BLOCK.findall(answer)
    return blocks[-1] if blocks else None


def told(verdict: kernelmark.Verdict, parts: kernelmark.RewardParts) -> str:
    """The feedback for a model on its answer. Of hidden tests it says only whether they fail."""
    if verdict.outcome is kernelmark.Outcome.ACCEPTED:
        time = f"It takes {verdict.score.median_ns / 1000:.4g} µs a call. " if verdict.score else ""
        return f"{parts.reason}. {time}{FASTER}"
    lines = [parts.reason]
    failed = [test for test in verdict.tests if test.outcome is not kernelmark.Outcome.ACCEPTED]
    lines += [f"- test {test.name}: {test.message}" for test in failed if not test.hidden]
    lines += [f"```\n{text[-MOST_SAID:].strip()}\n```" for text in (verdict.log, verdict.traceback) if text.strip()]
    return "\n".join([*dict.fromkeys(lines), WRONG])


class Grading:
    """One fleet for all answers of a training run. Many tasks of one event loop may use it at a time."""

    def __init__(self, project: Path | None = None) -> None:
        """`project`: its folder; None: that around the working directory."""
        self.project = kernelmark.Project.around(project)
        self._fleet: kernelmark.Fleet | None = None
        self._running: dict[tuple[str, str, str, str], asyncio.Task[Graded]] = {}
        self._waiting: Counter[tuple[str, str, str, str]] = Counter()

    async def open(self) -> None:
        """Start the fleet.

        Raises:
            kernelmark.KernelmarkError: no worker or no sandbox can be started here.
        """
        self._fleet = kernelmark.Fleet(project=self.project)
        await asyncio.to_thread(self._fleet.start)

    async def close(self) -> None:
        """End the fleet. Answers that are still being graded are lost."""
        if self._fleet is not None:
            await asyncio.to_thread(self._fleet.close)

    async def grade(self, problem: str, answer: str, *, language: str = "py", baseline: str = "eager") -> Graded:
        """Grade an answer. One without a code block earns 0. Equal answers share a grading, which is cancelled when
        nobody waits for it any more.

        Raises:
            kernelmark.HarnessError: the machine failed, which says nothing about the answer: leave it out.
            kernelmark.UsageError: the problem cannot be graded here, so every answer would fail.
        """
        source = source_in(answer)
        if source is None:
            return Graded(0.0, NO_BLOCK)
        key = (problem, language, baseline, source)
        grading = self._running.get(key)
        if grading is None:
            grading = self._running[key] = asyncio.create_task(self._graded(problem, source, language, baseline))
            grading.add_done_callback(lambda ended: self._forget(key, ended))
        self._waiting[key] += 1
        try:
            return await asyncio.shield(grading)
        finally:
            self._waiting[key] -= 1
            if not self._waiting[key]:
                del self._waiting[key]
                if not grading.done():
                    self._forget(key, grading)
                    grading.cancel()

    def _forget(self, key: tuple[str, str, str, str], grading: asyncio.Task[Graded]) -> None:
        """Share this grading with no later answer. A cancelled one may end after the next of the same key has begun."""
        if self._running.get(key) is grading:
            del self._running[key]

    async def _graded(self, problem: str, source: str, language: str, baseline: str) -> Graded:
        """Grade one answer. After a failure of the harness or the machine, wait and try again."""
        assert self._fleet is not None
        job = kernelmark.Job(problem=problem, submission=source, language=language)
        for attempt in range(TRIES):
            if attempt:
                await asyncio.sleep(WAIT_S)
            result = await self._fleet.agrade(job, effort="screen", baselines=[baseline], reuse="run")
            if result.verdict is not None:
                parts = kernelmark.reward_parts(result.verdict, baseline)
                return Graded(parts.value, told(result.verdict, parts))
            if isinstance(result.error, kernelmark.SubmissionError):  # too long, or not text: the answer's own fault
                return Graded(0.0, f"{result.error}. {WRONG}")
            if isinstance(result.error, kernelmark.UsageError):
                break
        assert result.error is not None
        raise result.error
