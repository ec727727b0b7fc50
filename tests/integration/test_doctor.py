"""What the doctor finds when it really starts a sandbox: one of each provider, and one of an image that cannot."""

from __future__ import annotations

import pytest

from harness.sandbox import Options, provider
from harness.verdict import SandboxName
from kernelmark.diagnostics.doctor import sandboxes


@pytest.mark.parametrize("name", [pytest.param(n, marks=getattr(pytest.mark, n)) for n in ("docker", "bwrap")])
def test_a_sandbox_of_each_provider_is_really_launched(name: SandboxName) -> None:
    assert sandboxes.launch_fails(provider(name)) is None


@pytest.mark.docker
def test_an_image_that_can_start_no_container_is_found() -> None:
    broken = provider("docker", Options(docker_python="/no/such/python"))
    assert broken.unavailable() is None, "which is why one is launched"
    reason = sandboxes.launch_fails(broken)
    assert reason.startswith("no sandbox starts: ")
    assert "/no/such/python" in reason
