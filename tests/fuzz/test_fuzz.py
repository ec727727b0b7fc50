"""Each fuzz target for 20 s: it ends well, and it did execute."""

from __future__ import annotations

import importlib.util
import os

import pytest

from tests.fuzz.figures import TARGETS, fuzz

pytestmark = [pytest.mark.full, pytest.mark.alone]  # libFuzzer takes what a busy machine delays for slow


@pytest.mark.parametrize("target", TARGETS)
def test_nothing_is_found_in_20_s(tmp_path, target):
    if importlib.util.find_spec("atheris") is None:
        reason = "atheris is not installed: pip install -e '.[dev]' on Linux, with a Python that it has a wheel for"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)
    found = fuzz(target, 20, tmp_path / target)
    print(found)
    assert not found["failure"]
    assert not found["findings"]
    assert found["executions"] > 0
    assert found["cov"] > 0
