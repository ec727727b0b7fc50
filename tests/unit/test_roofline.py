"""The limits of a device: no honest kernel beats them, and a kernel that does is refused with both numbers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from harness.device import DEVICES
from harness.errors import UsageError
from harness.verdict.roofline import Calibration, Demand, choose, impossible, roofline
from kernelmark.commands.cli import main
from kernelmark.diagnostics.doctor.machine import calibration
from kernelmark.project.calibrations import store, stored
from kernelmark.project.settings import Settings
from tests.documents import fields

NOW = datetime(2026, 1, 1, tzinfo=UTC)
H200 = Calibration(
    device_name="NVIDIA H200",
    device_uuid_sha256="a" * 64,
    torch="2.11.0",
    created_at=NOW,
    cache_bytes=50 << 20,
    copy_bytes_per_s=4_000_000_000_000,
    read_bytes_per_s=4_400_000_000_000,
    flops_per_s={"float32": 50 * 10**12, "tf32": 390 * 10**12, "float16": 700 * 10**12, "bfloat16": 740 * 10**12},
    memory_spread=0.01,
    arithmetic_spread=0.01,
)
COPY = Demand(nbytes=128 << 20, flops=0, dtype="float32")
COPY_NS = (128 << 20) / 4e12 * 1e9


def test_the_larger_of_two_times_is_the_limit() -> None:
    at_bandwidth = roofline(H200, COPY, COPY_NS)
    assert at_bandwidth.share == pytest.approx(1.0)
    assert at_bandwidth.limit == "memory"
    product = Demand(nbytes=3 * 2 * 8192**2, flops=2 * 8192**3, dtype="bfloat16")
    half = roofline(H200, product, 2 * 2 * 8192**3 / 740e3)
    assert half.share == pytest.approx(0.5)
    assert half.limit == "arithmetic"
    assert roofline(H200, Demand(dtype="float32"), 1000.0) is None, "the problem states no cost"


@pytest.mark.parametrize(
    ("dtype", "rate"), [("float32", 130), ("bfloat16", 740), ("float16", 740), ("float64", 740), ("int8", 740)]
)
def test_operands_are_bound_by_the_fastest_arithmetic_that_serves_them(dtype: str, rate: int) -> None:
    assert H200.throughput(dtype) == rate * 10**12
    measured = H200.model_copy(update={"flops_per_s": {"bfloat16": 740, "int8": 890, "float8_e4m3fn": 1500}})
    assert measured.throughput("int8") == measured.throughput("float8_e4m3fn") == 1500, "int8's own product is slow"


# What was reached is published, but for the last, which was measured; the rates beside it are round numbers.
@pytest.mark.parametrize(
    ("dtype", "rates", "reached"),
    [
        ("float32", {"float32": 19, "tf32": 135, "float16": 260, "bfloat16": 260}, 51),  # A100, three float16 products
        ("float64", {"float32": 50, "float64": 60, "int8": 1200}, 80.2),  # GH200, int8 products
        ("float64", {"float32": 70, "float64": 1.3, "int8": 550}, 9.8),  # RTX 4090, the same
        ("bfloat16", {"float32": 50, "float16": 700, "bfloat16": 716}, 764),  # H100, faster than cuBLAS
        ("float16", {"float32": 19, "float16": 257, "bfloat16": 257}, 295),  # A100, zeros
        ("bfloat16", {"float32": 0.2, "float64": 0.09, "bfloat16": 0.0008}, 0.2),  # CPU without units for bfloat16
    ],
)
def test_honest_times_are_within_the_roofline(dtype: str, rates: dict[str, float], reached: float) -> None:
    device = H200.model_copy(
        update={"flops_per_s": {name: round(r * 1e12) for name, r in rates.items()}, "arithmetic_spread": 0.0}
    )
    demand = Demand(nbytes=1, flops=2 * 8192**3, dtype=dtype)
    time_ns = demand.flops / reached / 1e3
    assert impossible(device, demand, calls=12, time_ns=time_ns) is None
    assert impossible(device, demand, calls=12, time_ns=time_ns / 1000) is not None


def test_a_time_beyond_the_roofline_is_refused_with_both_numbers() -> None:
    why = impossible(H200, COPY, calls=60, time_ns=COPY_NS / 2)
    assert f"{COPY_NS / 2:,.0f} ns" in why
    assert "134,217,728 bytes" in why
    product = Demand(nbytes=1, flops=2 * 8192**3, dtype="bfloat16")
    assert "bfloat16 operations" in (impossible(H200, product, calls=10, time_ns=1e6) or "")


@given(
    nbytes=st.integers(1, 1 << 34),
    calls=st.integers(1, 2048),
    flops=st.integers(0, 10**13),
    dtype=st.sampled_from(["float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "int8", "int64", "bool"]),
)
def test_no_kernel_at_the_devices_own_rates_is_refused(nbytes: int, calls: int, flops: int, dtype: str) -> None:
    demand = Demand(nbytes=nbytes, flops=flops, dtype=dtype)
    honest_ns = max(nbytes / H200.read_bytes_per_s, flops / H200.throughput(dtype)) * 1e9
    assert impossible(H200, demand, calls, honest_ns) is None


@given(calls=st.integers(1, 25), time_ns=st.floats(1, 1e6))
def test_a_batch_that_the_cache_holds_is_not_bound_by_memory(calls: int, time_ns: float) -> None:
    assert impossible(H200, Demand(nbytes=4 << 20, dtype="float32"), calls, time_ns) is None


def test_the_very_device_comes_before_its_namesakes_and_the_newest_first() -> None:
    other = H200.model_copy(update={"device_uuid_sha256": "b" * 64, "created_at": NOW + timedelta(days=9)})
    newer = H200.model_copy(update={"created_at": NOW + timedelta(days=1)})
    assert choose([other, newer, H200], "NVIDIA H200", "a" * 64) == newer
    assert choose([H200, other], "NVIDIA H200", "c" * 64) == other
    assert choose([H200], "NVIDIA B200", None) is None


def test_calibrations_are_kept_a_file_a_device(tmp_path: Path) -> None:
    settings = Settings(root=tmp_path)
    path = store(settings, H200)
    assert path.name == "nvidia-h200-aaaaaaaa.json"
    newer = H200.model_copy(update={"created_at": NOW + timedelta(days=1)})
    assert store(settings, newer) == path
    assert stored(settings) == [newer]
    path.write_text('{"device_name": "x"}')
    with pytest.raises(UsageError, match="kernelmark calibrate"):
        stored(settings)


def test_the_doctor_knows_whether_a_device_is_calibrated(tmp_path: Path) -> None:
    settings = Settings(root=tmp_path)
    missing = calibration(settings, ["NVIDIA H200"])
    assert (missing.status, missing.blocks) == ("warn", False)
    assert "kernelmark calibrate" in missing.remedy
    path = store(settings, H200)
    assert calibration(settings, ["NVIDIA H200"]).status == "ok"
    assert calibration(settings, ["NVIDIA B200"]).status == "warn"
    path.write_text("{")
    assert calibration(settings, ["NVIDIA H200"]).status == "fail"


def test_the_doctor_looks_for_calibrations_where_torch_is_broken(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise OSError('libcudart.so.12: cannot open shared object file')")
    code = "from pathlib import Path; from kernelmark.diagnostics.doctor.machine import calibration; "
    code += "from kernelmark.project.settings import Settings; "
    code += f"print(calibration(Settings(root=Path({str(tmp_path)!r})), []).status)"
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{Path(__file__).parents[2]}"}
    run = [sys.executable, "-c", code]
    answer = subprocess.run(run, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert answer.stdout == "warn\n", answer.stderr


def test_a_product_that_is_done_element_by_element_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """And one is not that was slow once."""
    from harness.judge import calibrate

    ones, device = calibrate.torch.ones(2, 2), DEVICES["cpu"]
    elapsed_s, stalls = device.elapsed_s, [60.0]

    def product() -> None:
        _ = ones @ ones

    def crawl() -> None: ...

    def elapsed(call: Callable[[], object], count: int) -> float:
        if call is product and stalls:
            return stalls.pop()
        return 60.0 if call is crawl else elapsed_s(call, count)

    products = [("float32", 2, product), ("bfloat16", 2, crawl)]
    monkeypatch.setattr(calibrate, "_products", lambda *_: products)
    work = replace(device.workload(), buffer_bytes=1 << 20, slowest_s=30.0)
    monkeypatch.setattr(device, "workload", lambda: work)
    monkeypatch.setattr(device, "elapsed_s", elapsed)
    assert set(calibrate.measure("cpu").flops_per_s) == {"float32"}


def test_calibrate_measures_this_cpu_and_stores_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernelmark.toml").write_text("")
    small = replace(DEVICES["cpu"].workload(), sizes=(64,))  # where a slow machine takes no time either
    monkeypatch.setattr(DEVICES["cpu"], "workload", lambda: small)
    result = CliRunner().invoke(main, ["calibrate", "--device", "cpu", "--format", "json"])
    assert result.exit_code == 0, result.output
    found = Calibration.model_validate(fields(result.stdout))
    assert stored(Settings(root=tmp_path)) == [found]
    assert found.copy_bytes_per_s > 10**8
    assert set(found.flops_per_s) >= {"float32", "float64"}
