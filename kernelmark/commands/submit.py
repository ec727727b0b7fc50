"""The commands that grade one file: `submit`, `bench` and `check`. Slow imports are inside the functions."""

from __future__ import annotations

import shlex
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.errors import KernelmarkError, UsageError
from harness.files.outside import stamp
from harness.languages import LANGUAGES
from kernelmark import __version__
from kernelmark.commands import complete, remote
from kernelmark.commands.boundary import Boundary
from kernelmark.commands.left_out import files_of, say_left_out
from kernelmark.commands.options import (
    beside_option,
    combined,
    device_option,
    form_option,
    load_settings,
    refuse_unwritable,
    sandbox_option,
    say_frozen,
    source_of,
)
from kernelmark.commands.remote import server_options
from kernelmark.project.documents import Printed, failed_by, print_document
from kernelmark.text.terminal import counted, print_lines, say, unexpected, visible

if TYPE_CHECKING:
    from harness.verdict import Check, Verdict
    from kernelmark.grading.setup import PreparedJob


_graded = combined(
    click.argument("problem", shell_complete=complete.problems),
    click.argument("file", type=click.Path(readable=False)),  # only for its completion: it may be `-`
    click.option(
        "--author", help="Who wrote it. [default: from its folder in submissions/, the settings, git or the login]"
    ),
    beside_option,
    click.option("--language", type=click.Choice(list(LANGUAGES)), help="What stdin holds, where FILE is `-`."),
    server_options,
    click.option(
        "--here",
        is_flag=True,
        help="Grade on this machine even if the project names a server, in this process, "
        "and leave no worker for the next command.",
    ),
    device_option("Where to run it."),
    sandbox_option("How to isolate it."),
    form_option,
)
_timed = combined(
    click.option(
        "--quick", "effort", flag_value="quick", help="Measure for less time, with no baseline unless one is named."
    ),
    click.option("--thorough", "effort", flag_value="thorough", help="Measure for longer."),
    click.option(
        "--baseline",
        "baselines",
        multiple=True,
        metavar="NAME",
        shell_complete=complete.baselines,
        help="Alternate with this kernel of reference/; repeatable; `none`: no baseline. [default: eager on a GPU]",
    ),
)


@click.command(cls=Boundary)
@click.version_option(__version__, prog_name="submit")
@_graded
@_timed
@click.option("--no-record", is_flag=True, help="Grade, but leave ledger, archive and board as they are.")
@click.option(
    "--late",
    metavar="ORGANIZER",
    help="Record it even after the deadline; ORGANIZER is who allowed it. It does not rank.",
)
@click.option(
    "--profile",
    is_flag=True,
    help="After an accepted grading, profile the largest case as `kernelmark profile` does, and keep it with the run.",
)
def submit(no_record: bool, late: str | None, profile: bool, form: str, here: bool, **flags: Any) -> int:
    """Grade FILE on PROBLEM (a directory or a slug), and record the result.

    Exit status: 0 accepted, 1 wrong answer, 2 usage, 3 compile error, 4 runtime error or memory limit, 5 timeout,
    6 rejected, 7 our fault, 8 unsupported (needs a GPU, or Triton's interpreter cannot run it), 10 submitted to a
    server, and the result was not awaited.
    """
    if (server := remote.server_of(flags, here=here)) is not None:
        local = {"--no-record": no_record, "--late": late, "--profile": profile}
        return remote.grade(server, flags, "submit", form, local)
    if profile and no_record:
        raise UsageError("--profile", "keeps the profile with the recorded run", "use `kernelmark profile` instead")
    files, job = files_of(flags), _job(flags)
    if not (here or no_record):
        _say_served(job)
    return _whole_grading(job, files, form, here=here, record=not no_record, late=late, profile=profile)


@click.command()
@_graded
@_timed
@click.option("--case", metavar="NAME", help="Time this benchmark alone.")
def bench(form: str, here: bool, case: str | None, **flags: Any) -> int:
    """Grade FILE on PROBLEM, and record nothing.

    Exit status: as for `submit`.
    """
    if (server := remote.server_of(flags, here=here)) is not None:
        return remote.grade(server, flags, "bench", form, {"--case": case})
    files, job = files_of(flags), _job(flags)
    if case is not None:
        from kernelmark.project.problems import of_one_case

        job = replace(job, problem=of_one_case(job.problem, case, job.device))
    return _whole_grading(job, files, form, here=here or case is not None, record=False)


@click.command()
@_graded
@click.option(
    "--dump",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="For each failed test that is not hidden, write DIR/TEST.pt: its inputs, outputs and expected outputs.",
)
@click.option(
    "--only",
    multiple=True,
    metavar="TEST",
    help="Run this test alone, and no hidden one; repeatable. If it is right, the check is incomplete, not accepted.",
)
@click.option("--case", metavar="NAME", help="As --only, but call a benchmark instead, at its sizes, without its time.")
@click.option("--fail-fast", is_flag=True, help="End at the first test that fails.")
@click.option("--watch", is_flag=True, help="Check again whenever FILE or a file given --with is saved, until Ctrl-C.")
def check(
    form: str,
    here: bool,
    dump: Path | None,
    only: Sequence[str],
    case: str | None,
    fail_fast: bool,
    watch: bool,
    **flags: Any,
) -> int:
    """Build FILE, or stdin if it is `-`, and run the tests of PROBLEM, without times.

    Exit status: as for `submit`, and 9 for an incomplete check: not all tests ran, and those that did are right. With
    --watch, that of the last check.
    """
    if (server := remote.server_of(flags, here=here)) is not None:
        local = {"--dump": dump, "--only": only, "--case": case, "--fail-fast": fail_fast, "--watch": watch}
        return remote.grade(server, flags, "check", form, local)
    from kernelmark.authoring import debugging
    from kernelmark.grading.resident.command import CommandJudge
    from kernelmark.text.progress import Reporter

    if watch and flags["file"] == "-":
        raise UsageError("--watch", "waits for a file to be saved", "name a FILE")
    refuse_unwritable("--dump", dump)
    names = [case] if case is not None else []

    def once() -> int:
        job, written = _job(dict(flags)), list[Path]()
        if case is not None:
            from kernelmark.project.problems import of_one_case

            [chosen] = of_one_case(job.problem, case, job.device).benchmarks
            job = replace(job, problem=job.problem.model_copy(update={"tests": (chosen, *job.problem.tests)}))
        judge = CommandJudge(job, here=here or case is not None)
        on_failure = None if dump is None else lambda failed: written.append(debugging.dump(failed, dump))
        with Reporter() as reporter:
            result = judge.check(reporter.report, on_failure, [*only, *names], fail_fast=fail_fast)
        from kernelmark.text import show

        if written and flags["file"] == "-":
            say(f"wrote {counted(len(written), 'failed test')} to {dump}")
        elif written:
            others = [word for path in flags["beside"] for word in ("--with", str(path))]
            files = (flags["problem"], flags["file"], *others)
            command = shlex.join(["kernelmark", "debug", *files, "--from", str(written[0])])
            say(f"wrote {counted(len(written), 'failed test')} to {dump}; `{command}` repeats one in this terminal")
        if form == "json":
            print_document("check", result.model_dump_json(exclude_none=True))
        else:
            print_lines(show.check(result, for_gpus=job.tests_for_gpus))
            print_compilation(job, result)
        say_left_out(result, files_of(flags))
        judge.leave_one(result)
        return result.outcome.exit_code

    return _repeated(files_of(flags), once, form) if watch else once()


def _job(flags: dict[str, Any]) -> PreparedJob:
    """Read the problem and the submission; raises all usage errors before torch is imported.

    Meanwhile the driver is asked for GPUs for the first time, which takes it a tenth of a second.
    """
    from kernelmark.project.choice import visible_gpus

    problem, file, beside = flags.pop("problem"), flags.pop("file"), flags.pop("beside")
    assert problem is not None
    assert file is not None  # click has checked both
    flags["baselines"] = flags.get("baselines") or None
    language = flags.pop("language")
    settings = load_settings(problem, **flags)
    if settings.device != "cpu":
        threading.Thread(target=visible_gpus, daemon=True).start()
    from kernelmark.grading.setup import PreparedJob

    author = settings.author_of(Path(file)) if flags.get("author") is None else settings.author_or_default()
    return PreparedJob.prepare(settings, problem, source_of(file, language, author), author=author, beside=beside)


def _whole_grading(
    job: PreparedJob,
    files: Sequence[Path],
    form: str,
    *,
    here: bool,
    record: bool,
    late: str | None = None,
    profile: bool = False,
) -> int:
    from kernelmark.grading import recorder
    from kernelmark.grading.resident.command import CommandJudge
    from kernelmark.text.progress import Reporter

    remark = recorder.admit(job, late) if record else None
    if remark is not None:
        say(f"{job.problem.slug}: this submission will not rank: {visible(remark.reason)}")
    if record:
        _say_whose(job)
    judge = CommandJudge(job, here=here)
    with Reporter(usual_s=lambda: recorder.usual_s(job)) as reporter:
        result = judge.grade(reporter.report)
    from kernelmark.text import show  # not needed any earlier

    table, recorded = None, False
    try:
        if record:
            recorder.record(job, result, remark)
            recorded = True
            table = recorder.publish(job, result)
    finally:  # show the result even if it cannot be recorded
        if form == "json":
            print_document("verdict", result.to_json())
        else:
            left = recorder.left_today(job) if recorded else ""
            print_lines(show.verdict(result, table, left, record=recorded, for_gpus=job.tests_for_gpus))
            print_compilation(job, result)
        say_left_out(result, files)
    if recorded and result.score is not None and table is None:
        say_frozen(job.settings, job.problem.slug)
    if profile and result.score is not None:
        say(_profiled(job, result))
    judge.leave_one(result)
    return result.outcome.exit_code


def _say_served(job: PreparedJob) -> None:
    """Say that a server serves the project, which this submission bypasses."""
    from kernelmark.server.lock import address_of_server

    if (address := address_of_server(job.settings.root)) is not None:
        say(f"a server serves this project at {visible(address)}: to submit there, add --to {visible(address)}")


def _say_whose(job: PreparedJob) -> None:
    """Say under which author's name a first result is recorded, if no option or setting names the author."""
    settings, author = job.settings, job.submission.author
    known = any(settings.locate("archive").glob(f"*/{author}"))
    if not known and settings.author is None and author == settings.author_or_default():
        how = "--author or the setting `author` names another"
        say(f"recorded under the name {author}, from git or the login; {how}")


def _profiled(job: PreparedJob, result: Verdict) -> str:
    """Profile a recorded kernel; returns a line about it. An error changes neither the record nor the exit status."""
    from kernelmark.diagnostics.profiling import profile_recorded
    from kernelmark.text.progress import Reporter

    try:
        with Reporter() as reporter:
            line = profile_recorded(job, result, reporter.report)
    except KernelmarkError as error:
        line = f"kernelmark: warning: no profile: {error}"
    except Exception as error:  # noqa: BLE001 - the run is recorded, and its outcome decides the exit status
        line = f"kernelmark: warning: no profile: {unexpected(error)}"
    return visible(" ".join(line.split()))


def print_compilation(job: PreparedJob, result: Check) -> None:
    """Compile a kernel that the interpreter accepted, and print a line about it; do nothing after other results."""
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


_EVERY_S = 0.5


def _repeated(files: Sequence[Path], once: Callable[[], int], form: str) -> int:
    """Run `once` now, and again whenever one of the files is saved, until Ctrl-C; returns the last status.

    After the first time an error is printed and does not end the command: an editor may have written half of a file.
    """
    names = " or ".join(visible(file.name) for file in files)
    seen = [stamp(file) for file in files]
    status = once()
    try:
        while True:
            say(f"waiting until {names} is saved; Ctrl-C ends")
            while None in (now := [stamp(file) for file in files]) or now == seen:
                time.sleep(_EVERY_S)
            seen = now
            say(f"──── {time.strftime('%H:%M:%S')} " + "─" * 40)
            Printed.yet = False
            try:
                status = once()
            except KernelmarkError as error:
                status = failed_by(form, error)
    except KeyboardInterrupt:
        say("")  # the terminal has written ^C
        return status
