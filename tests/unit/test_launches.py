"""A launch in Triton's interpreter is given up if it cannot be done in the time of its call."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from harness.runner import interpreter as module
from harness.runner.interpreter import TooSlow, _Launches


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    made = SimpleNamespace(now=100.0)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: made.now))
    return made


def ran(launches: _Launches, clock: SimpleNamespace, programs: int, seconds: float) -> int:
    """How many programs of a launch, of so many seconds each, ran before it was given up."""
    launches.begin(programs)
    for done in range(programs):
        try:
            launches.next_program()
        except TooSlow as error:
            message = f"{done} of the {programs} programs of a launch ran in the time that is left"
            return done if str(error) == message else -1
        clock.now += seconds
    return programs


def test_a_launch_that_would_take_too_long_is_given_up_before_the_judge_gives_up(clock: SimpleNamespace) -> None:
    launches = _Launches()
    launches.allow(10)
    assert not launches.any
    assert ran(launches, clock, 1000, 0.125) == 77
    assert clock.now < 100 + 10 - 0.3, "the answer needs a moment"
    assert launches.any
    launches.allow(10)  # the next call
    assert ran(launches, clock, 60, 0.125) == 60


def test_launches_of_one_call_share_its_time(clock: SimpleNamespace) -> None:
    """How long a launch took is known of its programs but the last, so that the fourth of these still begins."""
    launches = _Launches()
    launches.allow(10)
    assert sum(ran(launches, clock, 1, 3.0) for _ in range(5)) == 4
    launches.allow(0)
    assert ran(launches, clock, 10, 1e6) == 10, "there is no limit"
