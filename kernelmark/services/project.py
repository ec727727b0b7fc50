"""The project's files: its problems, and what is written when a result is recorded.

The Python API and the command line call it. Trusted. Where each file lies is a setting.
"""

from __future__ import annotations

import logging
import re
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from harness.errors import HarnessError, ProblemError, UsageError
from kernelmark.services.settings import Place, Settings, nearest
from kernelmark.text.terminal import visible

if TYPE_CHECKING:
    from harness.problem import Problem
    from harness.submission import Submission
    from harness.verdict import DeviceKind, Verdict
    from leaderboard.record.current import Current
    from leaderboard.record.entry import Entry
    from leaderboard.record.ledger import JsonlLedger
    from leaderboard.record.moderation import Action, Moderation, Scope
    from leaderboard.record.similar import Graded
    from leaderboard.standings.ranking import Table

_log = logging.getLogger("kernelmark")


def problem_directories(settings: Settings) -> list[Path]:
    """The project's problems, in the order of their slugs."""
    return sorted(file.parent for file in settings.locate("problems").glob("*/problem.toml"))


def find_problem(settings: Settings, reference: str | Path) -> Problem:
    """Load a problem by its directory or by its slug.

    Raises:
        UsageError: there is none; the message names the nearest slug.
        ProblemError: it cannot be graded.
    """
    from harness.problem import load

    return load(find_directory(settings, reference), private_folder(settings))


def private_folder(settings: Settings) -> Path | None:
    """The folder of private cases, None where none is set.

    Raises:
        UsageError: it is not there, or lies where it would be published with the project.
    """
    if settings.private_cases is None:
        return None
    folder = (settings.root / settings.private_cases.expanduser()).resolve()
    if not folder.is_dir():
        raise UsageError("private_cases", f"{folder} is not a folder", "make it, or leave the setting out")
    root = settings.root.resolve()
    repository = next((each for each in (root, *root.parents) if (each / ".git").exists()), root)
    for own in (repository, root, *(settings.locate(place).resolve() for place in get_args(Place))):
        if folder.is_relative_to(own):
            remedy = "move it elsewhere: it would be published with the project"
            raise UsageError("private_cases", f"{folder} lies in {own}", remedy)
    return folder


def find_directory(settings: Settings, reference: str | Path) -> Path:
    """The absolute path of a problem's directory, by any path to it or by its slug.

    Raises:
        UsageError: there is none; the message names the nearest slug.
    """
    places = [Path(reference), settings.locate("problems") / reference]
    for directory in places:
        try:
            if (directory / "problem.toml").is_file():
                return directory.resolve()
        except OSError as error:  # a name longer than any, a folder that may not be looked into
            raise UsageError(f"{reference!s:.80}", f"cannot be looked for ({error.strerror})") from error
    if places[0].is_dir():
        raise UsageError(str(reference), "holds no problem.toml", "name a problem's directory, or its slug")
    slugs = [directory.name for directory in problem_directories(settings)]
    remedy = nearest(str(reference), slugs) if slugs else f"there are none under {settings.locate('problems')}"
    raise UsageError(str(reference), "no such problem", remedy)


def find_baselines(settings: Settings, problem: Problem, device: DeviceKind) -> list[Submission]:
    """The organizers' kernels that a grading alternates with, in the order of the setting.

    Unless the setting names some, it is `eager` on a GPU where the problem has one, and none with `--quick`.

    Raises:
        UsageError: one that was named is not there, or does not run on the device.
    """
    from harness.submission import Submission

    folder = settings.locate("reference") / problem.slug
    automatic = settings.baselines == ("auto",)
    if automatic and (device == "cpu" or settings.effort == "quick"):
        return []
    found = []
    for name in ("eager",) if automatic else settings.baselines:
        files = [folder / f"{name}.{language}" for language in ("py", "cu" if device == "cuda" else "cpp")]
        file = next((file for file in files if file.is_file()), None)
        if file is not None:
            found.append(Submission.read(file, "baseline"))
        elif not automatic:
            known = sorted({each.stem for each in folder.glob("*") if each.suffix in {".py", ".cu", ".cpp"}})
            raise UsageError(f"baseline {name}", f"is not in {folder}", nearest(name, known) if known else "")
    return found


def record(
    settings: Settings, submission: Submission, verdict: Verdict, late: Moderation | None = None
) -> Table | None:
    """Archive the source, append the verdict to the problem's ledger, rewrite the board.

    `late` is the event that keeps it from ranking. Returns the table that an accepted verdict belongs to.

    Raises:
        HarnessError: a file could not be written; where it is the board alone, the verdict is recorded.
    """
    from leaderboard.record.archive import archive
    from leaderboard.record.ledger import JsonlLedger
    from leaderboard.standings.ranking import rank

    results = settings.locate("results")
    archive(settings.locate("archive"), verdict.problem.slug, submission)
    entry = JsonlLedger(results / f"{verdict.problem.slug}.jsonl").append(verdict, late)
    for warning in entry.warnings:
        warn(warning)
    standings = _published(settings, verdict.problem.slug)
    if verdict.problem.private is None and any(table.private for table in standings):
        warn(f"{verdict.problem.slug} has results with private cases, and this one is without: is `private_cases` set?")
    keys = [alone.key for alone in rank([entry])]
    return next((table for table in standings if table.key in keys), None)


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


def sources(settings: Settings, problem: str) -> tuple[dict[Graded, Submission], list[str]]:
    """Every file that was graded on a problem, once, by its first run; and what is wrong with the others.

    Raises:
        UsageError: the problem is unknown.
        LedgerError: its ledger is broken.
    """
    from leaderboard.record.archive import stored
    from leaderboard.record.entry import VERDICT
    from leaderboard.record.similar import Graded

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
                found[Graded(author=told.author, run=verdict.run, name=told.name)] = source
    return found, missing


def find_run(settings: Settings, prefix: str) -> tuple[JsonlLedger, Entry]:
    """The one recorded verdict, of any problem, whose run begins with these hexadecimal digits, and its ledger.

    Raises:
        UsageError: these are no digits, or none does, or several do.
        LedgerError: a ledger is broken.
    """
    from leaderboard.record.entry import VERDICT

    if not re.fullmatch("[0-9a-f]+", prefix):  # an empty one, as of an unset variable, would fit every run
        raise UsageError(
            f"run {prefix!r}", "is no run", "give its first hexadecimal digits, as `kernelmark board` shows"
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


def moderate(
    settings: Settings, prefix: str, action: Action, actor: str, reason: str, scope: Scope = "run"
) -> Moderation:
    """Append an event of moderation to the ledger that holds a run, and rewrite the board.

    With a scope it speaks of every run of that run's source in this ledger, or of every run of its author, and then it
    is appended to every ledger of the project.

    Raises:
        UsageError: no run, or several, begin with these digits; the actor or the reason is empty or too long.
        HarnessError: as for `record`.
    """
    from pydantic import ValidationError

    from leaderboard.record.moderation import Moderation

    ledger, entry = find_run(settings, prefix)
    verdict = entry.verdict
    try:
        event = Moderation(
            run=verdict.run,
            action=action,
            scope=scope,
            sha256=verdict.submission.sha256 if scope == "source" else None,
            author=verdict.submission.author if scope == "author" else None,
            actor=actor,
            reason=reason,
            created_at=datetime.now(UTC),
        )
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise UsageError(f"--{first['loc'][0]}", f"does not fit: {first['msg']}") from error
    for each in ledgers(settings) if scope == "author" else [ledger]:
        for warning in each.moderate(event).warnings:
            warn(warning)
        _published(settings, each.path.stem)
    return event


def _published(settings: Settings, slug: str) -> list[Table]:
    """The board written after an append; where that fails the append stands, and nobody should do it again."""
    from kernelmark.services.publishing import publish

    try:
        return publish(settings, slug)
    except HarnessError as error:
        remedy = error.remedy or "`kernelmark board --write` writes the board anew"
        raise HarnessError(f"it is recorded, but {error.what}", remedy) from error


def warn(text: str) -> None:
    """Tell the person at the keyboard; without a logging configuration it goes to stderr."""
    _log.warning("kernelmark: warning: %s", visible(text))


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
