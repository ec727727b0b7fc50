"""Each fuzz target for 20 s of a processor: it ends well, and it did execute."""

from __future__ import annotations

import importlib.util
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.fuzz.figures import TARGETS, fuzz

pytestmark = [pytest.mark.full, pytest.mark.alone]  # libFuzzer takes what a busy machine delays for slow


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What each target did. They run side by side, since each takes one processor; on two, for half as long again."""
    folder = tmp_path_factory.mktemp("corpora")
    with ThreadPoolExecutor(len(TARGETS)) as pool:
        return dict(zip(TARGETS, pool.map(lambda target: fuzz(target, 30, folder / target), TARGETS), strict=True))


@pytest.mark.parametrize("target", TARGETS)
def test_nothing_is_found_in_20_s(request, target):
    if importlib.util.find_spec("atheris") is None:
        reason = "atheris is not installed: pip install -e '.[dev]' on Linux, with a Python that it has a wheel for"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)
    found = request.getfixturevalue("found")[target]
    print(found)
    assert not found["failure"]
    assert not found["findings"]
    assert found["executions"] > 0
    assert found["cov"] > 0
