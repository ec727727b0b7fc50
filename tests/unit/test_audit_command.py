"""`kernelmark audit`: what goes wrong with one tool costs neither the other tools nor the other runs their turn."""

from __future__ import annotations

from contextlib import nullcontext
from unittest.mock import Mock

import pytest

from harness.device import DEVICES, DeviceFacts
from harness.errors import SandboxError
from harness.profiling.sanitizer import ToolReport
from kernelmark.diagnostics import audits
from kernelmark.diagnostics.audits import first
from kernelmark.project.settings import Settings
from leaderboard.record.current import Current
from leaderboard.standings.ranking import rank
from tests.verdicts import accepted, chained, sha256


def test_a_sandbox_that_fails_or_a_mistake_of_ours_is_that_tools_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    says = {
        "first": SandboxError("the container did not start", "run `kernelmark doctor`"),
        "second": ZeroDivisionError("a mistake of ours"),
        "third": ToolReport("clean", "3 of 3 tests: no errors"),
    }

    audit = Mock(side_effect=says.values())
    monkeypatch.setattr(audits, "lock_alone", lambda device, wait: nullcontext())
    found = [audits._report(audit, "0123456789abcdef", name) for name in says]
    assert [report.state for report in found] == ["failed", "failed", "clean"]
    assert found[0].text.startswith("the container did not start")
    assert "ZeroDivisionError" in found[1].text


def test_the_first_of_both_tables_are_audited_and_a_file_in_both_once(monkeypatch: pytest.MonkeyPatch) -> None:
    isolated = accepted(author="ada", source="hers")
    others = [accepted(author="ada", source="hers", sandbox="process")]
    others.append(accepted(author="bob", source="his", score_ns=60_000, sandbox="process"))
    now = Current(problems={"softmax": sha256("softmax 1")}, protocol=1)
    tables = rank(chained(isolated, *others), now)
    monkeypatch.setattr(audits, "current", lambda settings: now)
    monkeypatch.setattr(audits, "tables", lambda settings, problem: tables)
    monkeypatch.setattr(DEVICES["cuda"], "facts", lambda: DeviceFacts("NVIDIA H200"))
    assert list(first(Settings(), 2, None)) == [isolated.run, others[1].run]
