"""Until when a problem accepts submissions: deadline, grace, late days, and their effect on a mark."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from harness.errors import ProblemError
from harness.problem import load
from harness.problem.schedule import Schedule, shown

DEADLINE = datetime.fromisoformat("2027-01-31T23:59:00+01:00")
LATE = "late = { days = 2, penalty_per_day = 0.3 }\n"
RULES = f'visibility = "after_deadline"\ndeadline = 2027-01-31T23:59:00+01:00\ngrace = "1h30m"\n{LATE}'
S, M, D = timedelta(seconds=1), timedelta(minutes=1), timedelta(days=1)


@pytest.mark.parametrize(
    ("late", "after", "days", "factor", "closed"),
    [
        (True, -S, 0, 1.0, False),
        (True, 90 * M, 0, 1.0, False),
        (True, 90 * M + S, 1, 0.7, False),
        (True, D, 1, 0.7, False),
        (True, D + S, 2, 0.4, False),
        (True, 2 * D, 2, 0.4, False),
        (True, 2 * D + S, 3, None, True),
        (False, 90 * M, 0, 1.0, False),
        (False, 90 * M + S, 1, None, True),
        (False, 3 * D, 3, None, True),
    ],
)
def test_how_late_it_is(late: bool, after: timedelta, days: int, factor: float | None, closed: bool) -> None:
    fields = {"late": {"days": 2, "penalty_per_day": 0.3}} if late else {}
    schedule = Schedule.model_validate({"deadline": DEADLINE, "grace": "1h30m", **fields})
    moment = (DEADLINE + after).astimezone(UTC)
    assert schedule.delay(moment) == (moment, days, factor)
    assert shown(schedule.delay(moment).handed_in).endswith(" UTC+01:00"), "as the organizer wrote the deadline"
    assert schedule.closed(moment) is closed


def test_without_a_deadline_it_is_always_open_and_no_mark_is_below_nothing() -> None:
    always, harsh = (
        Schedule(),
        Schedule.model_validate({"deadline": DEADLINE, "late": {"days": 3, "penalty_per_day": 0.6}}),
    )
    assert (always.closed(DEADLINE), always.delay(DEADLINE), always.schedule) == (False, (DEADLINE, 0, 1.0), "")
    assert harsh.delay(DEADLINE + 2 * D).factor == 0


def test_the_schedule_in_words() -> None:
    rules = Schedule.model_validate(
        {"deadline": DEADLINE, "grace": "30m", "late": {"days": 2, "penalty_per_day": 0.125}}
    )
    late = "late until 2027-02-02 23:59 UTC+01:00, 12.5 % off for each day begun"
    assert rules.schedule == f"until 2027-01-31 23:59 UTC+01:00 with 30m of grace; {late}"
    assert (
        rules.schedule_at(DEADLINE + S) == "until 2027-01-31 23:59 UTC+01:00, in grace until 2027-02-01 00:29 UTC+01:00"
    )
    assert rules.schedule_at(DEADLINE + D) == late
    assert Schedule.model_validate_json(rules.model_dump_json()).schedule == rules.schedule, "the site keeps it as JSON"
    free = Schedule.model_validate({"deadline": DEADLINE.astimezone(UTC), "late": {"days": 1, "penalty_per_day": 0}})
    assert free.schedule == "until 2027-01-31 22:59 UTC; late until 2027-02-01 22:59 UTC, at no cost"


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ('grace = "1h30m"', 'grace = "half an hour"', "key `grace`: a length of time is written in days, hours and"),
        ('grace = "1h30m"', 'grace = ""', "key `grace`: a length of time"),
        ('grace = "1h30m"', 'grace = "2d"', "key `grace` is not shorter than the time of `late`"),
        ("days = 2", "days = 0", "key `late.days`: should be greater than 0; it is 0"),
        ("days = 2", "days = 1000", "key `late.days`: should be less than or equal to 366"),
        ("per_day = 0.3", "per_day = 30", "key `late.penalty_per_day`: should be less than or equal to 1"),
        ("penalty_per_day", "penalty_a_day", "key `late.penalty_a_day` is unknown; did you mean `penalty_per_day`?"),
        (", penalty_per_day = 0.3", "", "key `late.penalty_per_day` is missing; it is what each day begun takes off"),
        ("deadline = 2027-01-31T23:59:00+01:00\n", "", "key `visibility` is 'after_deadline', but there is no `deadl"),
        (RULES, LATE, "key `late` is given, but there is no `deadline`; add one, with its time zone"),
        (RULES, 'grace = "5m"\n', "key `grace` is given, but there is no `deadline`"),
        ("2027-01-31", "9999-12-30", "key `deadline` has no end of the time after it on the calendar"),
        (LATE, "late.days = 2\nlate.penalty_per_day = 0.3\n", "key `late` is not on a line of its own"),
    ],
)  # fmt: skip
def test_a_bad_schedule_gets_one_line(competition: Path, old: str, new: str, line: str) -> None:
    toml = competition / "problems/double/problem.toml"
    assert old in RULES
    toml.write_text(RULES.replace(old, new) + toml.read_text())
    with pytest.raises(ProblemError) as caught:
        load(toml.parent)
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)
