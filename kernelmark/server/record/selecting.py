"""Records which runs of an account count once their problem is closed. The route of selections calls it. Trusted."""

from __future__ import annotations

from datetime import UTC, datetime

from harness.errors import UsageError
from kernelmark.record import recording
from kernelmark.record.records import FoundRun, find_run, whole
from kernelmark.server.accounts.principal import Principal
from kernelmark.server.record import stores
from kernelmark.server.record.boards import settings_of
from kernelmark.server.service import Service
from kernelmark.service.refusal import Refusal
from kernelmark.service.submissions import SelectedRuns, SelectionRequest
from leaderboard.standings.usage import DAY

_MOST_A_DAY = 50  # each is a line of the ledger, for ever


def select(service: Service, principal: Principal, request: SelectionRequest) -> SelectedRuns:
    """Append a selection to the ledger of its runs; its author is the account.

    Raises:
        Refusal: there are no selections, a run is not the author's or team's, or a rule is not met.
        LedgerError: the ledger is not as this server has left it, or cannot be appended to.
    """
    settings, name = settings_of(service), principal.name
    if settings.selection is None:
        remedy = "the best run of each author counts here"
        raise Refusal(409, "no-selection", "select", "is for competitions in which authors select", remedy)
    found = list[FoundRun]()
    for run in request.runs:
        try:
            found.append(find_run(whole(settings), run))
            ledger, entry = found[-1]
            is_own = settings.teams.name_of(entry.verdict.submission.author) == settings.teams.name_of(name)
        except UsageError:
            is_own = False
        if not is_own:  # another's is answered as if it were not there
            remedy = "`kernelmark runs --from SERVER` lists yours"
            raise Refusal(404, "no-such-run", f"run {run}", "is no recorded run of yours", remedy)
    slug, since = ledger.path.stem, datetime.now(UTC) - DAY
    with ledger.lines() as lines:
        lately = [made for made in lines.selections() if made.author == name and made.created_at > since]
    if len(lately) >= _MOST_A_DAY:
        what = f"has selected {len(lately)} times on {slug} in 24 hours"
        raise Refusal(429, "limit-reached", name, what, "select again later", retry_after_s=3600)
    with service.database.read() as connection:
        heads = stores.heads_of(connection)
    try:
        selected = recording.select(settings, name, found, heads)
    except UsageError as error:
        raise Refusal(409, "selection", error.where, error.what, error.remedy) from None
    service.database.write(lambda connection: stores.remember(connection, slug, ledger.head())).result()
    return selected
