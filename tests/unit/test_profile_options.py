"""What `kernelmark profile` has torch.profiler record, as it is typed."""

from __future__ import annotations

import pytest

from harness.errors import UsageError
from kernelmark.commands.profile import _request
from tests.unit.conftest import Command


def test_the_schedule_of_the_lecture() -> None:
    asked = _request("wait=1,warmup=1,active=2,repeat=1", "cuda_time_total", 10)
    assert (asked.wait, asked.warmup, asked.active, asked.repeats) == (1, 1, 2, 1)
    assert (asked.sort_by, asked.rows) == ("cuda_time_total", 10)


def test_unset_options_keep_their_defaults() -> None:
    asked = _request("active=5", None, 60)
    assert (asked.wait, asked.warmup, asked.active, asked.repeats, asked.sort_by) == (1, 2, 5, 2, "")


@pytest.mark.parametrize(
    ("schedule", "sort_by", "message"),
    [
        ("wait=1;active=2", None, "no schedule; write it as wait=1,warmup=1,active=2,repeat=1"),
        ("", None, "is no schedule"),
        ("active=-1", None, "is no schedule"),
        ("active=1,active=2", None, "is no schedule"),
        ("active=0", None, "active is 0, and not 1 to 32"),
        ("repeat=9", None, "repeat is 9, and not 1 to 4"),
        ("active=2", "cpu_time_totl", "not a column of torch.profiler; did you mean `cpu_time_total`?"),
    ],
)
def test_an_invalid_profile_schedule_is_refused(schedule: str, sort_by: str | None, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        _request(schedule, sort_by, 60)
    assert message in str(refused.value)


@pytest.mark.parametrize("line", ["profile --out", "profile --tensorboard", "check --dump"])
def test_a_folder_that_cannot_be_written_is_refused_before_the_grading(run: Command, line: str) -> None:
    command, option = line.split()
    ended = run(command, "double", "kernel.py", option, "kernelmark.toml/below")
    assert ended.code == 2
    assert f"kernelmark.toml; name another folder with {option}\n" in ended.err
    assert "build" not in ended.err
