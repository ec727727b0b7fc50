"""The command line: `submit PROBLEM FILE`, and `kernelmark` for everything else.

Data goes to stdout; progress, warnings and errors go to stderr. Trusted. The exit status is that of the outcome or the
exception: 0 accepted, 1 wrong answer, 2 usage, 3 compile error, 4 runtime error or memory limit, 5 timeout, 6 rejected,
7 our fault, 8 unsupported, 9 incomplete, 130 interrupted. Slow imports are done by the commands that need them.
"""

from __future__ import annotations

import shlex
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from harness.errors import HarnessError, KernelmarkError, UsageError
from harness.languages import LANGUAGES
from kernelmark import __version__
from kernelmark.commands import (
    audit,
    compare,
    complete,
    debug,
    exporting,
    fleet,
    importing,
    init,
    organizers,
    problems,
    profile,
    runs,
    site,
    start,
    watching,
)  # fmt: skip
from kernelmark.commands import show as show_command
from kernelmark.commands.compilation import print_compilation
from kernelmark.commands.help import SECTIONS, Group
from kernelmark.commands.help import complete as complete_help
from kernelmark.commands.options import beside_option, device_option, form_option, load_settings, sandbox_option
from kernelmark.text.printing import fail, print_json, print_lines, print_text, say
from kernelmark.text.terminal import counted, visible
from kernelmark.text.unexpected import unexpected

if TYPE_CHECKING:
    from harness.submission import Submission
    from harness.verdict import Verdict
    from kernelmark.grading.setup import PreparedJob

F = TypeVar("F", bound=Callable[..., Any])
INTERRUPTED, TERMINATED = 130, 143
GRADE = ("torch", "triton", "numpy", "filelock", "docker")  # the modules of the extra `grade`


class Boundary(click.Command):
    """A command that ends the process, and turns any exception into one line and an exit status."""

    def main(  # type: ignore[override]  # never returns, whatever standalone_mode says
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> NoReturn:
        signal.signal(signal.SIGTERM, _terminate)
        try:
            if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # until now `scripts` answers it
                signal.signal(signal.SIGINT, signal.default_int_handler)
            status = super().main(args, prog_name, **{**extra, "standalone_mode": False})
        except (click.Abort, KeyboardInterrupt):
            status = fail("interrupted", INTERRUPTED)
        except click.exceptions.NoArgsIsHelpError as error:  # a bare group, such as `kernelmark site`
            print_text(error.format_message())
            status = 0
        except click.UsageError as error:
            see = f" (see `{error.ctx.command_path} --help`)" if error.ctx else ""
            status = fail(error.format_message() + see, error.exit_code)
        except click.ClickException as error:
            status = fail(error.format_message(), error.exit_code)
        except KernelmarkError as error:
            status = fail(str(error), error.exit_code)
        except ModuleNotFoundError as error:
            status = _not_installed(error)
        except Exception as error:  # noqa: BLE001 - the process ends here, and the traceback is kept
            status = _unexpected(error)
        sys.exit(status if isinstance(status, int) else 0)

    def invoke(self, context: click.Context) -> Any:
        """As in click, except that click exits with 1 on a broken pipe, and 1 means a wrong answer."""
        try:
            return super().invoke(context)
        except BrokenPipeError as error:
            return _unexpected(error)


class BoundaryGroup(Boundary, Group):
    """The same for a group."""

    sections = SECTIONS


def _graded(command: F) -> F:
    """Add the arguments and flags of every command that grades."""
    for decorate in (
        form_option,
        sandbox_option("How to isolate it."),
        device_option("Where to run it."),
        click.option("--language", type=click.Choice(list(LANGUAGES)), help="What stdin holds, where FILE is `-`."),
        beside_option,
        click.option(
            "--author", help="Who wrote it. [default: from its folder in submissions/, the settings, git or the login]"
        ),
        click.argument("file", shell_complete=complete.files),
        click.argument("problem", shell_complete=complete.problems),
    ):
        command = decorate(command)
    return command


def _timed(command: F) -> F:
    """Add the flags of every command that measures times."""
    for decorate in (
        click.option(
            "--baseline",
            "baselines",
            multiple=True,
            metavar="NAME",
            shell_complete=complete.baselines,
            help="Alternate with this kernel of reference/; repeatable; `none`: no baseline. [default: eager on a GPU]",
        ),
        click.option("--thorough", "effort", flag_value="thorough", help="Measure for longer."),
        click.option(
            "--quick", "effort", flag_value="quick", help="Measure for less time, with no baseline unless one is named."
        ),
    ):
        command = decorate(command)
    return command


@click.group(cls=BoundaryGroup, invoke_without_command=True)
@click.version_option(__version__, prog_name="kernelmark")
@click.pass_context
def main(context: click.Context) -> None:
    """Grade untrusted GPU kernels: each runs in a sandbox, and is tested and timed from outside."""
    if context.invoked_subcommand is None:
        print_text(context.get_help())


@main.command(cls=Boundary)
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
def submit(no_record: bool, late: str | None, profile: bool, form: str, **given: Any) -> int:
    """Grade FILE on PROBLEM (a directory or a slug), and record the result.

    Exit status: 0 accepted, 1 wrong answer, 2 usage, 3 compile error, 4 runtime error or memory limit, 5 timeout,
    6 rejected, 7 our fault, 8 unsupported (needs a GPU, or Triton's interpreter cannot run it).
    """
    if profile and no_record:
        raise UsageError("--profile", "keeps the profile with the recorded run", "use `kernelmark profile` instead")
    return _whole_grading(_job(given), form, record=not no_record, late=late, profile=profile)


@main.command()
@_graded
@_timed
def bench(form: str, **given: Any) -> int:
    """Grade FILE on PROBLEM, and record nothing.

    Exit status: as for `submit`.
    """
    return _whole_grading(_job(given), form, record=False)


@main.command()
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
@click.option("--fail-fast", is_flag=True, help="End at the first test that fails.")
@click.option("--watch", is_flag=True, help="Check again whenever FILE or a file given --with is saved, until Ctrl-C.")
def check(form: str, dump: Path | None, only: Sequence[str], fail_fast: bool, watch: bool, **given: Any) -> int:
    """Build FILE, or stdin if it is `-`, and run the tests of PROBLEM, without times.

    Exit status: as for `submit`, and 9 for an incomplete check: not all tests ran, and those that did are right. With
    --watch, that of the last check.
    """
    from kernelmark.authoring import debugging
    from kernelmark.text import show
    from kernelmark.text.progress import Reporter

    if watch and given["file"] == "-":
        raise UsageError("--watch", "waits for a file to be saved", "name a FILE")

    def once() -> int:
        job, written = _job(dict(given)), list[Path]()
        on_failure = None if dump is None else lambda failed: written.append(debugging.dump(failed, dump))
        with Reporter() as reporter:
            result = job.check(reporter.report, on_failure, only, fail_fast=fail_fast)
        if written and given["file"] == "-":
            say(f"wrote {counted(len(written), 'failed test')} to {dump}")
        elif written:
            same = [
                given["problem"],
                given["file"],
                *(word for each in given["beside"] for word in ("--with", str(each))),
            ]
            command = shlex.join(["kernelmark", "debug", *same, "--from", str(written[0])])
            say(f"wrote {counted(len(written), 'failed test')} to {dump}; `{command}` repeats one in this terminal")
        if form == "json":
            print_text(result.model_dump_json(exclude_none=True))
        else:
            print_lines(show.check(result, for_gpus=job.tests_for_gpus))
            print_compilation(job, result)
        return result.outcome.exit_code

    return watching.repeated([Path(str(given["file"])), *given["beside"]], once) if watch else once()


@main.command()
@click.argument("problem", required=False, shell_complete=complete.problems)
@click.option("--write", is_flag=True, help="Write the Markdown of every problem again, for example after a merge.")
@form_option
def board(problem: str | None, write: bool, form: str) -> None:
    """Print the standings of PROBLEM, or of every problem."""
    from kernelmark.record.publishing import publish_all
    from kernelmark.record.records import tables
    from kernelmark.text import show

    if write:
        publish_all(load_settings())
    standings = tables(load_settings(problem), problem)
    if form == "json":
        print_json([table.model_dump(mode="json") for table in standings])
    else:
        print_lines(show.board(standings))
        if standings:
            say("Each row is an author's best submission; `kernelmark runs` lists all of them.")


for _command in (*organizers.COMMANDS, problems.problems, importing.importing, exporting.export):
    main.add_command(_command)


@main.command()
@form_option
@device_option("Which device.")
def calibrate(form: str, device: str | None) -> None:
    """Measure this device's peak bandwidth and arithmetic, so that results can show their share of the roofline."""
    from harness.judge.calibrate import measure
    from kernelmark.project.calibrations import store
    from kernelmark.project.choice import choose_device
    from kernelmark.text import show

    settings = load_settings(device=device)
    calibration = measure(choose_device(settings.device, "py"), lambda what: say(f"measuring {what}"))
    path = store(settings, calibration)
    if form == "json":
        print_text(calibration.model_dump_json(exclude_none=True))
    else:
        print_lines(show.calibration(calibration, path))


main.add_command(audit.audit)
main.add_command(compare.compare)
main.add_command(debug.debug)
main.add_command(fleet.fleet)
main.add_command(init.init)
main.add_command(profile.profile)
main.add_command(runs.runs)
main.add_command(show_command.show)
main.add_command(site.site)
main.add_command(start.start)


@main.command()
@form_option
@click.option("-v", "--verbose", is_flag=True, help="Show each check, also of what is well.")
def doctor(form: str, verbose: bool) -> int:
    """Report what this machine needs before it can grade, and how to get it.

    Exit status: 0 if it can grade, 7 if it cannot.
    """
    from kernelmark.diagnostics import doctor as examination

    findings = list(examination.examine(load_settings()))
    if form == "json":
        print_json([finding._asdict() for finding in findings])
    else:
        print_lines(examination.lines(findings, everything=verbose))
    return 0 if examination.can_grade(findings) else HarnessError.exit_code


complete_help(main)


def _job(given: dict[str, Any]) -> PreparedJob:
    """Read what the command line names; every usage error is raised here, before torch is imported."""
    from kernelmark.grading.setup import PreparedJob

    problem, file, beside = given.pop("problem"), given.pop("file"), given.pop("beside")
    assert problem is not None
    assert file is not None  # click has checked both
    given["baselines"] = given.get("baselines") or None
    language = given.pop("language")
    settings = load_settings(problem, **given)
    author = settings.author_of(Path(file)) if given.get("author") is None else settings.author_or_default()
    return PreparedJob.prepare(settings, problem, _source(file, language, author), author=author, beside=beside)


def _source(file: str, language: str | None, author: str) -> Path | Submission:
    """The submission that FILE and --language name."""
    from harness.submission import MAX_SOURCE_BYTES, Submission

    if file != "-":
        if language is not None:
            raise UsageError("--language", "is for stdin", "leave it out: the suffix of FILE says it, or make FILE `-`")
        return Path(file)
    if language is None:
        raise UsageError("FILE -", "is stdin, which has no suffix", "say what it holds with --language")
    source = sys.stdin.buffer.read(MAX_SOURCE_BYTES + 1)
    return Submission.of(source, language, author=author, name=f"stdin.{language}")


def _whole_grading(job: PreparedJob, form: str, *, record: bool, late: str | None = None, profile: bool = False) -> int:
    from kernelmark.grading import admission, recorder
    from kernelmark.text import show
    from kernelmark.text.progress import Reporter

    remark = admission.admit(job, late) if record else None
    with Reporter(usual_s=lambda: admission.usual_s(job)) as reporter:
        result = job.grade(reporter.report)
    table, recorded = None, False
    try:
        if record:
            recorder.record(job, result, remark)
            recorded = True
            table = recorder.publish(job, result)
    finally:  # show the result even if it cannot be recorded
        if form == "json":
            print_text(result.to_json())
        else:
            left = admission.left_today(job) if recorded else ""
            lines = show.verdict(result, table, left, record=recorded, for_gpus=job.tests_for_gpus)
            print_lines(lines)
            print_compilation(job, result)
    if profile and result.score is not None:
        say(_profiled(job, result))
    return result.outcome.exit_code


def _profiled(job: PreparedJob, result: Verdict) -> str:
    """Profile what was recorded; returns a line about it, whatever happens: the record and the status stay."""
    from kernelmark.diagnostics.profiling.recorded import profile_recorded
    from kernelmark.text.progress import Reporter

    try:
        with Reporter() as reporter:
            told = profile_recorded(job, result, reporter.report)
    except KernelmarkError as error:
        told = f"kernelmark: warning: no profile: {error}"
    except Exception as error:  # noqa: BLE001 - the run is recorded, and its outcome is the command's
        told = f"kernelmark: warning: no profile: {unexpected(error)}"
    return visible(" ".join(told.split()))


def _not_installed(error: ModuleNotFoundError) -> int:
    """Commands that grade look for torch before they begin; the others import what they need when they need it."""
    from kernelmark.project.choice import missing

    package = (error.name or "").partition(".")[0]
    if package not in GRADE:
        return _unexpected(error)
    refusal = missing(package)
    return fail(str(refusal), refusal.exit_code)


def _unexpected(error: Exception) -> int:
    return fail(unexpected(error), HarnessError.exit_code)


def _terminate(_signal: int, _frame: object) -> NoReturn:
    """SIGTERM unwinds the stack, so that sandboxes are closed on the way out."""
    sys.exit(TERMINATED)
