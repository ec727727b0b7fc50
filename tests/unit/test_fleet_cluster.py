"""A fleet of several machines: what works without Ray, and a pool whose workers come and go."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import threading
import time
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import Mock

import pytest

from harness.errors import HarnessError, UsageError
from kernelmark.commands import fleet
from kernelmark.grading.fleet import Fleet, pool
from kernelmark.grading.fleet.cluster import actor, machine
from kernelmark.grading.fleet.pool import WorkerPool
from kernelmark.project.settings import Settings
from tests.unit.conftest import ROOT, Command
from tests.workers import FakeWorker, answered, batch, held, job, keys, soon


@pytest.fixture(autouse=True)
def _no_token(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither a developer's token, nor a ray that another test has imported."""
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delitem(sys.modules, "ray", raising=False)


@pytest.mark.parametrize(
    "code", ["import kernelmark", "import kernelmark; kernelmark.Fleet", "import kernelmark.commands.cli"]
)
def test_ray_is_not_imported_by(code: str) -> None:
    subprocess.run([sys.executable, "-c", f"{code}\nimport sys\nassert 'ray' not in sys.modules"], cwd=ROOT, check=True)


@pytest.mark.parametrize("given", ["node-3.cluster:1", "[::1]:6379"])
def test_an_address_is_host_and_port(given: str, tmp_path: Path) -> None:
    assert machine.find_address(given) == given
    (tmp_path / "fleet.address").write_text(f"{given}\n")
    assert machine.find_address(str(tmp_path / "fleet.address")) == given


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("ray://10.0.0.1:10001", "is neither HOST:PORT nor an address file"),
        ("nowhere", "is neither HOST:PORT nor an address file"),
        ("10.0.0.1:port", "is neither HOST:PORT nor an address file"),
        ("empty", "does not hold HOST:PORT"),
    ],
)
def test_bad_addresses_are_refused(given: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").touch()
    with pytest.raises(UsageError, match=message):
        machine.find_address(given)


def test_a_token_is_made_for_its_user_alone_and_then_required(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="this machine does not have the fleet's token"):
        machine.require_token()
    file = machine.make_token()
    assert file == tmp_path / "home/.ray/auth_token"
    assert (stat.S_IMODE(file.stat().st_mode), len(file.read_text())) == (0o600, 64)
    machine.require_token()
    assert os.environ["RAY_AUTH_MODE"] == "token"


@pytest.mark.parametrize(("name", "value"), [("RAY_AUTH_TOKEN", "secret"), ("RAY_AUTH_TOKEN_PATH", "token")])
def test_a_token_may_be_named(name: str, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(name, value)
    Path("token").write_text("secret")
    assert machine.has_token()


def test_tokens_cannot_be_switched_off_and_must_be_on_when_ray_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN", "secret")
    monkeypatch.setitem(sys.modules, "ray", ModuleType("ray"))
    with pytest.raises(UsageError, match="was not set when ray was imported"):
        machine.require_token()
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    with pytest.raises(UsageError, match="RAY_AUTH_MODE is 'disabled', and a fleet needs Ray's tokens"):
        machine.require_token()


def test_without_ray_the_message_says_what_to_install(competition: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN", "secret")
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.setattr("kernelmark.grading.fleet.judges._isolated", lambda _, **__: "bwrap")
    with pytest.raises(UsageError, match=r"several machines need ray; pip install 'kernelmark\[fleet\]'"):
        Fleet("10.0.0.1:6379")


@pytest.mark.parametrize(
    ("given", "message"),
    [({"device_name": "H100"}, "device_name chooses"), ({"where": "a:1", "devices": 2}, "devices counts")],
)  # fmt: skip
def test_arguments_that_exclude_each_other_are_refused(given: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Fleet(**given)


def test_a_worker_gets_the_environment_of_its_machine() -> None:
    initial = b"PATH=/usr/bin\0RAY_AUTH_TOKEN=secret\0SPT_NOENV=1\0RAYON=x=y\0\0"
    assert actor.node_environment(initial) == {"PATH": "/usr/bin", "RAYON": "x=y"}


@pytest.mark.parametrize(
    ("device", "here", "gpus", "cpu"),
    [("auto", True, True, False), ("auto", False, False, True), ("cpu", True, False, True), (None, True, False, False)],
)
def test_what_a_machine_offers(device: Any, here: bool, gpus: bool, cpu: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "cuda_is_here", lambda: here)
    options = machine._resources(device)
    assert ("--num-gpus=0" not in options) == gpus
    assert ('--resources={"kernelmark_cpu": 1}' in options) == cpu
    assert "--num-cpus=0" in options
    if not here:
        with pytest.raises(UsageError, match="there is no CUDA device here"):
            machine._resources("cuda")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["join", "nowhere"], "nowhere is neither HOST:PORT nor an address file"),
        (["join", "127.0.0.1:9"], "this machine does not have the fleet's token"),
        (["status"], "fleet.address is neither HOST:PORT nor an address file; give HOST:PORT, or the file that"),
        (["stop"], "no fleet of this project runs on this machine"),
        (["start", "--no-grading", "--device", "cpu"], "--no-grading excludes --device"),
    ],
)
def test_a_fleet_command_that_cannot_run_says_why(command: Command, arguments: list[str], message: str) -> None:
    result = command("fleet", *arguments)
    assert (result.code, result.out) == (2, "")
    assert message in result.err


@pytest.mark.parametrize("block", [False, True])
def test_a_log_stays_only_if_ray_failed(competition: Path, monkeypatch: pytest.MonkeyPatch, block: bool) -> None:
    def interrupted() -> int:
        raise KeyboardInterrupt

    (logs := competition / "logs").mkdir()
    (ray := competition / "ray").write_text(f"#!/bin/sh\necho {machine._STARTED}\nexec sleep 60\n")
    ray.chmod(0o755)
    monkeypatch.setattr("tempfile.tempdir", str(logs))
    monkeypatch.setattr(sys, "executable", str(ray))
    node = machine._launch(Settings(root=competition), "127.0.0.1:1", [])
    with monkeypatch.context() as patch:
        patch.setattr(node.process, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt) if block else nullcontext():
            fleet._running(node, block)
    node.process.kill()
    node.process.wait()
    assert [*logs.iterdir()] == []
    ray.write_text("#!/bin/sh\necho no\n")
    with pytest.raises(HarnessError, match=r"Ray did not start: no; see .*\.log"):
        machine._launch(Settings(root=competition), "127.0.0.1:1", [])


def test_new_workers_get_jobs_and_removed_ones_get_none(competition: Path) -> None:
    one, two = FakeWorker(held), FakeWorker(held, name="NVIDIA H100")
    plan = WorkerPool([one])
    results = batch(plan=plan).run(job(number) for number in range(20))
    taken: list[Any] = []
    thread = threading.Thread(target=lambda: taken.extend(results))
    thread.start()
    assert len(one.has(5)) == 5
    plan.add(two)
    one.answer(one.handed[0])
    assert len(two.has(5)) == 5
    plan.remove(one)
    waiting = [*two.handed]  # what it gets from now on it answers by itself
    one.act = two.act = answered
    one.answer(*one.handed[1:])
    two.answer(*waiting)
    thread.join(20)
    assert sorted(keys(taken)) == list(range(20))
    assert plan.counts()[2] == {"CPU": len(one.handed), "NVIDIA H100": len(two.handed)}
    assert len(one.handed) <= 6


def test_a_job_waits_for_the_first_worker(competition: Path) -> None:
    worker = FakeWorker()
    plan = WorkerPool()
    begun = time.monotonic()
    threading.Timer(0.5, lambda: plan.add(worker)).start()
    assert keys(soon(lambda: list(batch(plan=plan).run([job(1), job(2)])))) == [1, 2]
    assert time.monotonic() - begun > 0.4


def test_a_job_does_not_wait_for_ever(competition: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_NO_WORKER_S", 0.1)
    (result,) = soon(lambda: list(batch(plan=WorkerPool()).run([job(1)])))
    assert isinstance(result.error, HarnessError)
    assert str(result.error).startswith("all workers of the fleet are lost")


def test_no_fleet_starts_whose_address_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launch = Mock(side_effect=HarnessError("Ray did not start: no memory"))
    monkeypatch.setattr(machine, "_launch", launch)
    monkeypatch.setattr(machine, "require_token", Mock())
    monkeypatch.setenv("RAY_AUTH_TOKEN", "secret")
    with socket.create_server(("", 0)) as free:
        port = free.getsockname()[1]
    file = tmp_path / "fleet.address"
    file.mkdir()
    with pytest.raises(HarnessError, match=r"fleet\.address: the address cannot be written"):
        machine.start(Settings(root=tmp_path), "127.0.0.1", port, None)
    assert not launch.called
    file.rmdir()
    with pytest.raises(HarnessError, match="no memory"):
        machine.start(Settings(root=tmp_path), "127.0.0.1", port, None)
    assert not file.exists()
    file.write_text("127.0.0.1:1\n")
    with pytest.raises(HarnessError, match="no memory"):
        machine.start(Settings(root=tmp_path), "127.0.0.1", port, None)
    assert file.read_text() == "127.0.0.1:1\n", "that of a fleet which this one would have replaced"


@pytest.mark.parametrize(
    ("place", "first", "then", "refused"),
    [
        (["--address=10.0.0.1:6379"], "cpu", "cpu", True),
        (["--head", "--port=6379", "--node-ip-address=10.0.0.1"], "cpu", "cpu", True),
        (["--head", "--port=6379", "--node-ip-address=10.0.0.1"], None, "cpu", False),
        (["--address=10.0.0.1:6379"], "cpu", None, False),
        (["--address=10.0.0.1:6380"], "cpu", "cpu", False),
    ],
)
def test_a_machine_joins_a_fleet_once_to_grade(
    place: list[str], first: Any, then: Any, refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "_started_here", lambda root: iter([(7, [*place, *machine._resources(first)])]))
    what = "grades for the fleet at 10.0.0.1:6379 already" if refused else "does not have the fleet's token"
    with pytest.raises(UsageError, match=what):
        machine.join(Settings(root=tmp_path), "10.0.0.1:6379", then)
