"""Fleets with real gradings in bubblewrap: outcomes are as alone, beside hostile neighbours, too, and nothing stays."""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from harness.errors import UsageError
from harness.judge.session import folder as session_folder
from harness.sandbox.tree import tree
from harness.verdict import Outcome
from kernelmark import Fleet, Job, JobResult, JobTimeoutError
from kernelmark.diagnostics.selftest import HERE as SELFTEST
from kernelmark.diagnostics.selftest import PROBLEMS
from tests.integration.test_sandboxes import eventually
from tests.leftovers import groups
from tests.open_files import open_files

pytestmark = [pytest.mark.bwrap, pytest.mark.alone]
ROOT = Path(__file__).parents[2]

RIGHT = "import torch\ndef twice(x, y): torch.mul(x, 2, out=y)\n"
SUBMISSIONS = {
    "right": (RIGHT, Outcome.ACCEPTED),
    "wrong": ("def twice(x, y): y.copy_(3 * x)\n", Outcome.WRONG_ANSWER),
    "raises": ("def twice(x, y): raise ValueError('no')\n", Outcome.RUNTIME_ERROR),
    "crashes": ("import ctypes\ndef twice(x, y): ctypes.string_at(0)\n", Outcome.RUNTIME_ERROR),
    "ends": ("import os\nos._exit(0)\n", Outcome.RUNTIME_ERROR),
    "hangs": ("import time\ndef twice(x, y): time.sleep(1e6)\n", Outcome.TIMEOUT),
    "does not parse": ("def twice(x, y:\n", Outcome.COMPILE_ERROR),
}
OFTEN = ("right", "wrong", "crashes", "hangs")  # the others run beside the hostile ones
HOSTILE = {"endless_forks": Outcome.RUNTIME_ERROR, "full_disks": Outcome.ACCEPTED, "killed_processes": Outcome.ACCEPTED}


@pytest.fixture
def scratch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where all temporary files of this process and its workers are; they are gone at the end."""
    folder = Path(tempfile.mkdtemp(prefix="fl-"))  # a short name, as that of a socket must be
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    files = open_files().total()
    yield folder
    assert left_in(folder) == []
    assert open_files().total() <= files
    shutil.rmtree(folder)


@pytest.fixture
def project(tmp_path: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With the problem `double`, in which nothing may take longer than 5 s."""
    shutil.copytree(PROBLEMS / "double", tmp_path / "problems/double")
    file = tmp_path / "problems/double/problem.toml"
    text = file.read_text().replace("build_s = 60.0", "build_s = 5.0").replace("call_s = 10.0", "call_s = 5.0")
    file.write_text(text)
    (tmp_path / "kernelmark.toml").write_text('author = "organizer"\n')
    monkeypatch.chdir(tmp_path)
    return tmp_path


def left_in(folder: Path) -> list[str]:
    """Not by `Path.rglob`, which raises where a folder is removed meanwhile."""
    found = [name for _, folders, files in os.walk(folder) for name in (*folders, *files)]
    return sorted(name for name in found if not name.endswith(".lock"))


def job(kind: str, number: int = 0, **options: Any) -> Job:
    source = SUBMISSIONS[kind][0] if kind in SUBMISSIONS else hostile(kind)
    return Job(problem="double", submission=f"{source}\n# {number}\n", key=kind, **options)


def hostile(name: str) -> str:
    return (SELFTEST / "attacks" / name / "submission.py").read_text()


def fleet(**options: Any) -> Fleet:
    return Fleet(device="cpu", sandbox="bwrap", **options)


class Watched:
    """The processes below this one while it is used; none of them is there afterwards."""

    def __enter__(self) -> set[int]:
        self._before, self.seen = tree({os.getpid()}), set[int]()
        return self.seen

    def __exit__(self, *_: object) -> None:
        eventually(lambda: not (tree({os.getpid()}) - self._before) or None)
        assert groups(self.seen) == []


def graded(results: Iterable[JobResult], seen: set[int]) -> dict[object, JobResult]:
    got = {}
    for result in results:
        seen |= tree({os.getpid()})
        got[result.job.key] = result
    return got


@pytest.mark.full
def test_a_mix_ends_as_each_does_alone_and_leaves_nothing(project: Path) -> None:
    jobs = [*map(job, OFTEN), Job(problem="trebble", submission=RIGHT, key="unknown")]
    jobs.append(Job(problem="double", submission=jobs[0].submission, author="bob", key="duplicate"))

    async def given() -> AsyncIterator[Job]:
        await asyncio.sleep(0)
        yield job("wrong", 1)

    async def asynchronous(workers: Fleet) -> Counter[str]:
        return Counter(
            [each.verdict.outcome async for each in workers.agrade_many(given(), effort="screen") if each.verdict]
        )

    with Watched() as seen, fleet(slots=2) as workers:
        got = graded(workers.grade_many(jobs, effort="screen", record=False), seen)
        status = workers.status()
        checks = graded(workers.check_many([job("right")]), seen)
        later = asyncio.run(asynchronous(workers))
    assert set(got) == {each.key for each in jobs}
    for kind in OFTEN:
        outcome, verdict = SUBMISSIONS[kind][1], got[kind].verdict
        assert verdict is not None, got[kind].error
        assert (verdict.outcome, verdict.effort) == (outcome, "screen"), f"{kind}: {verdict.message}"
        assert (verdict.score is None) == (outcome is not Outcome.ACCEPTED)
        assert verdict.environment.device_name == got[kind].device
    assert isinstance(got["unknown"].error, UsageError)
    copied, first = got["duplicate"], got["right"]
    assert copied.duplicate
    assert (copied.verdict.score, copied.verdict.submission.author) == (first.verdict.score, "bob")
    assert (status.done, status.in_flight, list(status.by_device.values())) == (len(OFTEN), 0, [len(OFTEN)])
    [check] = [each.check for each in checks.values()]
    assert check.outcome is Outcome.ACCEPTED
    assert later == Counter([Outcome.WRONG_ANSWER])


PROGRAM = """
import signal
import kernelmark
signal.signal(signal.SIGINT, signal.default_int_handler)  # where the tests run in the background it is ignored
jobs = [kernelmark.Job(problem="double", submission=f"import time\\ntime.sleep(1e6)  # {n}") for n in range(8)]
with kernelmark.Fleet(device="cpu", sandbox="bwrap", slots=2) as fleet:
    list(fleet.grade_many(jobs))
print("not reached")
"""


@pytest.mark.parametrize(
    "how", [signal.SIGKILL, *(pytest.param(each, marks=pytest.mark.full) for each in (signal.SIGINT, signal.SIGTERM))]
)
def test_a_dispatcher_that_ends_takes_everything_with_it(project: Path, scratch: Path, how: int) -> None:
    """Ctrl-C goes to the dispatcher alone, which ends its workers; that it was killed a worker notices itself."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command, pipe = [sys.executable, "-c", PROGRAM], subprocess.PIPE
    script = subprocess.Popen(command, env=environment, start_new_session=True, stdout=pipe, stderr=pipe, text=True)
    try:
        below = eventually(lambda: grading(script.pid))
        time.sleep(1)  # it builds now, which will not end
        below = tree({script.pid}) - {script.pid} or below
        if how == signal.SIGINT:
            os.killpg(script.pid, how)
        else:
            script.send_signal(how)
        out, err = script.communicate(timeout=120)
        assert "not reached" not in out
        assert script.returncode == -how, err
        assert ("KeyboardInterrupt" in err) == (how == signal.SIGINT)
        assert "trying once more" not in err
        eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in below) or None)
        eventually(lambda: not left_in(scratch) or None)
        assert groups(below) == []
    finally:
        script.kill()
        script.wait()


def grading(pid: int) -> set[int] | None:
    """The processes below one, once a runner is among them."""
    below = tree({pid}) - {pid}
    lines = map(command_of, below)
    return below if any(b"/harness/runner/__main__.py" in line and b"bwrap" not in line for line in lines) else None


def command_of(pid: int) -> bytes:
    """Its command line, with a zero byte after each word; empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def workers_of(pid: int) -> list[int]:
    """The worker processes that a process has started."""
    children = list[int]()
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # a thread that has ended
            children += map(int, file.read_text().split())
    return [child for child in children if b"kernelmark.grading.fleet.worker" in command_of(child)]


@pytest.mark.full
def test_a_worker_that_is_killed_in_the_middle_is_replaced(project: Path, scratch: Path) -> None:
    with Watched() as seen, fleet(slots=2) as workers:
        results = workers.grade_many([job("right", number) for number in range(4)], effort="screen")
        got = [next(results)]
        [worker] = workers_of(os.getpid())
        sandboxes = tree({worker})
        os.kill(worker, signal.SIGKILL)
        got += list(results)
        [another] = workers_of(os.getpid())
        assert another != worker
        seen |= {another}
        gone = eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in sandboxes) or None)
    assert gone
    assert [each.verdict.outcome for each in got if each.verdict] == [Outcome.ACCEPTED] * 4
    for left in scratch.glob("kernelmark-session-*"):
        os.utime(left, (0, 0))  # the next judge removes what a killed one left, once it is not new any more
    made, lock = session_folder.make()
    os.close(lock)
    made.rmdir()


def test_a_call_that_is_cancelled_ends_its_sandbox_and_no_other(project: Path) -> None:
    """One that hangs is cancelled, another times out, and the one beside them is graded; the worker stays."""

    async def main(workers: Fleet, seen: set[int]) -> tuple[JobResult, JobResult]:
        hanging = asyncio.create_task(workers.agrade(job("hangs")))
        below = await asyncio.to_thread(eventually, lambda: grading(os.getpid()))
        [worker] = workers_of(os.getpid())
        hanging.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hanging
        gone = await asyncio.to_thread(eventually, lambda: tree({worker}) == {worker} or None)
        assert gone
        seen |= below
        late, right = await asyncio.gather(workers.acheck(job("hangs", timeout=4)), workers.acheck(job("right")))
        assert workers_of(os.getpid()) == [worker]
        return late, right

    with Watched() as seen, fleet(slots=2) as workers:
        late, right = asyncio.run(main(workers, seen))
        status = eventually(lambda: workers.status() if not workers.status().in_flight else None)
    assert (type(late.error), late.check) == (JobTimeoutError, None)
    assert right.check is not None
    assert right.check.outcome is Outcome.ACCEPTED
    assert (status.done, status.lost, status.retried) == (1, 0, 0)


@pytest.mark.full
def test_honest_neighbours_of_hostile_submissions_end_as_alone(project: Path, scratch: Path) -> None:
    """Fork bombs, full disks, killed parents and hangs, with two slots, so that they run beside honest ones."""
    expected = {**{kind: outcome for kind, (_, outcome) in SUBMISSIONS.items()}, **HOSTILE}
    honest = itertools.cycle(["right", "wrong", "raises"])
    pairs = zip([*SUBMISSIONS, *HOSTILE], honest, strict=False)
    jobs = [job(kind, number) for number, pair in enumerate(pairs) for kind in pair]
    with Watched() as seen, fleet(slots=2) as workers:
        endings: list[tuple[object, Outcome]] = []
        for result in workers.grade_many(jobs, effort="screen"):
            seen |= tree({os.getpid()})
            assert result.verdict is not None, result.error
            endings.append((result.job.key, result.verdict.outcome))
        in_flight = workers.status().in_flight
    assert len(endings) == len(jobs)
    assert [ending for ending in endings if ending[1] is not expected[str(ending[0])]] == []
    assert in_flight == 0
