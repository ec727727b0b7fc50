"""Prepares a result for people: with the author's file name in its texts, and without meaningless speedups.

In the sandbox the file is called `submission.py`, and records keep that name, since several authors can share a source.
Trusted code over hostile text: the file name is escaped here, all other text where it is printed.
"""

from __future__ import annotations

import re
from typing import TypeVar

from harness.verdict import Check, Verdict
from leaderboard.text.visible import visible

C = TypeVar("C", bound=Check)


def with_own_name(result: C) -> C:
    """The same result, with the author's file name in its texts."""
    own_name = visible(result.submission.name)
    sandbox_name = re.compile(rf"(?<![\w.-])submission\.{result.submission.language}\b")

    def named(text: str) -> str:
        return sandbox_name.sub(lambda _: own_name, text)

    tests = tuple(test.model_copy(update={"message": named(test.message)}) for test in result.tests)
    texts = {"message": named(result.message), "log": named(result.log), "traceback": named(result.traceback)}
    return result.model_copy(update={"tests": tests, **texts})


def without_speedups(result: Verdict) -> Verdict:
    """The same result, without speedups if Triton's interpreter ran the kernel: such times say nothing about speed."""
    if not result.environment.interpreted:
        return result
    benchmarks = tuple(case.model_copy(update={"baselines": ()}) for case in result.benchmarks)
    return result.model_copy(update={"speedups": (), "benchmarks": benchmarks})
