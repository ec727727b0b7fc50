"""How processors are divided among workers, and in a worker."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.sandbox import Launch
from harness.sandbox.processors import OnProcessors
from kernelmark.grading.fleet.shares import Share, divided, near


def test_judge_and_runners_have_processors_of_their_own() -> None:
    share = Share.of(range(16))
    assert share == Share(judge=(0, 1, 2, 3), runners=tuple(range(4, 16)))


def test_few_processors_are_shared() -> None:
    assert Share.of({0, 1}) is None


def test_workers_near_the_same_processors_get_half_each() -> None:
    first, second = divided([{0, 1, 2, 3}, {0, 1, 2, 3}])
    assert (first, second) == ((0, 2), (1, 3))


def test_workers_of_two_sockets_keep_to_theirs() -> None:
    assert divided([{0, 1}, {2, 3}]) == [(0, 1), (2, 3)]


def test_a_device_that_the_kernel_does_not_know_is_near_to_all() -> None:
    assert near("ffff:ff:1f.7") == os.sched_getaffinity(0)


@pytest.mark.parametrize(("role", "cpus"), [("runner", (2, 3)), ("launcher", (0, 1))])
def test_a_launch_gets_the_processors_of_its_role(role: str, cpus: tuple[int, ...], tmp_path: Path) -> None:
    launches: list[Launch] = []

    class Provider:
        name = "bwrap"

        def launch(self, launch: Launch) -> None:
            launches.append(launch)

    confined = OnProcessors(Provider(), {"runner": (2, 3), "launcher": (0, 1)})  # type: ignore[arg-type]
    limits = {"memory_bytes": 1, "processes": 1, "disk_bytes": 1}
    confined.launch(Launch(socket=tmp_path, device="cuda", role=role, **limits))  # type: ignore[arg-type]
    assert [launch.cpus for launch in launches] == [cpus]
