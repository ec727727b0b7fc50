"""What every test on a GPU grades in."""

from __future__ import annotations

import pytest

from harness.sandbox import Provider, choose
from kernelmark.project.choice import providers
from kernelmark.project.settings import Settings


@pytest.fixture
def provider() -> Provider:
    """The sandbox that the settings choose."""
    settings = Settings.load()
    return choose(settings.sandbox, providers(settings))
