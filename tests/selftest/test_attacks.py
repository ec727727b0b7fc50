"""Every attack, in every sandbox that it names: none may be accepted with a result it did not earn.

Attacks on a GPU run where there is one: `pytest -m gpu tests/selftest`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.verdict import DeviceKind, SandboxName
from kernelmark.diagnostics.selftest import HERE, KnownSubmission, SelfTest, attacks
from tests.cases import trials
from tests.leftovers import nothing_left

FOLDER = HERE / "attacks"
ATTEMPTS = SelfTest()


@pytest.mark.parametrize(("case", "device", "sandbox"), trials(attacks()))
def test_attack(
    case: KnownSubmission, device: DeviceKind, sandbox: SandboxName, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kernelmark.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    with nothing_left():
        trial = ATTEMPTS.attempt(case, device, sandbox)
    assert trial.failure is None


def test_no_folder_is_forgotten() -> None:
    folders = {path.name for path in FOLDER.iterdir() if path.is_dir() and path.name[0] not in "._"}
    assert folders == {case.label for case in attacks()}
    assert len(folders) >= 60
