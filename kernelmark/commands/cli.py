"""The command line: `submit PROBLEM FILE`, and `kernelmark` for everything else.

Data goes to stdout; progress, warnings and errors go to stderr. Trusted.
"""

from __future__ import annotations

import click
from typing_extensions import TypedDict

from harness.errors import HarnessError, UsageError
from kernelmark import __version__
from kernelmark.commands import (
    accounts,
    audit,
    compare,
    debug,
    exporting,
    fleet,
    grade_many,
    importing,
    ledger,
    login,
    look,
    organizers,
    problems,
    profile,
    remote,
    serve,
    site,
    start,
    worker,
    workers,
)  # fmt: skip
from kernelmark.commands.boundary import BoundaryGroup
from kernelmark.commands.help import complete
from kernelmark.commands.options import device_option, form_option, load_settings, refuse_unwritable
from kernelmark.commands.submit import bench, check
from kernelmark.commands.submit import submit as submit
from kernelmark.project.documents import print_as
from kernelmark.text.terminal import print_text, say


@click.group(cls=BoundaryGroup, invoke_without_command=True)
@click.version_option(__version__, prog_name="kernelmark")
@click.pass_context
def main(context: click.Context) -> None:
    """Grade untrusted GPU kernels: each runs in a sandbox, and is tested and timed from outside."""
    if context.invoked_subcommand is None:
        print_text(context.get_help())


@click.command()
@form_option
@device_option("Which device.")
def calibrate(form: str, device: str | None) -> None:
    """Measure this device's peak bandwidth and arithmetic, so that results can show their share of the roofline."""
    from harness.judge.calibrate import measure
    from kernelmark.project.calibrations import store
    from kernelmark.project.choice import choose_device
    from kernelmark.project.problems import refuse_without_project
    from kernelmark.text import show

    refuse_without_project(settings := load_settings(device=device))
    refuse_unwritable("the setting `devices`", settings.locate("devices"))
    calibration = measure(choose_device(settings.device, "py"), lambda what: say(f"measuring {what}"))
    path = store(settings, calibration)
    document = calibration.model_dump_json(exclude_none=True)
    print_as(form, "calibration", document, show.calibration(calibration, path))


@click.command()
@form_option
@click.option("-v", "--verbose", is_flag=True, help="Show each check, also those without a problem.")
@click.option("--end-resident", is_flag=True, help="Only end the resident worker that waits in this project.")
def doctor(form: str, verbose: bool, end_resident: bool) -> int:
    """Report what this machine needs before it can grade, and how to get it.

    Exit status: 0 if it can grade, 7 if it cannot.
    """
    from kernelmark.diagnostics import doctor as examination

    settings = load_settings()
    if end_resident:
        say(examination.end_resident(settings))
        return 0
    findings = list(examination.examine(settings))
    print_as(form, "doctor", findings, examination.lines(findings, everything=verbose))
    return 0 if examination.can_grade(findings) else HarnessError.exit_code


class CacheDocument(TypedDict):
    """What `kernelmark cache` prints."""

    folder: str
    files: int
    bytes: int
    most_bytes: int


@click.command()
@form_option
@click.option("--empty", is_flag=True, help="Remove it all first.")
def cache(form: str, empty: bool) -> None:
    """Show the cache of compiled submissions and reused verdicts, which makes later gradings faster.

    When it exceeds the setting cache_bytes, the least recently used files are removed first.
    """
    from harness.files.kept import Kept, cache_folder
    from leaderboard.text.plural import counted

    kept = Kept(cache_folder(), load_settings().cache_bytes)
    if empty:
        try:
            kept.empty()
        except OSError as error:
            raise UsageError(f"{error.filename}", f"cannot be removed ({error.strerror})", "remove it") from None
    sizes = kept.sizes()
    document: CacheDocument = {
        "folder": str(kept.folder),
        "files": len(sizes),
        "bytes": sum(sizes),
        "most_bytes": kept.most_bytes,
    }
    text = f"{kept.folder}: {counted(len(sizes), 'file')}, {sum(sizes):,} of at most {kept.most_bytes:,} bytes"
    print_as(form, "cache", document, [text])


for _command in (
    submit, bench, check, look.board, ledger.moderate, ledger.select, ledger.verify, organizers.grade, organizers.marks,
    ledger.merge_ledger, ledger.import_ledger, ledger.repair_ledger, organizers.regrade, organizers.similar,
    problems.problems, importing.importing, exporting.export, calibrate, audit.audit, compare.compare, debug.debug,
    fleet.fleet, start.init, profile.profile, look.runs, look.show, look.explain, site.site, start.start, doctor, cache,
    grade_many.grade_many, worker.worker, accounts.accounts, accounts.invitations, accounts.tokens, workers.workers,
    login.login, login.logout, login.list_servers, remote.watch, remote.cancel, remote.queue, serve.serve,
):  # fmt: skip
    main.add_command(_command)
for _command in (workers.pause, workers.resume, workers.again):
    remote.queue.add_command(_command)
complete(main)
