"""The line below an accepted result of Triton's interpreter: whether it compiles for a GPU.

`check`, `submit` and `bench` print it. Trusted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelmark.text.printing import print_lines

if TYPE_CHECKING:
    from harness.verdict import Check
    from kernelmark.grading.setup import PreparedJob


def print_compilation(job: PreparedJob, result: Check) -> None:
    """Compile what the interpreter accepted, and print the line; do nothing after any other result."""
    from harness.verdict import Outcome
    from kernelmark.text import show
    from kernelmark.text.progress import Reporter

    environment = result.environment
    if result.outcome is not Outcome.ACCEPTED or not environment.interpreted or environment.device_kind != "cpu":
        return
    with Reporter() as reporter:
        found = job.compilation(reporter.report)
    if found is not None:
        print_lines([show.compilation(found)])
