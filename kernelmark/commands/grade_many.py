"""The command `grade-many`: it reads jobs and prints results as lines of JSON. Trusted; slow imports are inside it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, get_args

import click
from click.core import ParameterSource

from harness.errors import UsageError
from harness.kinds import Effort
from kernelmark.commands.options import device_option, sandbox_option
from kernelmark.text.terminal import counted, say

_REUSE: dict[str, Any] = {"no": False, "run": "run", "disk": "disk"}


@click.command("grade-many")
@click.argument("jobs", type=click.File("rb"))
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Append the results to this file, and leave out jobs that have one there. [default: stdout]",
)
@click.option(
    "--effort", type=click.Choice(get_args(Effort)), default="quick", show_default=True, help="How much is timed."
)
@click.option(
    "--baseline",
    "baselines",
    multiple=True,
    metavar="NAME",
    help="Time this kernel of reference/, too, for speedups; repeatable; `none`: no baseline.",
)
@click.option("--check", "only_check", is_flag=True, help="Test only: time nothing.")
@click.option(
    "--reuse",
    type=click.Choice(list(_REUSE)),
    default="run",
    show_default=True,
    help="Give an equal source the same verdict: in this call, or also that of an earlier one, kept on disk.",
)
@click.option("--slots", type=click.IntRange(min=1), metavar="N", help="How many to grade at a time on each device.")
@device_option("Where to grade.")
@sandbox_option("How to isolate submissions: docker or bwrap.")
def grade_many(
    jobs: BinaryIO,
    out: Path | None,
    effort: Effort,
    baselines: Sequence[str],
    only_check: bool,
    reuse: str,
    slots: int | None,
    device: Any,
    sandbox: Any,
) -> int:
    """Grade each job of JOBS (`-`: stdin), one JSON object a line, and print one for each result as it comes.

    \b
    {"problem": "softmax", "source": "def softmax(x, y): torch.softmax(x, -1, out=y)", "key": 7}
    {"problem": "softmax", "file": "kernel.cu", "timeout": 120, "run": "0123456789abcdef"}

    Also language, author and beside, as in Python. A result has the job's key and run, outcome, message, reward and the
    whole verdict, or an error. Nothing is recorded. The same command with the same --out goes on after a kill, and
    grades the jobs that had an error again. Schemas: docs/schemas/job.json, docs/schemas/job-result.json.

    Exit status: 0 if every job was graded, whatever its outcome; 2 if some lines are not valid jobs; 7 if some jobs
    could not be graded for a reason that is not theirs.
    """
    effort_given = click.get_current_context().get_parameter_source("effort") is not ParameterSource.DEFAULT
    if only_check and (baselines or effort_given):
        raise UsageError("--check", "times nothing", "leave out --effort and --baseline")
    from kernelmark.grading.fleet import Fleet, lines

    results = None if out is None else lines.ResultFile(out)
    status = failed = 0
    requests = lines.read_jobs(jobs, set() if results is None else results.done)
    with Fleet(device=device or "auto", sandbox=sandbox or "auto", slots=slots) as fleet:
        if only_check:
            found = fleet.check_many(requests, reuse=_REUSE[reuse])
        else:
            names = list(baselines) or None
            found = fleet.grade_many(requests, effort=effort, baselines=names, reuse=_REUSE[reuse])
        with suppress(BrokenPipeError):  # the reader of stdout has gone
            for result in found:
                (_print if results is None else results.write)(lines.result_line(result))
                if result.error is not None:
                    failed, status = failed + 1, max(status, result.error.exit_code)
    if failed:
        say(f"{counted(failed, 'job')} could not be graded; each has a result with its error")
    return status


def _print(line: bytes) -> None:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()
