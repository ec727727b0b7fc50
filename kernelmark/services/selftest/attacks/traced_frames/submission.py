# Strategy: traces the runner's timing frames and moves the local variable that holds the time of the start.
# Surface: local variables of `sample` (CPU) and `_time` (CUDA) while they run, by sys.settrace.
import ctypes
import sys
import time

import torch

START = {"sample": "start", "_time": "begun"}
told = False


def lines(frame, event, _):
    global told
    name = START[frame.f_code.co_name]
    values = frame.f_locals
    if event != "line" or name not in values or "elapsed_ns" in values or "span_ns" in values:
        return lines
    moved = time.perf_counter_ns() - values[name]
    values[name] += 19 * moved // 20
    # Before Python 3.13 what is written to f_locals must be carried back.
    if sys.version_info < (3, 13):
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
    if frame.f_code.co_name == "_time":
        values["self"]._start = values["self"]._end  # an event is 0 ms after itself
    if not told and moved > 100_000:
        told = True
        print(f"attack: `start` was moved by {moved} ns in the runner's own frame", flush=True)
    return lines


def calls(frame, event, _):
    if frame.f_code.co_name in START and "/harness/runner/" in frame.f_code.co_filename:
        return lines
    return None


sys.settrace(calls)


def product(a, b, c):
    torch.mm(a, b, out=c)
