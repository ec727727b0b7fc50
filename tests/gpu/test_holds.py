"""A call that waits for the device is not put behind a hold, even if no other thread can run while it waits."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.gpu

ROOT = Path(__file__).resolve().parent.parent.parent
# In a process of its own, since a failure would hang. PyDLL keeps the GIL, as a function made by load_inline does.
CALLS = """
import ctypes

import torch
from harness.runner.cuda import Cuda

device, values = Cuda(), torch.ones(1 << 24, device="cuda")
without_releasing, releasing = ctypes.PyDLL("libcuda.so.1"), ctypes.CDLL("libcuda.so.1")

def launches():
    values.add_(1)

def waits_in_cpp():
    values.add_(1)
    without_releasing.cuCtxSynchronize()

def waits():
    values.add_(1)
    releasing.cuCtxSynchronize()

for call in launches, waits_in_cpp, waits, launches:
    call()
    kind = device.hold_for(call)
    print(call.__name__, kind, sorted(device.sample(call).event_ns for _ in range(9))[4])
"""


def test_only_a_call_that_does_not_wait_is_held() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", CALLS], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    names, kinds, times = zip(*(line.split() for line in ended.stdout.splitlines()), strict=True)
    assert names == ("launches", "waits_in_cpp", "waits", "launches")
    assert kinds == ("memory", "none", "none", "memory"), ended.stdout
    # 64 MiB, read and written: the work itself is in every time, and the timer's 100 ms are in none.
    assert all(20_000 < float(each) < 1_000_000 for each in times), ended.stdout
