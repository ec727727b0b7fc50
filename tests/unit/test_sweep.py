"""A sweep over sizes: which sizes may be requested, and what is written."""

from __future__ import annotations

import csv
import io
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from harness.errors import UsageError
from harness.problem import load
from harness.verdict import Doubt, Interval
from kernelmark.diagnostics.profiling import sweep
from kernelmark.diagnostics.profiling.sweep import Sizes, SweepPoint
from kernelmark.diagnostics.selftest import PROBLEMS
from kernelmark.text import profiles
from tests.unit.conftest import Command
from tests.verdicts import accepted

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("n=128:1024", (128, 256, 512, 1024)),
        ("n=100:900", (100, 200, 400, 800)),
        ("n=128:512:128", (128, 256, 384, 512)),
        ("n=7,5,3,5", (3, 5, 7)),
    ],
)
def test_sizes_double_add_or_are_listed(text: str, values: tuple[int, ...]) -> None:
    assert Sizes.parse(text) == Sizes("n", values)


@pytest.mark.parametrize(
    "text", ["", "n", "n=", "n=8", "n=8:4", "n=0:8", "n=1:9:0", "n=1:1000:1", "n=a:b", "n=-4:8", "=1:8", "n=1:8:1:1"]
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"--sweep: .*write it as cols=128:16384"):
        Sizes.parse(text)


def test_the_benchmarks_differ_in_one_size() -> None:
    problem = load(PROBLEMS / "double")
    one = problem.model_copy(update={"benchmarks": problem.benchmarks[:1]})
    swept = sweep._swept(one, Sizes("n", (10, 20)))
    assert [(case.name, case.params) for case in swept.benchmarks] == [("n 10", {"n": 10}), ("n 20", {"n": 20})]
    assert swept.tests == problem.tests
    with pytest.raises(UsageError, match="m is not a size of double; known: `n`"):
        sweep._swept(one, Sizes("m", (10, 20)))
    with pytest.raises(UsageError, match="double cannot have n = 0"):
        sweep._swept(one, Sizes("n", (0, 20)))


def points(flops: int = 1, names: tuple[str, ...] = ("yours", "eager")) -> list[SweepPoint]:
    time = Interval(median_ns=1000, low_ns=900, high_ns=1100, confidence=0.95)
    return [
        SweepPoint(name, size, time if name == "yours" else None, 1000, 1e9 * size, 1e9 * size * flops)
        for size in (10, 100)
        for name in names
    ]


def test_the_rate_is_that_of_what_limits() -> None:
    assert sweep.rate(points())[0] == "GB/s"
    unit, rates = sweep.rate(points(flops=1000))
    assert (unit, rates["eager", 100]) == ("TFLOP/s", 100.0)
    assert [line.split() for line in profiles.rates("n", *sweep.rate(points()))] == [
        ["n", "yours,", "GB/s", "eager,", "GB/s"],
        ["10", "10", "10"],
        ["100", "100", "100"],
    ]


def test_the_csv_is_read_back() -> None:
    rows = list(csv.DictReader(io.StringIO(sweep.as_csv("n", points()))))
    assert [(row["n"], row["kernel"], row["median_ns"], row["low_ns"]) for row in rows] == [
        ("10", "yours", "1000", "900"),
        ("10", "eager", "1000", ""),
        ("100", "yours", "1000", "900"),
        ("100", "eager", "1000", ""),
    ]


def test_the_plot_has_a_line_and_a_name_for_each_kernel() -> None:
    hostile = '<script>"&\u202e'
    root = ET.fromstring(sweep.as_svg(hostile, "n", points(names=("yours", hostile))))
    marks = [group for group in root.iter(f"{SVG}g") if group.get("class", "").startswith("mark ")]
    assert len(marks) == 4
    titles = [mark.findtext(f"{SVG}title", "") for mark in marks]
    assert "yours, n 10: 10 GB/s" in titles
    assert next(text.text for text in root.iter(f"{SVG}text") if str(text.get("class")).startswith("l-")) == "yours"
    assert not list(root.iter(f"{SVG}script"))


def test_a_failed_baseline_is_reported_with_the_rates(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    doubt = Doubt(code="no_baseline", text="baseline eager: it crashed")
    verdict = accepted(problem="double").model_copy(update={"doubts": (doubt,)})
    point = SweepPoint("yours", 128, verdict.score, 57_300, 1e9, 1e9)
    monkeypatch.setattr(sweep, "sweep", lambda *_: (verdict, [point, replace(point, size=256)]))
    result = run("profile", "double", "kernel.py", "--sweep", "n=128,256")
    assert result.code == 0, result.err
    assert "doubt  no_baseline: baseline eager: it crashed\n" in result.out
