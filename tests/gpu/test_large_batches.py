"""A batch whose launch waits for room in the driver's queue must not wait behind the hold that it would have to end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.gpu

ROOT = Path(__file__).resolve().parent.parent.parent
CALLS = 1024
# A process of its own, since what fails would hang: cuDNN's attention is put down node by node, a product is not.
BATCHES = f"""
import torch
from harness.runner.cuda import Cuda

device = Cuda()
q, k, v = (torch.randn(4, 32, 128, 128, device="cuda", dtype=torch.bfloat16) for _ in range(3))
attention = lambda _: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
into = torch.empty_like(q)
product = lambda _: torch.mul(q, 2, out=into)
for name, call in ("attention", attention), ("product", product):
    call(0)
    few, _ = device.capture(call, 64)
    ones = [device.time(device.batch(few, call, range(64))).event_ns / 64 for _ in range(5)]
    many, reason = device.capture(call, {CALLS})
    each = [device.time(device.batch(many, call, range({CALLS}))).event_ns / {CALLS} for _ in range(5)]
    print(name, device._batches_held, sorted(each)[2] / sorted(ones)[2])
"""


def test_a_launch_that_would_block_behind_the_hold_is_made_without_it_and_takes_as_long() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", BATCHES], cwd=ROOT, capture_output=True, text=True, timeout=120, check=True
    )
    found = {line.split()[0]: line.split()[1:] for line in ended.stdout.splitlines()}
    assert found["attention"][0] == "False"
    assert found["product"][0] == "True"
    for _, ratio in found.values():
        assert 0.9 < float(ratio) < 1.1, ended.stdout
