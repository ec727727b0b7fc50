"""Which foreign problems count as known: those whose inputs, or answers, are the same with every seed."""

from __future__ import annotations

from typing import Any

import pytest

from harness.judge.correctness import known

TRUE, FALSE, LARGE = ([[1]], 1), ([[2]], 1), ([[3]], 64)


@pytest.mark.parametrize(
    ("answers", "same"),
    [
        ([TRUE, FALSE], False),
        ([TRUE, TRUE, TRUE, FALSE], False),
        ([TRUE] * 30, True),
        ([LARGE, LARGE, TRUE], True),
        ([LARGE, TRUE], False),
    ],
    ids=["other", "equal by chance", "constant", "a large constant", "large"],
)
def test_an_answer_is_known_if_it_is_always_the_same(
    answers: list[tuple[list[list[int]], int]], same: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = ((([[seed]]), *answer) for seed, answer in enumerate(answers))
    monkeypatch.setattr(known, "_drawn", lambda *_: next(drawn))
    nothing: Any = None
    assert known._same(nothing, nothing, "cpu") is same


def test_inputs_are_known_if_two_seeds_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter([([[7]], *TRUE), ([[7]], *FALSE)])
    monkeypatch.setattr(known, "_drawn", lambda *_: next(drawn))
    nothing: Any = None
    assert known._same(nothing, nothing, "cpu")
