"""The site's pages, one kind a module. `build` makes what is listed here. Trusted; pure."""

from leaderboard.publishing.site.pages import author, comparison, overview, problem, profile, run
from leaderboard.publishing.site.pages.kind import Kind

KINDS: tuple[Kind, ...] = (author.KIND, overview.KIND, problem.KIND, run.KIND, profile.KIND, comparison.KIND)

__all__ = ["KINDS", "Kind"]
