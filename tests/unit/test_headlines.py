"""The claims of the lectures: what is answered from rows, and how a run goes on."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.headlines import __main__ as headlines
from benchmarks.headlines.bench import Bench, ours
from benchmarks.headlines.claims.pow_square import operators
from benchmarks.headlines.finding import Answer, Claim, Finding, NotHereError, Row, judged, ratio
from benchmarks.headlines.page import write

TABLE = """
-----------  ------------  -----------  ----------
       Name      Self CPU    CPU total   # of Calls
-----------  ------------  -----------  ----------
  aten::pow      80.000us     90.000us            3
aten::square      5.500us      1.095ms            3
  ProfilerStep*   1.000us      1.000us            3
-----------  ------------  -----------  ----------
Self CPU time total: 1.2ms
"""


@pytest.fixture
def bench() -> Iterator[Bench]:
    with Bench("cpu", "process") as made:
        yield made


def row(case: str, low: float, high: float, what: str = "a × b") -> Row:
    return Row(case, what, (low + high) / 2, "×", low, high)


@pytest.mark.parametrize(
    ("rows", "answer"),
    [
        ([row("x", 1.1, 1.2), row("y", 1.3, 1.4)], Answer.HOLDS),
        ([row("x", 0.8, 0.9), row("y", 0.5, 0.6)], Answer.DOES_NOT_HOLD),
        ([row("x", 0.8, 0.9), row("y", 1.3, 1.4)], Answer.DEPENDS),
        ([row("x", 0.9, 1.1)], Answer.DEPENDS),  # the bound is inside the interval
        ([row("x", 0.5, 0.6, "another"), row("y", 1.3, 1.4)], Answer.HOLDS),
        ([], Answer.NOT_MEASURED),
    ],
)
def test_an_answer_follows_from_whole_intervals(rows: list[Row], answer: Answer) -> None:
    finding = judged(rows, "a × b", at_least=1.0)
    assert finding.answer is answer
    assert all(row.case in finding.reason for row in rows if row.what == "a × b")


def test_a_claim_can_be_of_most(bench: Bench) -> None:
    assert judged([row("x", 0.8, 0.9)], "a × b", at_most=1.0).answer is Answer.HOLDS
    assert judged([row("x", 1.2, 1.3)], "a × b", at_least=0.95, at_most=1.05).answer is Answer.DOES_NOT_HOLD


def test_a_ratio_of_separate_times_spans_their_extremes() -> None:
    over = ratio(Row("x", "b", 30.0, "µs", 27.0, 33.0), Row("x", "a", 10.0, "µs", 9.0, 12.0), "a × b")
    assert (over.value, over.low, over.high) == (3.0, 2.25, pytest.approx(33 / 9))


def test_the_operators_of_a_profile() -> None:
    times = operators(TABLE)
    assert times == {
        "aten::pow": {"Self CPU": 80.0, "CPU total": 90.0},
        "aten::square": {"Self CPU": 5.5, "CPU total": 1095.0},
    }


def test_a_run_saves_each_claim_and_goes_on(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []

    def fails(_: Bench) -> Finding:
        asked.append("fails")
        raise RuntimeError("broken")

    def lacks(_: Bench) -> Finding:
        raise NotHereError("no such card")

    def sleeps(_: Bench) -> Finding:
        time.sleep(60)
        raise AssertionError

    def answers(_: Bench) -> Finding:
        asked.append("answers")
        return judged([row("x", 2.0, 3.0)], "a × b", at_least=1.0)

    measures = {"fails": fails, "lacks": lacks, "answers": answers, "sleeps": sleeps, "late": answers}
    monkeypatch.setattr(headlines, "CLAIMS", {name: Claim(name, "L", "so", made) for name, made in measures.items()})
    monkeypatch.setattr(bench, "device", "cuda")
    monkeypatch.setattr(bench, "facts", lambda: {"device_name": "card", "torch": "2", "triton": "3", "sandbox": "none"})
    out = tmp_path / "found.json"
    headlines.measure(list(measures), bench, out, 3.0, again=False)
    claims = json.loads(out.read_text())["claims"]
    assert {name: claim["answer"] for name, claim in claims.items()} == {
        "fails": "not measured", "lacks": "not measured", "answers": "holds", "sleeps": "not measured",
    }  # fmt: skip
    assert claims["fails"]["reason"] == "RuntimeError: broken"
    assert claims["lacks"]["reason"] == "no such card"
    assert claims["sleeps"]["reason"].startswith("took longer than")
    assert "late: not begun" in capsys.readouterr().out
    headlines.measure(["fails", "answers"], bench, out, 3.0, again=False)
    assert asked == ["fails", "answers", "fails"]  # what has an answer is left alone
    page, plot = write(out)
    assert "**holds**" in page.read_text()
    assert plot.read_text().startswith("<svg")


def test_kernels_race_on_the_cpu(bench: Bench) -> None:
    manual, cuda = ours("gelu", "manual.py"), ours("gelu", "cuda.cu")
    rows = bench.race("gelu", ours("gelu", "eager.py"), [manual, cuda], {"of a GPU": {"n": 1 << 28}})
    assert {row.what for row in rows} <= {"eager", "manual", "eager × manual"}  # no CUDA here, and the CPU's own cases
    assert {row.case for row in rows} == {"16384", "65536"}
    with pytest.raises(NotHereError, match="needs a GPU: cuda is CUDA"):
        bench.race("gelu", cuda)
    with pytest.raises(NotHereError, match="wrong_answer"):
        bench.race("gelu", ours("square", "eager.py").changed("square", "def square", "def gelu"))
