"""The commands on a server's workers, and on its queue, for organizers.

`cli` adds them to `kernelmark`, and `pause`, `resume` and `again` to `kernelmark queue`. Trusted; a server's text is
not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from harness.errors import UsageError
from kernelmark.commands.accounts import name_part, print_token, table
from kernelmark.commands.help import Group
from kernelmark.commands.options import connected, form_option, load_settings, server_option
from kernelmark.project.documents import print_as
from kernelmark.text.terminal import say, visible
from leaderboard.text.units import minute

if TYPE_CHECKING:
    from kernelmark.project.settings import Settings
    from kernelmark.service.organizing import Pauses, Pin, Pins


@click.group(cls=Group)
def workers() -> None:
    """See a server's workers, and say which may grade and with which private cases, as an organizer."""


@workers.command("list")
@server_option
@form_option
def list_workers(server: str | None, form: str) -> None:
    """List all workers, with their devices and why they are paused."""
    from kernelmark.service.organizing import Workers

    with connected(server) as connection:
        found = connection.get("workers", Workers)
    rows = [
        (
            row.name,
            row.pool or "never connected",
            str(row.devices or ""),
            row.sandbox or "",
            minute(row.seen) if row.seen else "never",
            str(row.tokens),
            row.paused,
        )
        for row in found.items
    ]
    head = ("name", "device", "devices", "sandbox", "seen (UTC)", "tokens", "paused")
    print_as(form, "workers", found, table(head, rows))


@workers.command("add")
@click.argument("name")
@click.option(
    "--days", type=click.FloatRange(0, 365, min_open=True), default=90, show_default=True, help="Days until it expires."
)
@server_option
@form_option
def add_worker(name: str, days: float, server: str | None, form: str) -> None:
    """Make a token for a worker called NAME, and print it, this once: `kernelmark worker` connects with it.

    Whoever has it can forge verdicts. Give it to machines of your own.
    """
    from kernelmark.service.accounts import NewToken
    from kernelmark.service.organizing import WorkerOrder

    with connected(server) as connection:
        made = connection.post(f"workers/{name_part(name)}", WorkerOrder(days=days), NewToken)
    print_token(form, made.token, made.ends, made)


@workers.command("revoke")
@click.argument("name")
@server_option
def revoke_worker(name: str, server: str | None) -> None:
    """Revoke all tokens of the worker NAME; the jobs that it was grading are graded elsewhere."""
    with connected(server) as connection:
        connection.delete(f"workers/{name_part(name)}")
    say(f"all tokens of {visible(name)} have ended")


@workers.command("resume")
@click.argument("name")
@server_option
def resume_worker(name: str, server: str | None) -> None:
    """Give the worker NAME, which was paused for its faults, work again."""
    from kernelmark.service.organizing import Workers

    with connected(server) as connection:
        connection.post(f"workers/{name_part(name)}/resume", None, Workers, repeatable=True)
    say(f"{visible(name)} gets work again")


@workers.command("pins")
@server_option
@form_option
def list_pins(server: str | None, form: str) -> None:
    """List the hashes of private cases: those that organizers have confirmed, and those that workers have."""
    from kernelmark.service.organizing import Pins

    with connected(server) as connection:
        _print_pins(form, connection.get("pins", Pins))


@workers.command("pin")
@click.argument("problems", nargs=-1, metavar="[PROBLEM]...")
@click.option("--none", is_flag=True, help="They have no private cases.")
@server_option
@form_option
def pin(problems: tuple[str, ...], none: bool, server: str | None, form: str) -> None:
    """Confirm the private cases that this machine has of each PROBLEM, or of all: workers need the same files.

    Run it in your own checkout of the project, with the setting private_cases. What a worker says of itself is never
    confirmed.
    """
    from kernelmark.project.problems import problem_directories
    from kernelmark.service.organizing import Pins

    settings = load_settings()
    if settings.private_cases is None and not none:
        what = "is not set here, so this machine has no private cases"
        raise UsageError("private_cases", what, "set it, or confirm with --none that there are none")
    slugs = problems or tuple(directory.name for directory in problem_directories(settings))
    wanted = [pin for slug in slugs for pin in _own_pins(settings, slug, none=none)]
    with connected(server) as connection:
        for pins in wanted:
            connection.put("pins", pins, Pins)
        _print_pins(form, connection.get("pins", Pins))


@click.command()
@click.option("--account", metavar="NAME", help="Of this account alone.")
@click.option("--why", required=True, help="The reason, which is shown.")
@server_option
@form_option
def pause(account: str | None, why: str, server: str | None, form: str) -> None:
    """Pause the queue, as an organizer: no waiting job is graded; those being graded continue."""
    from kernelmark.service.organizing import PauseOrder, Pauses

    with connected(server) as connection:
        _print_pauses(form, connection.put("brakes", PauseOrder(account=account, why=why), Pauses))


@click.command()
@click.option("--account", metavar="NAME", help="Of this account alone.")
@server_option
@form_option
def resume(account: str | None, server: str | None, form: str) -> None:
    """Go on with the queue, as an organizer."""
    from kernelmark.service.organizing import Pauses

    path = "brakes" if account is None else f"brakes?account={name_part(account)}"
    with connected(server) as connection:
        connection.delete(path)
        _print_pauses(form, connection.get("brakes", Pauses))


@click.command()
@click.argument("run")
@server_option
@form_option
def again(run: str, server: str | None, form: str) -> None:
    """Grade the submission RUN, which has failed, once more, as an organizer or an assistant; RUN is its whole id.

    Nobody does it for runs of their own or of their team.
    """
    from kernelmark.client.lines import waiting
    from kernelmark.service.submissions import SubmissionStatus

    with connected(server) as connection:
        status = connection.post(f"gradings/{name_part(run)}/again", None, SubmissionStatus)
    print_as(form, "submission", status, [f"run {status.run}: {waiting(status)}"])


def _own_pins(settings: Settings, slug: str, *, none: bool) -> Iterator[Pin]:
    """The hashes that this machine has of a problem's private cases, without and with the final tests."""
    from kernelmark.project.problems import find_problem
    from kernelmark.service.organizing import Pin

    for final in (False, True):
        problem = find_problem(settings, slug, final)
        private = None if none or problem.private is None else problem.private.sha256
        yield Pin(problem=problem.slug, final=final, private_sha256=private)


def _print_pins(form: str, found: Pins) -> None:
    rows = []
    for row in found.items:  # without a confirmed hash, workers without private cases grade it
        right = [name for name, sha256 in row.workers.items() if sha256 == row.private_sha256]
        others = [name for name in row.workers if name not in right]
        confirmed = (row.private_sha256 or "none")[:16]
        rows.append((row.problem, "yes" if row.final else "no", confirmed, ", ".join(right), ", ".join(others)))
    head = ("problem", "final tests", "confirmed private cases", "workers with these", "with others")
    print_as(form, "pins", found, table(head, rows))


def _print_pauses(form: str, found: Pauses) -> None:
    rows = [(row.account or "everything", row.why, row.by, minute(row.at)) for row in found.items]
    print_as(form, "brakes", found, table(("paused", "why", "by", "since (UTC)"), rows, "nothing is paused"))
