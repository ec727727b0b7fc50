"""The scenarios of `python -m benchmarks.service` at 1/50 of the load: their results, not their times."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.service.__main__ import SCENARIOS

SCALE = 1 / 50
pytestmark = pytest.mark.full


@pytest.mark.parametrize("name", SCENARIOS)
def test_nothing_is_wrong_at_a_fiftieth_of_the_load(name: str, tmp_path: Path) -> None:
    assert SCENARIOS[name](tmp_path, SCALE)["wrong"] == []
