"""What the tests share: which machines may do without Docker and bubblewrap, and what each worker has of its own.

On a developer's machine a missing provider skips its tests and names the remedy. Where CI=true nothing may be missing:
there the same tests fail.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from harness import sandbox
from harness.judge.timing import device_lock
from harness.verdict import SandboxName
from tests.forked import ForkedProcess

# By default an example that takes 200 ms fails, and so do ten that take a second to draw, which says something of a
# busy machine and nothing of the code. The examples are the same in every run, so that a test fails only where the code
# has changed; tests/fuzz looks for others.
settings.register_profile("kernelmark", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("kernelmark")

_MARKED: tuple[SandboxName, ...] = ("docker", "bwrap")
_reasons: dict[str, str | None] = {}
sandbox._PROVIDERS["process"] = lambda _: ForkedProcess()  # for what the process of the tests grades itself


def pytest_configure(config: pytest.Config) -> None:
    """Give a worker of pytest-xdist its share of the processors, and its own temporary folder.

    With as many threads as processors in every worker, OpenMP's would spin while others work: a grading took 6 s of
    processor time instead of one. Torch and NumPy read the number when they are imported, which they are not yet.
    Tests look at what their gradings leave in the temporary folder. The locks there let workers grade at the
    same time, as if on two machines. What gradings keep is kept for the tests alone.
    """
    os.environ["XDG_CACHE_HOME"] = cache = tempfile.mkdtemp(prefix="cache-")
    config.add_cleanup(lambda: shutil.rmtree(cache, ignore_errors=True))
    os.environ["KERNELMARK_RESIDENT"] = "false"  # none outlives the tests; those that test it start their own
    if (worker := os.environ.get("PYTEST_XDIST_WORKER")) is None:
        return
    threads = max(1, len(os.sched_getaffinity(0)) // int(os.environ["PYTEST_XDIST_WORKER_COUNT"]))
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, str(threads))
    folder = Path(tempfile.mkdtemp(prefix=f"{worker}-"))
    folder.chmod(0o1777)  # as /tmp: sandboxes of other users reach what is below it
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
    device_lock._DIRECTORY = folder
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent / "unit" in item.path.parents:
            item.add_marker("unit")


def pytest_runtest_setup(item: pytest.Item) -> None:
    for name in _MARKED:
        if item.get_closest_marker(name) is None:
            continue
        if name not in _reasons:
            _reasons[name] = sandbox.provider(name).unavailable()
        if (reason := _reasons[name]) is not None:
            (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(f"{name}: {reason}")
