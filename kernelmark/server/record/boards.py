"""The public documents of the problems and the record, as JSON: those of `kernelmark ... --format json`.

The public routes and the recorder call it. Trusted. Nothing here reads private cases. Results that a frozen board
hides, and text that may quote a source which is not shown yet, are left out for those who may not see them.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from threading import Lock

from sqlalchemy import select

from harness.errors import UsageError
from harness.files.outside import stamp
from kernelmark.authoring import start
from kernelmark.authoring.start import Start
from kernelmark.project.competition import state
from kernelmark.project.documents import portable, written
from kernelmark.project.problems import entry_points_of, statement_of
from kernelmark.project.settings import Settings
from kernelmark.record.publishing import rule
from kernelmark.record.records import find_run, ledger, listed, places, published, tables, whole
from kernelmark.server.accounts.accounts import owner_of
from kernelmark.server.accounts.principal import Principal
from kernelmark.server.clock import moment
from kernelmark.server.database.tables import accounts
from kernelmark.server.queue import limits
from kernelmark.server.service import Service
from kernelmark.service.record import LedgerHead
from kernelmark.service.refusal import Refusal
from kernelmark.text import problem as text
from kernelmark.text.problems import BoardPlace
from kernelmark.text.standings import of_runs
from leaderboard.record.entry import NO_HASH
from leaderboard.record.teams import Teams

_KEPT = 64  # boards
_made: dict[tuple[object, ...], tuple[str, dict[str, str]]] = {}
_making = Lock()


def settings_of(service: Service) -> Settings:
    """The project's settings with the teams of the accounts; `[teams]` is for authors without an account."""
    with service.database.read() as connection:
        found = {row.name: row.team for row in connection.execute(select(accounts.c.name, accounts.c.team))}
    teams: dict[str, tuple[str, ...]] = {}
    for name, team in sorted(found.items()):
        if team is not None:
            teams[team] = (*teams.get(team, ()), name)
    settings = published(service.project.settings)
    for team, members in settings.teams.root.items():
        others = tuple(member for member in members if member not in found)
        if others:
            teams[team] = (*teams.get(team, ()), *others)
    return settings.model_copy(update={"teams": Teams(teams)})


def problem_list(service: Service, principal: Principal | None) -> str:
    """The problems that can be graded, with the ranks of the account that asks, and what is left to it."""
    settings, stands, author, left = settings_of(service), dict[str, list[BoardPlace]](), "", ""
    if principal is not None and principal.account_id is not None:
        author = principal.name
        stands = places(settings.model_copy(update={"author": author}))
        with service.database.read() as connection:
            account = connection.execute(select(accounts).where(accounts.c.id == principal.account_id)).one()
            left = limits.left(connection, service, account, owner_of(principal))
    found = listed(settings, service.files.snapshot.problems.values(), stands, author, left)
    return portable(written("problems", found), settings.root)


def problem(service: Service, slug: str) -> str:
    """A problem without its hidden cases.

    Raises:
        Refusal: there is none, or it cannot be graded.
    """
    document = text.document(service.files.snapshot.problem(slug))
    return portable(written("problem", document), service.project.root)


def problem_text(service: Service, slug: str) -> str:
    """A problem as `kernelmark problems show` prints it, without the times of baselines.

    Raises:
        Refusal: as for `problem`.
    """
    found = service.files.snapshot.problem(slug)
    now = moment(service.clock.now_ns())
    return "".join(f"{line}\n" for line in text.lines(found, statement_of(found), entry_points_of(found), now=now))


def problem_start(service: Service, slug: str, language: Start) -> str:
    """A first submission to a problem, as `kernelmark start` writes it.

    Raises:
        Refusal: as for `problem`, or the problem cannot be solved in this language.
    """
    found = service.files.snapshot.problem(slug)
    try:
        return start.source(found, language)
    except UsageError as error:  # `where` may be a path of this machine
        raise Refusal(422, "no-start", f"problem {slug}", error.what, error.remedy or "choose another") from None


def board(service: Service, slug: str | None) -> str:
    """The standings of a problem, or of all.

    Raises:
        Refusal: there is no such problem.
        LedgerError: a ledger is broken.
    """
    return _board(service, slug)[0]


def standings(service: Service, slugs: Iterable[str]) -> dict[str, str]:
    """The standing of each run on the boards of these problems, as `kernelmark runs` says it.

    Raises:
        Refusal, LedgerError: as for `board`.
    """
    return {run: standing for slug in slugs for run, standing in _board(service, slug)[1].items()}


def _board(service: Service, slug: str | None) -> tuple[str, dict[str, str]]:
    """The document of a board, and the standing of each run on it."""
    settings = settings_of(service)
    slugs = sorted(path.stem for path in settings.locate("results").glob("*.jsonl"))
    if slug is not None:
        if slug not in slugs:
            service.files.snapshot.problem(slug)
            return written("board", []), {}
        slugs = [slug]
    states = tuple(_state(settings, name) for name in slugs)
    key = (settings.root, settings.teams.model_dump_json(), slug, states)
    with _making:
        if key not in _made:
            while len(_made) >= _KEPT:
                del _made[next(iter(_made))]
            found = tables(settings, slug)
            _made[key] = written("board", found), of_runs(found)
        return _made[key]


def run(service: Service, name: str, principal: Principal | None) -> str:
    """The verdict of a run. Others than its author and assistants see it as far as they see the board and the sources.

    Raises:
        Refusal: there is none that may be shown.
        LedgerError: a ledger is broken.
    """
    settings = service.project.settings
    unknown = Refusal(404, "no-such-run", f"run {name}", "is not one that is shown", "a board names its runs")
    try:
        recorded, entry = find_run(whole(settings), name)
    except UsageError:
        raise unknown from None
    verdict, slug, now = entry.verdict, recorded.path.stem, datetime.now(UTC)
    own = principal is not None and principal.account_id is not None and principal.name == verdict.submission.author
    if not own and (principal is None or not principal.has("assist")):
        found = state(published(settings), slug, now)
        if found.frozen is not None and verdict.created_at > found.frozen:
            raise unknown
        known = service.files.snapshot.problems.get(slug)
        if known is None or rule(known, found.schedule).hidden(now):
            verdict = verdict.model_copy(update={"log": "", "traceback": ""})  # which can quote the source
    return written("verdict", verdict.to_json())


def head(service: Service, slug: str) -> str:
    """The head of a problem's ledger. Its size is left out: that of a line tells how a run ended.

    Raises:
        Refusal: there is no such problem.
        LedgerError: the ledger is broken.
    """
    own = ledger(service.project.settings, slug)
    if not own.path.exists():
        service.files.snapshot.problem(slug)
    last = own.head()
    return LedgerHead(
        problem=slug, seq=last.seq if last else 0, sha256=last.sha256 if last else NO_HASH
    ).model_dump_json()


def _state(settings: Settings, slug: str) -> tuple[object, ...]:
    """A value that changes when a problem's standings may: with its ledger, its files, or its schedule."""
    folder = settings.locate("problems") / slug
    files = (settings.locate("results") / f"{slug}.jsonl", folder / "problem.toml", folder / "reference.py")
    found = state(settings, slug, datetime.now(UTC))
    return (slug, found.frozen, found.closed, *map(stamp, files))
