"""What the project has recorded, read: ledgers, standings, runs, sources. Trusted."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import HarnessError, ProblemError, UsageError
from kernelmark.services.problems import find_problem, private_folder, problem_directories
from kernelmark.services.settings import Settings

if TYPE_CHECKING:
    from harness.submission import Submission
    from leaderboard.record.current import Current
    from leaderboard.record.entry import Entry
    from leaderboard.record.ledger import JsonlLedger
    from leaderboard.record.similar import GradedFile
    from leaderboard.standings.ranking import Table


def ledgers(settings: Settings, problem: str | None = None) -> list[JsonlLedger]:
    """The ledger of one problem (its slug or its directory), or all of them, by their slugs.

    Raises:
        UsageError: nothing was ever recorded for that problem, and it does not exist.
    """
    from leaderboard.record.ledger import JsonlLedger

    paths = sorted(settings.locate("results").glob("*.jsonl"))
    if problem is not None:
        slug = Path(problem).name
        paths = [path for path in paths if path.stem == slug]
        if not paths:
            find_problem(settings, problem)
    return [JsonlLedger(path) for path in paths]


def tables(settings: Settings, problem: str | None = None) -> list[Table]:
    """The standings of one problem (its slug or its directory), or of all that have a ledger.

    Raises:
        UsageError: nothing was ever recorded for that problem, and it does not exist.
        LedgerError: a ledger is broken.
    """
    from leaderboard.standings.ranking import rank

    now = current(settings)
    found = [rank(ledger.read(), now) for ledger in ledgers(settings, problem)]
    return [table for tables in found for table in tables]


def current(settings: Settings) -> Current:
    """What a grading would rest on now: by it the board marks what is stale."""
    from harness.problem.load import identify
    from harness.wire import PROTOCOL
    from leaderboard.record.current import Current

    hashes, private = {}, private_folder(settings)
    for directory in problem_directories(settings):
        with suppress(ProblemError):  # it cannot be graded, so nothing of it can be graded again
            hashes[directory.name] = identify(directory, private)
    return Current(problems=hashes, protocol=PROTOCOL, with_private=private is not None)


def find_run(settings: Settings, prefix: str) -> tuple[JsonlLedger, Entry]:
    """The one recorded verdict, of any problem, whose run begins with these hexadecimal digits, and its ledger.

    Raises:
        UsageError: these are no digits, or none does, or several do.
        LedgerError: a ledger is broken.
    """
    from leaderboard.record.entry import VERDICT

    if not re.fullmatch("[0-9a-f]+", prefix):  # an empty one, as of an unset variable, would fit every run
        raise UsageError(
            f"run {prefix!r}", "is not a run id", "give its first hexadecimal digits, as `kernelmark board` shows"
        )
    needle = f'"run":"{prefix}'.encode()  # looked for before a document is parsed
    candidates = (
        (ledger, entry)
        for ledger in ledgers(settings)
        for entry in ledger.read()
        if entry.kind == VERDICT and needle in entry.document
    )
    runs = ((ledger, entry, entry.verdict.run) for ledger, entry in candidates)
    found = [(run, ledger, entry) for ledger, entry, run in runs if run.startswith(prefix)]
    if not found:
        raise UsageError(f"run {prefix}", "was never recorded here", "`kernelmark board` lists the best runs")
    if len(found) > 1:
        raise UsageError(f"run {prefix}", f"could be {', '.join(run for run, *_ in found[:4])}", "give more digits")
    return found[0][1:]


def sources(settings: Settings, problem: str) -> tuple[dict[GradedFile, Submission], list[str]]:
    """Every file that was graded on a problem, once, by its first run; and what is wrong with the others.

    Raises:
        UsageError: the problem is unknown.
        LedgerError: its ledger is broken.
    """
    from leaderboard.record.archive import stored
    from leaderboard.record.entry import VERDICT
    from leaderboard.record.similar import GradedFile

    found, missing, seen = {}, [], set()
    for ledger in ledgers(settings, problem):
        for entry in ledger.read():
            if entry.kind != VERDICT:
                continue
            verdict = entry.verdict
            told = verdict.submission
            if (told.author, told.sha256) in seen:
                continue
            seen.add((told.author, told.sha256))
            try:
                source = stored(settings.locate("archive"), verdict.problem.slug, told)
            except HarnessError as error:
                missing.append(str(error))
            else:
                found[GradedFile(author=told.author, run=verdict.run, name=told.name)] = source
    return found, missing
