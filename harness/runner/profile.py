"""Profiles calls with torch.profiler, and keeps the reports as named artefacts. Runs in the runner, untrusted.

The judge fetches the artefacts into memory files of the sizes that this process reports. Their content is a claim.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, schedule

from harness.runner.device import RunnerDevice
from harness.wire import commands

_STACK_DEPTH = 6  # frames in the table by stack
_ALLOCATIONS = 20_000  # the last allocations, which are kept
_MODULE = "nn.Module: "
_OURS = "harness/runner/"  # in the names of this package's frames; the submission's frames come after them
_PROFILER = ("torch/profiler/", "torch/cuda/__init__.py", "torch/autograd/profiler", "<built-in function perf_counter")
_SEPARATORS = str.maketrans(";\t\r\n", "    ")


def profiled(
    device: RunnerDevice,
    call: Callable[[int], None],
    sets: int,
    settings: commands.Profile,
    *,
    stacks: Callable[[], bool],
) -> dict[str, bytes]:
    """Profile the calls in turn; returns the artefacts by name.

    Each repeat gives one trace: some calls are skipped, some warm the profiler up, and the others are recorded. If
    `stacks` then returns True, the calls are profiled again with Python's stacks, which slow a call down and crowd the
    tables.
    """
    kept: dict[str, bytes] = {}

    def traced(profiler: Any) -> None:
        kept[f"trace {len(kept)}"] = _exported(profiler.export_chrome_trace)
        if len(kept) == settings.repeats and "torch" in settings.parts:
            kept["operators"] = _table(device, settings, profiler.key_averages())
            kept["shapes"] = _table(device, settings, profiler.key_averages(group_by_input_shape=True))

    def stacked(profiler: Any) -> None:
        kept["by stack"] = _table(device, settings, profiler.key_averages(group_by_stack_n=_STACK_DEPTH))
        for time in ("cpu", "device"):
            kept[f"{time} stacks"] = _collapsed(profiler.events(), time)
        kept["modules"] = _modules(profiler.events())

    watch = partial(_watch, device, call, sets, settings)
    if {"torch", "memory"} & {*settings.parts}:
        watch(traced, settings.repeats, stacks=False)
    if stacks() and "stacks" in settings.parts:
        watch(stacked, 1, stacks=True)
    if "torch" in settings.parts:
        kept["autograd table"] = _autograd_table(device, settings, call)
    if "memory" in settings.parts and device.kind == "cuda":
        kept["memory snapshot"] = _memory_snapshot(call)
    return kept


def _watch(
    device: RunnerDevice,
    call: Callable[[int], None],
    sets: int,
    settings: commands.Profile,
    ready: Callable[[Any], None],
    repeats: int,
    *,
    stacks: bool,
) -> None:
    """Make the calls under torch.profiler; `ready` is called after every repeat."""
    with profile(
        activities=[ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device.kind == "cuda" else [])],
        schedule=schedule(wait=settings.wait, warmup=settings.warmup, active=settings.active, repeat=repeats),
        on_trace_ready=ready,
        record_shapes=True,
        profile_memory=True,
        with_stack=stacks,
        with_modules=stacks,
        # Without this setting torch records no stacks (pytorch issue 100253).
        experimental_config=torch._C._profiler._ExperimentalConfig(verbose=True) if stacks else None,
    ) as profiler:
        for k in range(repeats * (settings.wait + settings.warmup + settings.active)):
            call(k % sets)
            device.synchronize()
            profiler.step()


def _collapsed(events: Iterable[Any], time: str) -> bytes:
    """Collapsed stacks of the submission's calls, including operators and kernels, with their own times in µs.

    torch's `export_stacks` omits the event itself, writes a line for every event, and counts the device time of a
    kernel again for the operator that launched it and for the profiler's step.
    """
    counts, home = Counter[str](), f"{Path.home()}/"
    for event in events:
        on_device = event.device_type.name != "CPU"
        # An annotation, such as Inductor's, would count the kernels below it again.
        if event.name.startswith("ProfilerStep") or (time == "device" and (not on_device or event.is_user_annotation)):
            continue
        frames = [*reversed(event.stack or ()), event.name]
        ours = [number for number, frame in enumerate(frames) if _OURS in frame]
        own = frames[ours[-1] + 1 :] if ours else []
        if (
            own
            and not own[0].startswith(_PROFILER)
            and (spent_us := round(getattr(event, f"self_{time}_time_total", 0))) > 0
        ):
            counts[";".join(frame.removeprefix(home).translate(_SEPARATORS) for frame in own)] += spent_us
    return "".join(f"{stack} {count}\n" for stack, count in counts.items()).encode("utf-8", "backslashreplace")


def _table(device: RunnerDevice, settings: commands.Profile, averages: Any) -> bytes:
    sort_by = settings.sort_by or f"self_{'cuda' if device.kind == 'cuda' else 'cpu'}_time_total"
    return str(averages.table(sort_by=sort_by, row_limit=settings.rows)).encode("utf-8", "backslashreplace")


def _autograd_table(device: RunnerDevice, settings: commands.Profile, call: Callable[[int], None]) -> bytes:
    """The table of PyTorch's older profiler, torch.autograd.profiler."""
    with torch.autograd.profiler.profile(use_device=None if device.kind == "cpu" else device.kind) as profiler:
        call(0)
        device.synchronize()
    return _table(device, settings, profiler.key_averages())


def _modules(events: Iterable[Any]) -> bytes:
    """A table of own times by the innermost `nn.Module` of each operator; b"" if there is no module."""
    spent: dict[str, list[float]] = {}
    for event in events:
        module = next((frame for frame in event.stack or () if frame.startswith(_MODULE)), None)
        if module is not None:
            times = spent.setdefault(module.removeprefix(_MODULE), [0.0, 0.0])
            times[0] += getattr(event, "self_cpu_time_total", 0)
            times[1] += getattr(event, "self_device_time_total", 0)
    lines = [f"{cpu_us:12.1f} {gpu_us:15.1f}  {name}\n" for name, (cpu_us, gpu_us) in spent.items()]
    head = f"{'CPU µs':>12} {'device µs':>15}  module\n"
    return "".join([head, *lines]).encode("utf-8", "backslashreplace") if lines else b""


def _memory_snapshot(call: Callable[[int], None]) -> bytes:
    """torch's snapshot of all blocks of device memory, and all allocations during one call, as JSON."""
    torch.cuda.synchronize()
    torch.cuda.memory._record_memory_history(max_entries=_ALLOCATIONS, stacks="python")
    try:
        call(0)
        torch.cuda.synchronize()
        return json.dumps(torch.cuda.memory._snapshot(), default=str).encode()
    finally:
        torch.cuda.memory._record_memory_history(enabled=None)


def _exported(export: Callable[[str], Any]) -> bytes:
    """The content that torch exports to a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "artefact"
        export(str(path))
        return path.read_bytes() if path.exists() else b""
