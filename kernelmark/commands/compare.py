"""`kernelmark compare`: grades two kernels in alternation, so that disturbances of the device affect both."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.errors import SubmissionError, UsageError
from harness.files.outside import real
from harness.languages import LANGUAGES
from kernelmark.commands import complete
from kernelmark.commands.left_out import left_out, say_left_out
from kernelmark.commands.options import device_option, form_option, load_settings, sandbox_option, with_option
from kernelmark.project.documents import print_as

if TYPE_CHECKING:
    from harness.submission import Submission
    from kernelmark.grading.setup import PreparedJob
    from kernelmark.project.settings import Settings

_RUN = re.compile("[0-9a-f]{1,16}")


@click.command()
@click.argument("one", metavar="A", shell_complete=complete.runs)
@click.argument("other", metavar="B", shell_complete=complete.runs)
@click.option(
    "--problem",
    shell_complete=complete.problems,
    help="Which problem. [default: that of a run, or of a file in submissions/ or reference/]",
)
@with_option("Another file, as for `submit`: of the FILE in whose folder it is, or else of both; repeatable.")
@click.option("--thorough", "effort", flag_value="thorough", help="Measure for longer.")
@click.option("--quick", "effort", flag_value="quick", help="Measure for less time.")
@sandbox_option("How to isolate them.")
@device_option("Where to run them.")
@form_option
def compare(
    one: str,
    other: str,
    problem: str | None,
    beside: tuple[Path, ...],
    form: str,
    **flags: str | None,
) -> int:
    """Grade A in alternation with B, and print how many times as fast it is; record nothing.

    Each is a FILE, or a recorded run: its id, or the id's first digits, which stands for the source that was graded.

    Exit status: as for `submit`, of A; 2 if B is wrong in a benchmark, or could not be timed; 2 if one of them runs in
    Triton's interpreter, for want of a GPU.
    """
    from harness.verdict import DoubtCode
    from kernelmark.grading.recorder import usual_s
    from kernelmark.grading.setup import PreparedJob
    from kernelmark.project.problems import find_directory
    from kernelmark.text import show
    from kernelmark.text.progress import Reporter

    settings = load_settings(problem, **flags)
    files = _files([*map(_path, (one, other))], beside)
    named = [_kernel(settings, *given, problem) for given in zip((one, other), files, strict=True)]
    problems = {find_directory(settings, slug) for _, slug in named if slug is not None}
    if len(problems) != 1:
        slugs = " and ".join(sorted(folder.name for folder in problems))
        what = f"are of the problems {slugs}" if problems else "are in no problem's folder"
        raise UsageError(f"{one} and {other}", what, "name the problem with --problem")
    (first, _), (second, _) = named
    folder = problems.pop()
    job, other_job = (PreparedJob.prepare(settings, folder, kernel, author=kernel.author) for kernel in (first, second))
    for prepared in (job, other_job):
        _refuse_interpreted(prepared)
    with Reporter(usual_s=lambda: usual_s(job)) as reporter:
        result = job.grade(reporter.report, baselines=[second])
    print_as(form, "verdict", result.to_json(), show.comparison(result, second))
    say_left_out(result, files[0])
    if result.score is not None and not result.speedups:
        why = "; ".join(doubt.text for doubt in result.doubts if doubt.code == DoubtCode.NO_BASELINE)
        what = "could not be timed in alternation with the other one"
        remedy = "; ".join(left_out(why, files[1])) if why else "`kernelmark check` says why"
        raise SubmissionError(second.name, f"{what}: {why}" if why else what, remedy)
    return result.outcome.exit_code


def _refuse_interpreted(job: PreparedJob) -> None:
    """Raise a UsageError if Triton's interpreter would run the kernel, which one test shows: its time means nothing."""
    from kernelmark.project.problems import visible_test
    from kernelmark.text.progress import Reporter

    if job.device != "cpu" or b"triton" not in job.submission.source:
        return
    with Reporter() as reporter:
        checked = job.check(reporter.report, only=[visible_test(job.problem, "cpu").name])
    if checked.environment.interpreted:
        what = "runs in Triton's interpreter here, whose times say nothing about speed"
        raise UsageError(job.submission.name, what, "compare it on a machine with a GPU")


def _path(named: str) -> Path | None:
    return None if _RUN.fullmatch(named) and not Path(named).exists() else Path(named)


def _files(paths: Sequence[Path | None], others: Sequence[Path]) -> list[list[Path]]:
    """The files of each kernel, its own first; none of a recorded run, for which there is no path.

    An other file goes with the kernel in whose folder it is, or else with both, if their languages take such files.

    Raises:
        UsageError: one goes with neither.
    """
    from harness.submission import language_of

    folders = [path and real(path.parent) for path in paths]
    files = [[] if path is None else [path] for path in paths]
    for other in others:
        where = real(other.parent)
        for path, folder, own in zip(paths, folders, files, strict=True):
            if path and (folder == where or where not in folders):
                own += [other] if other.suffix[1:] in LANGUAGES[language_of(path)].extra_files else []
        if not any(other in own for own in files):
            remedy = "a .py takes modules, a .cu or .cpp takes headers, and a run has the files that it had"
            raise UsageError(f"--with {other}", "goes with neither A nor B", remedy)
    return files


def _kernel(
    settings: Settings, named: str, files: Sequence[Path], problem: str | None
) -> tuple[Submission, str | None]:
    """A kernel, and its problem, if that is known."""
    from harness.submission import Submission
    from kernelmark.record.records import source_of

    if not files:
        return source_of(settings, named)
    path, *beside = files
    for place in ("submissions", "reference"):
        if (file := real(path)).is_relative_to(folder := real(settings.locate(place))):
            author = place if place == "reference" else settings.author_of(path)
            return Submission.read(path, author, beside), problem or file.relative_to(folder).parts[0]
    return Submission.read(path, settings.author_of(path), beside), problem
