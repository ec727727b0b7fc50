"""Every honest kernel, odd styles among them: none may be refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.verdict import DeviceKind, SandboxName
from kernelmark.diagnostics.selftest import HERE, KnownSubmission, SelfTest, honest
from tests.cases import trials

FOLDER = HERE / "honest"
ATTEMPTS = SelfTest()


@pytest.mark.parametrize(("case", "device", "sandbox"), trials(honest()))
def test_honest(
    case: KnownSubmission, device: DeviceKind, sandbox: SandboxName, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kernelmark.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    assert ATTEMPTS.attempt(case, device, sandbox).failure is None


def test_no_folder_is_forgotten() -> None:
    folders = {path.name for path in FOLDER.iterdir() if path.is_dir() and path.name[0] not in "._"}
    assert folders == {case.label for case in honest()}
    assert len(folders) >= 40
