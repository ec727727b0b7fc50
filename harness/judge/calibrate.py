"""Measures the peak rates of the judge's device, in the judge's own process, with PyTorch's own kernels. Trusted.

Bandwidth is measured by a copy and a sum that fit into no cache, and throughput by matrix products of random values
(zeros draw less power and run faster). Each rate is the fastest of several repetitions, because no submission may claim
to be faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import torch

from harness import stats
from harness.device import DEVICES, JudgeDevice, Workload
from harness.judge.timing.device_lock import lock_alone
from harness.verdict import DeviceKind
from harness.verdict.roofline import Calibration

_REPEATS = 5
_TRIES = 3
_SECONDS = 0.02  # the minimum duration of a repetition


def measure(kind: DeviceKind, on_progress: Callable[[str], None] = lambda _: None) -> Calibration:
    """Calibrate the device, which takes some seconds.

    A dtype that PyTorch cannot multiply on this device, or only very slowly, is left out.
    """
    device = DEVICES[kind]
    with lock_alone(kind, lambda: on_progress(f"when the grading on this {device.name} is over")):
        return _measure(device, on_progress)


def _measure(device: JudgeDevice, on_progress: Callable[[str], None]) -> Calibration:
    spreads: dict[str, float] = {}

    def fastest(call: Callable[[], object], kind: str) -> float:
        times = _times(call, device)
        spreads[kind] = max(spreads.get(kind, 0.0), (max(times) - min(times)) / stats.median(times))
        return min(times)

    on_progress("memory")
    work = device.workload()
    copy, read = _bandwidths(device.torch_device, work.buffer_bytes, lambda call: fastest(call, "memory"))
    flops: dict[str, int] = {}
    for name, size, product in _products(device.torch_device, work):
        on_progress(name)
        try:
            if work.slowest_s is not None and _is_slow(product, device, work.slowest_s):
                continue
            rate = round(2 * size**3 / fastest(product, "arithmetic"))
        except (RuntimeError, NotImplementedError):  # not on this device, or not in this build
            continue
        flops[name] = max(rate, flops.get(name, 0))
    facts = device.facts()
    return Calibration(
        device_name=facts.device_name,
        device_uuid_sha256=facts.device_uuid_sha256,
        driver=facts.driver,
        torch=torch.__version__,
        created_at=datetime.now(UTC),
        cache_bytes=work.cache_bytes,
        copy_bytes_per_s=copy,
        read_bytes_per_s=read,
        flops_per_s=flops,
        memory_spread=round(spreads["memory"], 4),
        arithmetic_spread=round(spreads.get("arithmetic", 0.0), 4),
    )


def _is_slow(product: Callable[[], object], device: JudgeDevice, slowest_s: float) -> bool:
    """Whether a product takes longer each time, and not only while others use the machine."""
    return all(device.elapsed_s(product, 1) > slowest_s for _ in range(_TRIES))


def _bandwidths(device: str, buffer_bytes: int, fastest: Callable[[Callable[[], object]], float]) -> tuple[int, int]:
    """The bandwidths of a copy (bytes read plus bytes written) and of a sum, in bytes a second."""
    source = torch.randn(buffer_bytes // 4, device=device)
    target, total = torch.empty_like(source), torch.empty((), device=device)
    nbytes = 4 * source.numel()
    copy_s = fastest(lambda: target.copy_(source))
    read_s = fastest(lambda: torch.sum(source, dim=0, out=total))
    return round(2 * nbytes / copy_s), round(nbytes / read_s)


def _times(call: Callable[[], object], device: JudgeDevice) -> list[float]:
    """Seconds per call in each of `_REPEATS` repetitions."""
    call()
    once = device.elapsed_s(call, 1)
    count = max(1, round(_SECONDS / max(once, 1e-6)))
    return [device.elapsed_s(call, count) / count for _ in range(_REPEATS)]


def _products(device: str, work: Workload) -> Iterator[tuple[str, int, Callable[[], object]]]:
    """Name, size and call of every matrix product to try."""
    for size in work.sizes:
        for name in work.dtypes:
            a, b = (torch.randn(size, size, device=device).to(getattr(torch, name)) for _ in range(2))
            yield name, size, _product(a, b, "highest")
        if work.tensor_cores:
            a, b = (torch.randn(size, size, device=device) for _ in range(2))
            yield "tf32", size, _product(a, b, "high")
            ints = [torch.randint(-128, 128, (size, size), dtype=torch.int8, device=device) for _ in range(2)]
            yield "int8", size, _int8(*ints)
            yield "float8_e4m3fn", size, _float8(torch.randn(size, size, device=device))


def _product(a: torch.Tensor, b: torch.Tensor, precision: str) -> Callable[[], object]:
    """A matrix product; for float32, the precision "high" is TF32.

    An environment variable can change the default precision, so it is always set here.
    """
    c = torch.empty_like(a)

    def product() -> None:
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision(precision)
        try:
            torch.mm(a, b, out=c)
        finally:
            torch.set_float32_matmul_precision(before)

    return product


def _int8(a: torch.Tensor, b: torch.Tensor) -> Callable[[], object]:
    return lambda: torch._int_mm(a, b.t())  # cuBLASLt wants the second operand column-major


def _float8(values: torch.Tensor) -> Callable[[], object]:
    def product() -> torch.Tensor:  # with fast accumulation, as submissions may use it
        return torch._scaled_mm(a, b, scale_a=scale, scale_b=scale, out_dtype=torch.bfloat16, use_fast_accum=True)

    a = values.to(torch.float8_e4m3fn)
    b = values.to(torch.float8_e4m3fn).t()
    scale = torch.ones((), device=values.device)
    return product
