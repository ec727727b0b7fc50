"""The site of real gradings: kernels of this repository, graded in a sandbox as a user does, and every page of it seen.

The other tests here build their site of verdicts that were made up; nothing of this one was.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.project import REFERENCE, begin, run
from tests.browser.test_site import (  # noqa: F401 - they run here too, on this module's site
    test_every_page_opens_fits_and_has_no_error,
    test_no_page_names_another_host,
)

pytestmark = [pytest.mark.full, pytest.mark.browser, pytest.mark.bwrap]

NO_MAXIMUM = "def softmax(x, y):\n    y.copy_(x.exp() / x.exp().sum(dim=1, keepdim=True))\n"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two authors' softmax, one of them beside a baseline, a wrong one, and one GELU."""
    project = tmp_path_factory.mktemp("real")
    begin(project)
    (project / "wrong.py").write_text(NO_MAXIMUM)
    submitted(project, 0, "softmax", REFERENCE / "softmax/eager.py", "--author", "ada")
    submitted(project, 0, "softmax", REFERENCE / "softmax/cpp.cpp", "--author", "bob", "--baseline", "eager")
    submitted(project, 1, "softmax", "wrong.py", "--author", "cyd")
    submitted(project, 0, "gelu", REFERENCE / "gelu/eager.py", "--author", "ada")
    run(project, 0, "main", "site", "build")
    return project / "site"


def submitted(project: Path, status: int, *args: str | Path) -> None:
    run(project, status, "submit", *args, "--device", "cpu", "--sandbox", "bwrap", "--quick")


def test_the_site_tells_what_was_graded(site: Path) -> None:
    (board,) = json.loads((site / "problems/softmax.json").read_bytes())["boards"]
    assert board["current"]
    assert {row["author"] for row in board["rows"]} == {"ada", "bob"}
    assert [row["submission"] for row in board["baselines"]] == ["eager"]
    for row in board["rows"]:
        run = json.loads((site / f"runs/{row['run']}.json").read_bytes())
        assert run["verdict"]["environment"]["sandbox"] == "bwrap"
        assert run["source"] == (REFERENCE / "softmax" / row["submission"]).read_text()
        assert "stale" not in run
    assert len(list((site / "compare").glob("*.html"))) == 1
    (attempt,) = json.loads((site / "authors/cyd.json").read_bytes())["attempts"]
    assert attempt["outcomes"] == {"wrong_answer": 1}
    assert "NaN" in (site / "authors/cyd.html").read_text()
