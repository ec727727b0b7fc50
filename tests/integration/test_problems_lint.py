"""Every problem of this repository: its null kernels, and each sample with its expected outcome."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from kernelmark.authoring import lint
from kernelmark.diagnostics.selftest import PROBLEMS
from kernelmark.project.settings import Settings
from kernelmark.text.progress import BatchReporter
from tests.command import kernelmark
from tests.documents import items
from tests.shipped import ROOT, SLUGS


@pytest.mark.full
@pytest.mark.parametrize("slug", SLUGS)
def test_the_lint_finds_nothing(slug: str) -> None:
    """In forked runners: what a sample computes has nothing to do with the sandbox, and one takes longer to start."""
    _finds_nothing([slug], Settings.load(device="cpu", sandbox="process"))


@pytest.mark.gpu
def test_the_lint_finds_nothing_on_a_gpu() -> None:
    """In one fleet, whose start takes as long as some samples."""
    _finds_nothing(SLUGS, Settings.load(device="cuda", sandbox="docker"))


def _finds_nothing(slugs: Sequence[str], settings: Settings) -> None:
    folders = [ROOT / "problems" / slug for slug in slugs]
    reports = lint.lint(settings, folders, with_samples=True, reporter=BatchReporter())
    assert [report.problem for report in reports] == list(slugs)
    assert [
        (report.problem, finding) for report in reports for finding in report.findings if finding.level != "note"
    ] == []
    assert [report.problem for report in reports if report.samples < 4] == []


@pytest.mark.full
@pytest.mark.bwrap
def test_samples_are_checked_two_at_a_time(tmp_path: Path) -> None:
    """Of two problems, whose reports keep their order, and their samples theirs."""
    for slug in ("one", "two"):
        shutil.copytree(PROBLEMS / "double", tmp_path / "problems" / slug)
        samples = tmp_path / "problems" / slug / "samples"
        samples.mkdir()
        (samples / "right.py").write_text("def twice(x, y):\n    y.copy_(2 * x)\n")
        table = '[{}]\nfile = "right.py"\nreplace = {{ "2 * x" = "{}" }}\noutcome = "{}"\n'
        tried = (("right", "x + x", "accepted"), ("wrong", "x + 1", "wrong_answer"), ("odd", "x", "accepted"))
        (samples / "expected.toml").write_text("".join(table.format(*sample) for sample in tried))
    (tmp_path / "kernelmark.toml").write_text('device = "cpu"\nsandbox = "bwrap"\n')
    done = kernelmark(tmp_path, "problems", "lint", "--jobs", "2", "--format", "json")
    assert done.returncode == 2, done.stderr
    reports = items(done.stdout)
    assert [(report["problem"], report["samples"]) for report in reports] == [("one", 3), ("two", 3)]
    errors = [[finding["what"] for finding in report["findings"] if finding["level"] == "error"] for report in reports]
    assert [[what.partition(",")[0] for what in whats] for whats in errors] == [["sample `odd` is wrong_answer"]] * 2
    assert "6/6 " in done.stderr
    assert "build" not in done.stderr, "a fleet's workers show no steps of one sample"
