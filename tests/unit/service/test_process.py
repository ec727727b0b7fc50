"""Where a server listens, how many files it may open, and what it says when they run out."""

from __future__ import annotations

import json
import logging
import resource
import socket
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from kernelmark.server import local_worker
from kernelmark.server.clock import Clock
from kernelmark.server.local_worker import LocalWorker
from kernelmark.server.process import Listening, _bound, _logging, _more_files, _say_teams
from kernelmark.server.service import Service
from tests.service_fixtures import make_principal, make_project, make_service


def test_answers_are_sent_at_once() -> None:
    """Of a connection whose protocol asyncio does not know, it leaves Nagle's algorithm on: each answer took 40 ms."""
    with _bound(Listening("127.0.0.1", 0)) as listener:
        listener.listen()
        with socket.create_connection(listener.getsockname()[:2]), listener.accept()[0] as accepted:
            assert accepted.proto == socket.IPPROTO_TCP


@pytest.mark.parametrize(
    ("limits", "set_to", "files"),
    [
        ((256, 4096), (4096, 4096), 4096),
        ((256, 1 << 20), (65_536, 1 << 20), 65_536),
        ((256, resource.RLIM_INFINITY), (65_536, resource.RLIM_INFINITY), 65_536),
        ((4096, 4096), None, 4096),
        ((1 << 20, 1 << 20), None, 65_536),
    ],
)
def test_the_server_may_open_as_many_files_as_its_limit_allows(
    limits: tuple[int, int], set_to: tuple[int, int] | None, files: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda _, given: said.append(given))
    assert _more_files() == files
    assert said == ([] if set_to is None else [set_to])


def test_what_is_said_for_each_connection_is_said_once_a_minute(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with _logging(log := tmp_path / "log.jsonl"):
        for _ in range(3):
            error = OSError("Too many open files")
            logging.getLogger("asyncio").error("it cannot be accepted\nsocket: 3", exc_info=error)
            logging.getLogger("uvicorn.error").warning("Exceeded concurrency limit.")
            logging.getLogger("kernelmark.server").warning("each of these matters")
    shown = capfd.readouterr().err.splitlines()
    assert sorted(line.partition(" (")[0] for line in shown) == [
        "Exceeded concurrency limit.",
        *["each of these matters"] * 3,
        "it cannot be accepted\\nsocket: 3",
    ]
    assert [json.loads(line)["level"] for line in log.read_text().splitlines()].count("ERROR") == 1


def test_a_full_disk_leaves_one_line_for_each_error(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (log := tmp_path / "log.jsonl").symlink_to("/dev/full")
    with _logging(log):
        logging.getLogger("kernelmark.access").info("{}")
        logging.getLogger("kernelmark.server").error("a request ended with an error", exc_info=OSError("disk is full"))
    expected = "a request ended with an error (OSError: disk is full; the log has the traceback)\n"
    assert capfd.readouterr().err == expected


def test_malformed_requests_are_in_the_log_alone(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with _logging(log := tmp_path / "log.jsonl"):
        logging.getLogger("uvicorn.error").warning("Invalid HTTP request received.")
        logging.getLogger("uvicorn.error").warning("Exceeded concurrency limit.")
    assert capfd.readouterr().err == "Exceeded concurrency limit.\n"
    assert "Invalid HTTP request received." in log.read_text()


def test_a_team_of_the_settings_that_does_not_count_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    project = make_project(tmp_path / "project", 'teams = { red = ["ada", "bob", "cyd"] }')
    service = make_service(project, Clock())
    with closing(service.database):
        for name, team in {"ada": None, "bob": "blue", "cyd": "red", "eve": None}.items():
            make_principal(service, name, team=team)
        _say_teams(service)
    assert caplog.messages == [
        f"kernelmark: warning: kernelmark.toml has {name} in red, and the account is {there}, which counts here: "
        f"run `kernelmark accounts change {name} --team red`, or correct [teams]"
        for name, there in {"ada": "in no team", "bob": "in blue"}.items()
    ]


@pytest.mark.parametrize("ends", [(-9, 2, 2), (BlockingIOError("no more processes"), RuntimeError("disk is full"))])
def test_a_worker_is_started_until_its_settings_are_valid_and_it_can_be(
    ends: tuple[int | Exception, ...], service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, works = list(ends), threading.Event()

    def once(local: LocalWorker) -> int:
        if left:
            if isinstance(end := left.pop(0), Exception):
                raise end
            return end
        works.set()
        local._ending.wait(60)
        return 0

    monkeypatch.setattr(LocalWorker, "_once", once)
    monkeypatch.setattr(local_worker, "_AGAIN_S", (0.01,))
    with LocalWorker(service):
        assert works.wait(60)
        assert service.own_worker.is_set()


def test_a_worker_that_cannot_start_is_not_waited_for(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    started, go = threading.Event(), threading.Event()

    def once(_: LocalWorker) -> int:
        started.set()
        go.wait(60)
        return 2

    monkeypatch.setattr(LocalWorker, "_once", once)
    with LocalWorker(service):
        assert started.wait(60)
        assert service.own_worker.is_set()
        go.set()
        until = time.monotonic() + 60
        while service.own_worker.is_set() and time.monotonic() < until:
            time.sleep(0.01)
        assert not service.own_worker.is_set()
