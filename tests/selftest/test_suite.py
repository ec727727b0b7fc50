"""Every attack and every honest kernel, on each device and in each sandbox that it names.

No attack may be accepted with a result it did not earn, and no honest kernel, odd styles among them, may be refused.
What needs a GPU runs where there is one: `pytest -m gpu tests/selftest`.
"""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from harness.verdict import DeviceKind, SandboxName
from kernelmark.diagnostics.selftest import HERE, KnownSubmission, SelfTest, attacks, honest
from tests.leftovers import nothing_left

SUITE = {"attacks": attacks(), "honest": honest()}
ATTEMPTS = SelfTest()


def trials() -> list[Any]:
    """(case, device, sandbox); what needs a GPU, or is too much for `make test`, is marked so."""
    found = []
    for case in (*SUITE["attacks"], *SUITE["honest"]):
        for device in case.devices:
            for sandbox in case.sandboxes:
                always = case.often and device == "cpu" and sandbox == case.sandboxes[0]
                marks = [pytest.mark.gpu] if device == "cuda" else [getattr(pytest.mark, sandbox)]
                marks += [] if always else [pytest.mark.full]
                found.append(pytest.param(case, device, sandbox, marks=marks, id=f"{case.label}-{device}-{sandbox}"))
    return found


@pytest.mark.parametrize(("case", "device", "sandbox"), trials())
def test_known_submission(
    case: KnownSubmission, device: DeviceKind, sandbox: SandboxName, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kernelmark.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    with nothing_left() if case.surface else nullcontext():
        trial = ATTEMPTS.attempt(case, device, sandbox)
    assert trial.failure is None


@pytest.mark.parametrize(("kind", "least"), [("attacks", 60), ("honest", 40)])
def test_no_folder_is_forgotten(kind: str, least: int) -> None:
    folders = {path.name for path in (HERE / kind).iterdir() if path.is_dir() and path.name[0] not in "._"}
    assert folders == {case.label for case in SUITE[kind]}
    assert len(folders) >= least
