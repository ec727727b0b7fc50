"""A training loop's jobs with workers that die, calls that are cancelled and jobs that time out: one result for each.

Workers are real processes with a program in the judge's place, which answers from a template.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.errors import HarnessError, JobTimeoutError, UsageError
from harness.submission import Submission
from kernelmark.grading.fleet import Fleet, Job, JobResult
from kernelmark.grading.fleet.process import WorkerProcess
from tests.open_files import open_files
from tests.unit.test_fleet import Made, made
from tests.unit.test_fleet_process import pids
from tests.workers import request as request_of
from tests.workers import soon, until, verdict

__all__ = ["made"]
pytestmark = pytest.mark.usefixtures("no_thread_stays")

# A source says what becomes of it: "dies" the first time, "hangs", or is answered.
PROGRAM = """
import json, os, pathlib, signal, sys
folder = pathlib.Path(sys.argv[1]) / "workers"
template = json.loads((folder / "verdict.json").read_text())
with (folder / "pids").open("a") as file:
    print(os.getpid(), file=file)
def say(**message):
    print(json.dumps(message), flush=True)
say(device="scripted", slots=4)
for line in sys.stdin:
    request = json.loads(line)
    if "cancelled" in request:
        say(run=request["cancelled"], error="it was cancelled", error_class="HarnessError")
        continue
    source = request["submission"]["source"]
    if source.startswith("dies") and not (folder / source).exists():
        (folder / source).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if not source.startswith("hangs"):
        own = {**template["submission"], "author": source.replace(" ", "-")}
        say(run=request["run"], verdict={**template, "run": request["run"], "submission": own})
"""


def kind(number: int) -> str:
    """One in a hundred of each kills its worker, hangs, and is nothing that can be graded; every third is a copy."""
    return {0: "dies", 50: "hangs", 75: "missing"}.get(number % 100, "answered")


def job(number: int) -> Job:
    what = kind(number)
    own = number - 1 if what == "answered" and number % 3 == 0 and kind(number - 1) == what else number
    source = None if what == "missing" else f"{what} {own}"
    return Job(problem="double", submission=source, key=number, timeout=1.0 if what == "hangs" else None)


@pytest.fixture
def workers(competition: Path, made: Made) -> Iterator[Fleet]:
    folder = competition / "workers"
    folder.mkdir()
    template = verdict(request_of(Submission.of("x", "py", author="ada")))
    (folder / "verdict.json").write_text(template.model_dump_json(exclude_none=True))
    before, program = open_files().total(), [sys.executable, "-c", PROGRAM]
    with made(*(WorkerProcess(competition, 4, os.environ, program=program) for _ in range(2))) as fleet:  # type: ignore[arg-type]
        yield fleet
    assert not [pid for pid in pids(folder) if Path(f"/proc/{pid}").exists()]
    assert open_files().total() <= before


def check(results: list[JobResult], fleet: Fleet) -> None:
    """Each is of its own job, and what happened to workers is told."""
    for result in results:
        number, error = result.job.key, result.error
        assert isinstance(number, int)
        if kind(number) == "missing":
            assert (type(error), result.tries) == (UsageError, 0)
        elif error is None:
            assert kind(number) != "hangs"
            assert result.verdict is not None
            own = "anonymous" if result.duplicate else result.job.submission.replace(" ", "-")  # type: ignore[union-attr]
            assert result.verdict.submission.author == own
            assert result.duplicate == (result.tries == 0)
            assert result.tries >= (2 if kind(number) == "dies" else not result.duplicate)
        elif type(error) is JobTimeoutError:
            assert kind(number) == "hangs"
        else:  # workers died three times while they had it
            assert (type(error), "3 times while this was graded" in str(error)) == (HarnessError, True)
    given_up = sum(result.tries == 3 and type(result.error) is HarnessError for result in results)
    status = fleet.status()
    assert status.in_flight == 0
    assert status.lost - status.retried >= given_up, "others timed out when their worker had just died"
    assert status.lost >= sum(kind(result.job.key) == "dies" for result in results)  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [200, pytest.param(2000, marks=pytest.mark.full)])
def test_each_job_of_a_training_loop_has_one_result(workers: Fleet, count: int, competition: Path) -> None:
    results = soon(lambda: list(workers.grade_many(map(job, range(count)), effort="screen")), 300)
    assert sorted(result.job.key for result in results) == list(range(count))  # type: ignore[type-var]
    until(lambda: not workers.status().in_flight)
    check(results, workers)
    assert len(pids(competition / "workers")) > 2, "dead workers were replaced"


@pytest.mark.parametrize("count", [200, pytest.param(2000, marks=pytest.mark.full)])
def test_each_call_of_many_tasks_has_one_result_or_is_cancelled(workers: Fleet, count: int) -> None:
    async def main() -> Counter[str]:
        tasks = {number: asyncio.create_task(workers.agrade(job(number), effort="screen")) for number in range(count)}
        for number, task in tasks.items():
            if number % 10 == 5:
                task.cancel()
            elif number % 10 == 6:
                asyncio.get_running_loop().call_later(0.001 * number, task.cancel)
        ended = await asyncio.gather(*tasks.values(), return_exceptions=True)
        results = [result for result in ended if isinstance(result, JobResult)]
        await asyncio.to_thread(until, lambda: not workers.status().in_flight)
        assert [result.job.key for result in results] == [
            number for number, result in enumerate(ended) if isinstance(result, JobResult)
        ]
        check(results, workers)
        return Counter(type(result).__name__ for result in ended)

    ended = soon(lambda: asyncio.run(main()), 300)
    assert ended.keys() <= {"JobResult", "CancelledError"}
    assert ended["CancelledError"] >= count // 10
