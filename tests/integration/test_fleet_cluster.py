"""A fleet of several machines, which here are nodes of Ray on this one: its CPU, and bubblewrap."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

import kernelmark
from harness.errors import HarnessError, UsageError
from harness.judge import Progress
from harness.problem import load
from harness.sandbox.tree import tree
from harness.submission import Submission
from harness.verdict import Outcome, Stage
from kernelmark.diagnostics.selftest import PROBLEMS
from kernelmark.grading.fleet.cluster.actor import WorkerState
from kernelmark.grading.fleet.cluster.machine import CPU, refuse_if_open
from kernelmark.grading.fleet.messages import JobAnswer
from leaderboard.record.ledger import JsonlLedger
from tests.command import kernelmark as run_command
from tests.documents import valid
from tests.integration.test_sandboxes import eventually
from tests.workers import request

pytestmark = [pytest.mark.bwrap, pytest.mark.alone]
SOURCE = "def twice(x, y):\n    y.copy_(2 * x)\n# {}\n"
RECORDING = """
import sys
import kernelmark
source = {source!r}
jobs = [kernelmark.Job(problem="double", submission=source.format(run), run=run) for run in sys.argv[2:]]
with kernelmark.Fleet(sys.argv[1]) as fleet:
    for number, result in enumerate(fleet.grade_many(jobs, record=True, effort="quick")):
        print(result.verdict.outcome if result.verdict else result.error, flush=True)
        if number == 2:
            sys.stdin.readline()  # records no more until then
"""


class Nodes:
    """Nodes of Ray, each with a CPU that grades."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        self._cluster = Cluster(initialize_head=True, head_node_args={"include_dashboard": False, **self._own()})

    @property
    def address(self) -> str:
        address: str = self._cluster.address
        return address

    def add(self) -> Any:
        return self._cluster.add_node(**self._own())

    def kill(self, node: Any) -> None:
        self._cluster.remove_node(node, allow_graceful=False)

    def close(self) -> None:
        self._cluster.shutdown()

    @staticmethod
    def _own() -> dict[str, Any]:
        return {"num_cpus": 0, "resources": {CPU: 1}}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = tmp_path_factory.mktemp("fleet")
    shutil.copytree(PROBLEMS / "double", project / "problems/double")
    (project / "kernelmark.toml").write_text('author = "ada"\ndevice = "cpu"\nsandbox = "bwrap"\n')
    return project


@pytest.fixture(scope="module")
def nodes(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """Two nodes in that project; it is the working directory."""
    token = tmp_path_factory.mktemp("ray") / "token"
    token.write_text(secrets.token_hex(32))
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("KERNELMARK_", "RAY_"))]:
            patch.delenv(name)
        patch.setenv("RAY_AUTH_MODE", "token")
        patch.setenv("RAY_AUTH_TOKEN_PATH", str(token))
        patch.setenv("RAY_worker_niceness", "0")
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.chdir(project)
        with closing(Nodes()) as made:
            made.add()
            yield made


@pytest.fixture
def fleet(nodes: Nodes) -> Iterator[kernelmark.Fleet]:
    with kernelmark.Fleet(nodes.address) as fleet:
        fleet.start()
        yield fleet
        processes = tree({*workers()})
    until = time.monotonic() + 120
    while (
        left := [process for process in processes if Path(f"/proc/{process}").exists()]
    ) and time.monotonic() < until:
        time.sleep(0.2)
    assert left == []


def jobs(number: int) -> list[kernelmark.Job]:
    return [kernelmark.Job(problem="double", submission=SOURCE.format(secrets.token_hex(8))) for _ in range(number)]


def states() -> list[WorkerState]:
    """What the workers of the fleet that is open in this process have done."""
    from kernelmark.grading.fleet.cluster.dispatcher import machine_states

    return [worker for machine in machine_states() for worker in machine.workers]


def workers() -> dict[int, int]:
    """The worker processes of our nodes' actors, with those actors' processes."""
    found = {}
    for process in tree({os.getpid()}):
        with suppress(OSError):
            if b"kernelmark.grading.fleet.worker" in Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0"):
                found[process] = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    return found


def accepted(results: Iterable[kernelmark.JobResult]) -> int:
    taken = list(results)
    assert [str(result.error) for result in taken if result.error] == []
    return sum((result.verdict or result.check).outcome == "accepted" for result in taken)  # type: ignore[union-attr]


def disturbed(
    number: int, disturb: Callable[[], object], results: Iterable[kernelmark.JobResult]
) -> list[kernelmark.JobResult]:
    """The results; once so many are there, something happens."""
    taken = []
    for result in results:
        taken.append(result)
        if len(taken) == number:
            disturb()
    return taken


@pytest.mark.full
def test_jobs_end_on_both_machines_and_ray_disturbs_no_worker(fleet: kernelmark.Fleet, tmp_path: Path) -> None:
    shutil.copytree(PROBLEMS / "scale", tmp_path / "scale")
    before = set(workers())
    given = [*jobs(4), kernelmark.Job(problem=tmp_path / "scale", submission="")]
    results = list(fleet.check_many(given))
    *passed, away = sorted(results, key=lambda result: result.error is not None)
    assert [result.check.outcome for result in passed if result.check] == ["accepted"] * 4
    assert isinstance(away.error, UsageError)
    assert "is outside of the project's problems" in str(away.error)
    assert sorted(state.done for state in states()) == [2, 2]
    assert len(before) == 2
    for worker in before:
        environment = Path(f"/proc/{worker}/environ").read_bytes().decode().split("\0")
        names = {pair.partition("=")[0] for pair in environment}
        assert not any(name.startswith("RAY_") for name in names)
        assert ("OMP_NUM_THREADS" in names) == ("OMP_NUM_THREADS" in os.environ)
        assert os.getpriority(os.PRIO_PROCESS, worker) == os.getpriority(os.PRIO_PROCESS, 0)


def test_steps_of_a_job_come_from_the_machine_that_grades_it(fleet: kernelmark.Fleet, project: Path) -> None:
    steps, ended = list[Progress](), Future[Future[JobAnswer]]()
    fields = {"problem_sha256": load(project / "problems/double").sha256, "timed": False, "progress": True}
    asked = request(Submission.of(SOURCE.format(0), "py", author="ada"), **fields)
    fleet._pool.hand_over(asked, lambda answer, _: ended.set_result(answer), steps.append)
    answer = ended.result(120).result()
    assert answer.check is not None, answer.error
    assert answer.check.outcome is Outcome.ACCEPTED
    assert {Stage.BUILD, Stage.TEST} <= {step.stage for step in steps}


def test_sigterm_is_handled_as_before_the_fleet(nodes: Nodes, capfd: pytest.CaptureFixture[str]) -> None:
    received = list[int]()
    before = signal.signal(signal.SIGTERM, lambda number, _: received.append(number))
    try:
        with kernelmark.Fleet(nodes.address) as fleet:
            fleet.start()
            os.kill(os.getpid(), signal.SIGTERM)
            assert received == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)
    assert "SIGTERM" not in capfd.readouterr().err


def test_who_has_another_token_is_told_so(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_if_open(nodes.address)
    monkeypatch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
    with pytest.raises(UsageError, match="does not take this machine's token"):
        refuse_if_open(nodes.address)


@pytest.mark.full
def test_a_ray_that_answers_anybody_is_refused(nodes: Nodes, tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_AUTH")}
    start = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", "--port=0", "--num-cpus=0"]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [*start, "--include-dashboard=false"],
            env={**environment, "RAY_AUTH_MODE": "disabled", "HOME": str(tmp_path)},
            stdout=log,
            stderr=log,
        )
    try:
        until = time.monotonic() + 60
        while not (found := re.search(r"--address='([\d.:]+)'", (tmp_path / "log").read_text())):
            assert time.monotonic() < until
            time.sleep(0.2)
        with pytest.raises(UsageError, match="answers without a token"), kernelmark.Fleet(found[1]) as fleet:
            fleet.start()
    finally:
        process.terminate()
        process.wait(120)


@pytest.mark.full
def test_where_no_fleet_is_the_message_says_so(nodes: Nodes) -> None:
    with pytest.raises(HarnessError, match="there is no fleet at"), kernelmark.Fleet("127.0.0.1:9") as fleet:
        fleet.start()


@pytest.mark.full
def test_a_killed_machine_costs_no_job_and_a_new_one_takes_its_place(
    nodes: Nodes, capfd: pytest.CaptureFixture[str]
) -> None:
    third = nodes.add()
    with kernelmark.Fleet(nodes.address) as fleet:
        fleet.start()
        assert len(states()) == 3
        assert accepted(disturbed(2, lambda: nodes.kill(third), fleet.grade_many(jobs(6), effort="screen"))) == 6
        assert fleet.status().done == 6
        added, until = list[Any](), time.monotonic() + 600

        def until_it_grades() -> Iterator[kernelmark.Job]:
            while not added or sum(state.done > 0 for state in states()) < 3:
                assert time.monotonic() < until
                yield from jobs(1)

        results = disturbed(1, lambda: added.append(nodes.add()), fleet.check_many(until_it_grades()))
        assert accepted(results) == len(results)
        alive = states()
    assert len(alive) == 3
    assert min(state.done for state in alive) >= 1
    assert "raylet" not in capfd.readouterr().out, "stdout is the program's"


@pytest.mark.full
@pytest.mark.parametrize("whole_actor", [False, True], ids=["worker process", "actor"])
def test_a_killed_process_costs_no_job(fleet: kernelmark.Fleet, whole_actor: bool) -> None:
    worker, actor = next(iter(workers().items()))
    victim = actor if whole_actor else worker
    assert accepted(disturbed(1, lambda: os.kill(victim, signal.SIGKILL), fleet.check_many(jobs(6)))) == 6
    eventually(lambda: worker not in workers() or None)  # whose actor is gone it notices itself
    _, idle = next(iter(workers().items()))
    os.kill(idle, signal.SIGKILL)
    assert accepted(fleet.check_many(jobs(4))) == 4


@pytest.mark.full
def test_a_killed_dispatcher_that_starts_again_records_each_run_once(nodes: Nodes, project: Path) -> None:
    runs = [secrets.token_hex(8) for _ in range(6)]
    command = [sys.executable, "-c", RECORDING.format(source=SOURCE), nodes.address, *runs]
    ledger = JsonlLedger(project / "leaderboard/results/double.jsonl")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first:
        assert [first.stdout.readline().strip() for _ in range(3)] == ["accepted"] * 3
        first.kill()
    assert ledger.verify() == 3
    again = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True, timeout=600
    )
    assert again.stdout.split() == ["accepted"] * 6
    assert ledger.verify() == 6
    assert sorted(entry.verdict.run for entry in ledger.read()) == sorted(runs)


def free_port(among: Iterable[int]) -> str:
    for port in among:
        with suppress(OSError), socket.create_server(("", port)):
            return str(port)
    raise AssertionError("all of these ports are in use")


@pytest.mark.full
def test_the_commands_start_show_and_stop_a_fleet(project: Path, tmp_path: Path) -> None:
    home = tmp_path / "project"
    shutil.copytree(project / "problems", home / "problems")
    shutil.copy(project / "kernelmark.toml", home)

    def fleet(*arguments: str, status: int = 0) -> str:
        done = run_command(home, "fleet", *arguments, HOME=str(tmp_path))
        assert done.returncode == status, done.stderr
        return done.stdout

    port = free_port(range(10_002, 20_000))  # which Ray would keep for its own processes
    try:
        address = fleet("start", "--no-grading", "--port", port).strip()
        assert (home / "fleet.address").read_text().strip() == address
        assert (tmp_path / ".ray/auth_token").stat().st_mode & 0o777 == 0o600
        fleet("start", "--port", port, status=2)
        fleet("join", "fleet.address")
        shown = valid(fleet("status", "--format", "json"))
        assert sorted(machine["cpu"] for machine in shown["machines"]) == [False, True]
        assert "no program uses it now" in fleet("status", f"127.0.0.1:{port}")
    finally:
        fleet("stop")
    assert not (home / "fleet.address").exists()
    fleet("stop", status=2)
    fleet("status", address, status=7)
