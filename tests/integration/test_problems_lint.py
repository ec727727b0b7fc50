"""Every problem of this repository: its null kernels, and each sample with its expected outcome in a sandbox."""

from __future__ import annotations

import pytest

from kernelmark.services import lint
from kernelmark.services.settings import Settings
from kernelmark.text.batch import BatchReporter
from tests.shipped import ROOT, SLUGS

WHERE = [
    pytest.param("cpu", "bwrap", marks=[pytest.mark.bwrap, pytest.mark.full]),
    pytest.param("cuda", "docker", marks=pytest.mark.gpu),
]


@pytest.mark.parametrize(("device", "sandbox"), WHERE)
@pytest.mark.parametrize("slug", SLUGS)
def test_the_lint_finds_nothing(slug: str, device: str, sandbox: str) -> None:
    settings = Settings.load(device=device, sandbox=sandbox)
    [report] = lint.lint(settings, [ROOT / "problems" / slug], with_samples=True, reporter=BatchReporter())
    assert [finding for finding in report.findings if finding.level != "note"] == []
    assert report.samples >= 4
