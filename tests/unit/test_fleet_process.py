"""A worker's process as the dispatcher sees it, played by a program that does what the test says."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.errors import HarnessError
from harness.judge import Progress
from harness.submission import Submission
from harness.verdict import Stage
from kernelmark.grading.fleet import process
from kernelmark.grading.fleet.messages import JobAnswer, JobRequest, WorkerAway, WorkerLost
from kernelmark.grading.fleet.pool import WorkerPool
from kernelmark.grading.fleet.process import WorkerProcess
from tests import workers
from tests.open_files import open_files
from tests.workers import soon, until

pytestmark = pytest.mark.usefixtures("no_thread_stays")

# Requests are lines; what is done with one is its submission's source, a statement.
PROGRAM = """
import json, os, signal, sys, time
with open(sys.argv[1] + "/pids", "a") as file:
    print(os.getpid(), file=file)
def say(**message):
    print(json.dumps(message), flush=True)
def answer(**more):
    say(run=run, error=f"{os.getpid()}", error_class="HarnessError")
assert sys.argv[2:4] == ["--slots", "2"], sys.argv
BEFORE
say(device="scripted", slots=2)
for line in sys.stdin:
    request = json.loads(line)
    if "cancelled" in request:
        assert request["cancelled"] == held
        say(run=held, error="cancelled", error_class="HarnessError")
        continue
    run = request["run"]
    exec(request["submission"]["source"])
AFTER
"""
Started = Callable[..., WorkerProcess]


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Started]:
    made: list[WorkerProcess] = []

    def start(before: str = "", after: str = "") -> WorkerProcess:
        program = PROGRAM.replace("BEFORE", before).replace("AFTER", after)
        worker = WorkerProcess(tmp_path, 2, os.environ, program=[sys.executable, "-c", program])
        made.append(worker)
        worker.start()
        return worker

    gc.collect()  # files that an earlier test left open
    before = open_files().total()
    yield start
    for worker in made:
        soon(worker.close)
    made.clear()
    assert not [pid for pid in pids(tmp_path) if Path(f"/proc/{pid}").exists()]
    assert open_files().total() <= before


def test_a_program_that_cannot_be_started_is_our_failure(tmp_path: Path) -> None:
    worker = WorkerProcess(tmp_path, 2, os.environ, program=[str(tmp_path / "absent")])
    with pytest.raises(HarnessError, match=r"a worker could not be started \(No such file or directory\)"):
        worker.start()
    pool, answers = WorkerPool([worker]), list[Future[JobAnswer]]()
    for _ in range(2):  # the worker is free again for another job, and for the same one
        pool.hand_over(request(), lambda answer, _: answers.append(answer), alone=True)
    assert [is_lost(answer, "could not be started") for answer in answers] == [True, True]
    worker.close()


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> list[threading.Timer]:
    """The timers of the workers that are started, each of which would kill its worker."""
    made: list[threading.Timer] = []

    class Timer(threading.Timer):
        def start(self) -> None:
            made.append(self)
            super().start()

    monkeypatch.setattr(threading, "Timer", Timer)
    return made


def pids(folder: Path) -> list[int]:
    """The processes that were started, in order."""
    return [int(line) for line in (folder / "pids").read_text().split()] if (folder / "pids").exists() else []


def request(statement: str = "answer()", run: str = "a" * 16) -> JobRequest:
    return workers.request(Submission.of(statement, "py", author="ada"), run)


def runs(count: int) -> list[str]:
    return [f"{number:016x}" for number in range(count)]


def is_lost(answer: Future[JobAnswer], message: str = "") -> bool:
    error = soon(answer.exception)
    return isinstance(error, WorkerLost) and message in str(error)


def test_it_starts_once_and_answers_each_job(started: Started, tmp_path: Path, starts: list[threading.Timer]) -> None:
    worker = started()
    worker.start()
    soon(worker.wait)
    [start] = starts
    assert start.finished.is_set(), "the timer that would give it up was stopped; it had two minutes"
    assert worker.device == "scripted"
    answers = {run: worker.submit(request(run=run)) for run in runs(100)}
    [pid] = pids(tmp_path)
    assert {run: soon(answer.result) for run, answer in answers.items()} == {
        run: JobAnswer(run=run, error=str(pid), error_class="HarnessError") for run in answers
    }


def test_answers_come_in_any_order_and_from_jobs_of_many_threads(started: Started) -> None:
    """A request is larger than a pipe holds, so that two threads write at once."""
    worker = started(before="held = []")
    keeps = "held.append(run)\nif len(held) == 40:\n    for run in reversed(held): answer()\n#" + 100_000 * "x"
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda run: worker.submit(request(keeps, run)), runs(40)))
    assert [soon(answer.result).run for answer in answers] == runs(40)


def test_a_cancellation_reaches_the_process_that_has_the_job(started: Started) -> None:
    worker = started(before="held = None")
    program = "held = run"
    waiting = worker.submit(request(program, "c" * 16))
    worker.cancel("d" * 16)  # which it does not have: the program would fail
    worker.cancel("c" * 16)
    assert soon(waiting.result).error == "cancelled"
    worker.cancel("c" * 16)
    assert soon(worker.submit(request()).result).run == "a" * 16
    soon(worker.close)
    worker.cancel("c" * 16)


def test_a_killed_process_loses_its_jobs(started: Started, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    worker = started()
    waiting = [worker.submit(request("pass", run)) for run in runs(20)]
    assert soon(worker.submit(request(run="b" * 16)).result).run == "b" * 16
    [first] = pids(tmp_path)
    os.kill(first, signal.SIGKILL)
    assert all(is_lost(answer, "a worker ended with status -9") for answer in waiting)
    again = soon(worker.submit(request(run=runs(1)[0])).result)
    assert pids(tmp_path) == [first, int(again.error)]
    replaced = "kernelmark: warning: a worker ended with status -9 while it had 20 jobs; another one takes its place"
    assert caplog.messages == [replaced]
    soon(worker.wait)
    assert worker.device == "scripted"


def test_jobs_submitted_while_workers_die_still_end(started: Started, tmp_path: Path) -> None:
    """Each answers or is lost, whichever moment its worker ends in."""
    worker = started()
    dies = "answer()\nif int(run, 16) % 7 == 0: os._exit(1)"
    with ThreadPoolExecutor(4) as pool:
        ended = list(pool.map(lambda run: soon(worker.submit(request(dies, run)).exception), runs(120)))
    assert {type(answer) for answer in ended} <= {type(None), WorkerLost, WorkerAway}
    assert any(answer is None for answer in ended)
    assert any(isinstance(answer, WorkerLost) for answer in ended)
    assert len(pids(tmp_path)) > 3


@pytest.mark.parametrize("rubbish", ["rubbish", "{}", "\\xff\\xfe", "[]", '{"run": "x", "more": 1}'])
def test_a_worker_that_prints_rubbish_is_lost_for_good(started: Started, tmp_path: Path, rubbish: str) -> None:
    worker = started()
    program = f"sys.stdout.buffer.write(b'''{rubbish}\\n'''); answer(); time.sleep(60)"
    lost = worker.submit(request(program))
    assert is_lost(lost, "a worker ended with status")
    assert not Path(f"/proc/{pids(tmp_path)[0]}").exists()
    assert soon(worker.submit(request()).result).run == "a" * 16


def test_only_the_steps_of_a_job_are_reported_before_its_answer(started: Started) -> None:
    worker, steps = started(), list[Progress]()
    step = {"stage": "test", "done": 1, "total": 3, "label": "small"}
    program = f"say(run=run, step={step}); say(run='nobody', step={step}); answer(); say(run=run, step={step})"
    soon(worker.submit(request(program), steps.append).result)
    assert steps == [Progress(Stage.TEST, 1, 3, "small")]
    assert soon(worker.submit(request(run="b" * 16)).result).run == "b" * 16
    assert len(steps) == 1, "nobody listens after the answer"


def test_an_answer_to_an_unknown_job_is_dropped(started: Started) -> None:
    worker = started()
    twice = "answer(); answer(); say(run='nobody', error='x', error_class='HarnessError')"
    assert soon(worker.submit(request(twice)).result).run == "a" * 16
    assert soon(worker.submit(request(run="b" * 16)).result).run == "b" * 16


@pytest.mark.parametrize("before", ["sys.exit(3)", "print('no module named torch'); time.sleep(60)", "say(device='x')"])
def test_a_worker_that_does_not_start_is_an_error(started: Started, before: str) -> None:
    worker = started(before)
    why = r"a worker of the fleet did not start \(a worker ended with .*\); run `kernelmark doctor`"
    with pytest.raises(HarnessError, match=why):
        soon(worker.wait)
    assert is_lost(worker.submit(request()))


def test_a_worker_that_never_becomes_ready_is_given_up(
    started: Started, monkeypatch: pytest.MonkeyPatch, starts: list[threading.Timer]
) -> None:
    """The first and one that is started again: jobs do not wait for it for ever."""
    monkeypatch.setattr(process, "_START_S", 0.5)
    worker = started("time.sleep(60)")
    job = worker.submit(request())
    with pytest.raises(HarnessError, match="did not start"):
        soon(worker.wait)
    assert is_lost(job)
    assert is_lost(worker.submit(request()))
    assert len(starts) >= 2


def test_closing_ends_the_process_and_loses_its_jobs(started: Started, tmp_path: Path) -> None:
    worker = started(after=f"open({str(tmp_path / 'tidied')!r}, 'w')")
    waiting = worker.submit(request("pass"))
    soon(worker.wait)
    soon(worker.close)
    assert (tmp_path / "tidied").exists(), "it saw the end of its requests"
    assert is_lost(waiting, "a worker ended with status 0")
    assert is_lost(worker.submit(request()), "the fleet was closed")
    soon(worker.close)
    assert len(pids(tmp_path)) == 1


def test_a_process_that_is_still_starting_can_be_closed(started: Started, tmp_path: Path) -> None:
    worker = started("time.sleep(0.3)")
    until((tmp_path / "pids").exists)
    waiting = worker.submit(request("pass"))
    soon(worker.close)
    assert is_lost(waiting)


def test_a_worker_that_does_not_end_is_killed(started: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_END_S", 0.3)
    worker = started(after="time.sleep(60)")
    waiting = worker.submit(request("pass"))
    soon(worker.wait)
    soon(worker.close)
    assert is_lost(waiting, "a worker ended with status -9")


def test_a_forked_process_keeps_no_worker_alive(started: Started, tmp_path: Path) -> None:
    worker = started(after=f"open({str(tmp_path / 'tidied')!r}, 'w')")
    soon(worker.wait)
    child = os.fork()
    while not child:
        signal.pause()
    try:
        assert soon(worker.submit(request("answer()")).result).error
        soon(worker.close)
        assert (tmp_path / "tidied").exists(), "it saw the end of its requests"
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_closing_while_other_threads_submit_jobs(started: Started, tmp_path: Path) -> None:
    worker = started()
    ended: list[BaseException | None] = []

    def hand_over(first: int) -> None:
        for number in range(200):
            statement = "answer()" if number < 199 else "pass"  # the last is there when it closes, however late that is
            ended.append(soon(worker.submit(request(statement, f"{first + number:016x}")).exception))

    with ThreadPoolExecutor(4) as pool:
        pool.map(hand_over, range(0, 4000, 1000))
        until(lambda: len(ended) >= 50)
        soon(worker.close)
    assert len(ended) == 800
    assert {type(answer) for answer in ended} <= {type(None), WorkerLost, WorkerAway}
    assert any(answer is None for answer in ended)
    assert any(isinstance(answer, WorkerLost) for answer in ended)
    assert len(pids(tmp_path)) == 1, "a closed worker does not start again"


@pytest.mark.parametrize(
    ("cpus", "slots", "devices", "shares"),
    [
        (32, None, None, [[8, 8], [8, 8]]),
        (32, None, 1, [[4, 4, 4, 4]]),
        (4, None, None, [[2], [2]]),
        (32, 3, 1, [[1, 1, 1]]),
        (32, 1, None, [[1], [1]]),
    ],
)
def test_a_gpu_has_workers_for_its_processors_and_its_slots(
    cpus: int, slots: int | None, devices: int | None, shares: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All processors are near to both GPUs, or to the only one that is used."""
    gpus = [SimpleNamespace(uuid=f"GPU-{number}", pci_address="") for number in range(2)]
    monkeypatch.setattr(process, "visible_gpus", lambda: gpus)
    monkeypatch.setattr(process, "cuda_is_here", lambda: True)
    monkeypatch.setattr(process, "local_cpus", lambda _: set(range(cpus)))
    made = process.local_workers(Path(), "auto", slots, {}, devices)
    found = [[worker.slots for worker in made if worker.gpu == gpu.uuid] for gpu in gpus[:devices]]
    assert found == shares
    assert len(made) == sum(map(len, shares))
