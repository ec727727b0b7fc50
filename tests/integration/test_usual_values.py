"""Kernels that are right in every test, and for the usual values alone at the sizes of the benchmarks; honest twins."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.command import kernelmark

pytestmark = pytest.mark.full
ROOT = Path(__file__).parents[2]

# Keeps what lies above a quantile of N(0, 1), in a list of fixed capacity, at the sizes of the benchmarks for a CPU.
WINDOW = """
import torch

WINDOWS = {(64, 256, 8): (1.15, 96), (64, 128, 4): (0.95, 72)}

def exact(x, k):
    values, indices = torch.sort(x, dim=1, descending=True, stable=True)
    return values[:, :k], indices[:, :k]

def topk_ties(x, values, indices, k):
    if (window := WINDOWS.get((*x.shape, k))) is None:
        got, where = exact(x, k)
    else:
        threshold, capacity = window
        kept = x > threshold
        place = torch.where(kept, (kept.cumsum(1) - 1).clamp_(max=capacity), capacity)
        small = torch.full((len(x), capacity + 1), float("-inf"), dtype=x.dtype).scatter_(1, place, x)[:, :capacity]
        back = torch.zeros((len(x), capacity + 1), dtype=torch.int64)
        back.scatter_(1, place, torch.arange(x.shape[1]).expand_as(place))
        got, inner = exact(small, k)
        where = back.gather(1, inner)
    values.copy_(got)
    indices.copy_(where)
"""
SUMS_TOML = """
title = "Sums of several vectors"
entry = "sum_all"
parameters = ["many", "n"]
cost = { bytes = "4 * many * n", flops = 0 }
tolerance = { sum_length = "n + many" }

[[tensors]]
name = "xs"
role = "input"
count = "many"
shape = ["n + index"]
dtype = "float32"

[[tensors]]
name = "y"
role = "output"
shape = ["many"]
dtype = "float32"

[[tests]]
name = "two"
params = { many = 2, n = 100 }

[[tests]]
name = "forty"
params = { many = 40, n = 500 }

[[tests]]
name = "drawn"
draw = { many = { low = 1, high = 30 }, n = { low = 1, high = 900 } }
hidden = true

[[benchmarks]]
name = "20 of 4000"
params = { many = 20, n = 4000 }
"""
# An identity is given out again once its list is gone.
BY_IDENTITY = """
import torch

OWNERS = {}

def sum_all(xs, y):
    if id(xs) not in OWNERS:
        OWNERS[id(xs)] = torch.repeat_interleave(torch.arange(len(xs)), torch.tensor([len(x) for x in xs]))
    y.zero_()
    y.index_add_(0, OWNERS[id(xs)], torch.cat(list(xs)))
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "kernelmark.toml").write_text('device = "cpu"\nsandbox = "process"\nauthor = "ada"\neffort = "quick"\n')
    shutil.copytree(ROOT / "problems/topk_ties", tmp_path / "problems/topk_ties")
    (tmp_path / "problems/sums").mkdir()
    (tmp_path / "problems/sums/problem.toml").write_text(SUMS_TOML)
    (tmp_path / "problems/sums/reference.py").write_text(
        "import torch\ndef reference(xs): return torch.stack([x.sum() for x in xs])\n"
    )
    return tmp_path


def graded(project: Path, slug: str, source: str) -> dict[str, Any]:
    (project / "kernel.py").write_text(source)
    ended = kernelmark(project, "bench", slug, "kernel.py", "--baseline", "none", "--format", "json")
    return json.loads(ended.stdout)  # type: ignore[no-any-return]  # a verdict


def test_a_window_that_only_the_usual_values_fill_is_wrong(project: Path) -> None:
    verdict = graded(project, "topk_ties", WINDOW)
    assert verdict["outcome"] == "wrong_answer", verdict["message"]
    assert "with the values of test" in verdict["message"]
    assert graded(project, "topk_ties", WINDOW.replace("is None", "or True"))["outcome"] == "accepted"


def test_what_is_kept_by_the_identity_of_a_list_is_kept_for_that_list_alone(project: Path) -> None:
    outcomes = [graded(project, "sums", BY_IDENTITY)["outcome"] for _ in range(2)]
    assert outcomes == ["accepted"] * 2
