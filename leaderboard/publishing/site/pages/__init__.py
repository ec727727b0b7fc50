"""The site's pages, one kind a module. `build` makes what is listed here. Trusted; pure."""

from leaderboard.publishing.site.inputs import Kind
from leaderboard.publishing.site.pages import author, comparison, overview, problem, profile, run

KINDS: tuple[Kind, ...] = (author.KIND, overview.KIND, problem.KIND, run.KIND, profile.KIND, comparison.KIND)

__all__ = ["KINDS", "Kind"]
