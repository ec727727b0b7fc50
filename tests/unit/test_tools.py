"""Reading the output of NVIDIA's tools: Nsight Compute 2025.3 of a softmax on an H100, and compute-sanitizer 2025."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from harness.device import DEVICES, DeviceFacts
from harness.errors import SandboxError
from harness.profiling import nsight
from harness.profiling.nsight import DURATION, MEMORY, OCCUPANCY, REGISTERS, NothingMeasured, read
from harness.profiling.sanitizer import ToolReport, sanitized
from harness.profiling.watch import Watched
from kernelmark.diagnostics import audits
from kernelmark.diagnostics.audits import first
from kernelmark.project.settings import Settings
from leaderboard.record.current import Current
from tests.ranked import rank
from tests.verdicts import accepted, chained, sha256

HEAD = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device",'
    '"CC","Section Name","Body Item Label","Metric Name","Metric Unit","Metric Value","Rule Name","Rule Type",'
    '"Rule Description","Estimated Speedup Type","Estimated Speedup"\n'
)
SPEED, OCCUPIED, STATES = "GPU Speed Of Light Throughput", "Occupancy", "Warp State Statistics"


def line(
    section: str, name: str, unit: str, value: str, *, kernel: str = "long_row_kernel", launch: int = 0, item: str = ""
) -> str:
    at = f'"{launch}","32","python3.12","127.0.0.1","{kernel}","1","13","(1024, 1, 1)","(512, 1, 1)","0","9.0"'
    return f'{at},"{section}","{item}","{name}","{unit}","{value}",\n'


TABLE = (
    HEAD
    + line(SPEED, "Memory Throughput", "%", "80.15")
    + line(SPEED, "Duration", "us", "238.21")
    + line(SPEED, "Compute (SM) Throughput", "%", "29.76")
    + line("Memory Workload Analysis", "Memory Throughput", "Tbyte/s", "2.68")
    + line(SPEED, "Memory Throughput", "%", "17", item="Memory Throughput Breakdown")
    + line(OCCUPIED, "Achieved Occupancy", "%", "46.93")
    + line(STATES, "Stall Long Scoreboard", "inst", "17.17", item="Warp State (All Cycles)")
    + line(SPEED, "Duration", "us", "2,048.00", kernel="second", launch=1)
)


def measured(table: str, **more: bytes) -> Watched:
    printed = f"==PROF== Connected\n{table}".encode()
    return Watched(1, "", {"tool output": b"", "tool report": b"NVR", "tool table": printed, **more})


def test_each_kernel_has_its_metrics_with_their_units() -> None:
    profile = read(measured(TABLE, **{"tool version": b"NVIDIA (R)\nVersion 2025.3.1.0 (build 36398880)\n"}))
    assert (profile.version, profile.report) == ("Version 2025.3.1.0 (build 36398880)", b"NVR")
    assert profile.table == TABLE
    first, second = profile.kernels
    assert (first.name, second.name) == ("long_row_kernel", "second")
    assert (first.percent(MEMORY), first.percent(OCCUPANCY), first.text(DURATION)) == (80.15, 46.93, "238.21 µs")
    assert first.bound == "memory"
    assert (second.percent(MEMORY), second.bound) == (None, "")
    assert [metric.breakdown for metric in first.metrics if metric.name.startswith("Stall")] == [
        "Warp State (All Cycles)"
    ]


@pytest.mark.parametrize(
    ("memory", "arithmetic", "bound"),
    [
        ("91", "30", "memory"),
        ("56.1", "77.4", "arithmetic"),
        ("41", "59.9", "latency"),
        ("nan", "30", ""),
        ("n/a", "3", ""),
    ],
)
def test_a_kernel_is_bound_by_its_busier_unit(memory: str, arithmetic: str, bound: str) -> None:
    table = (
        HEAD + line(SPEED, "Memory Throughput", "%", memory) + line(SPEED, "Compute (SM) Throughput", "%", arithmetic)
    )
    assert read(measured(table)).kernels[0].bound == bound


def test_an_audit_has_a_line_with_the_longest_kernels_first(monkeypatch: pytest.MonkeyPatch) -> None:
    case, table = SimpleNamespace(name="large"), TABLE + line("Launch", REGISTERS, "register/thread", "40")
    monkeypatch.setattr(nsight, "visible_cases", lambda *_, tests: [case])
    monkeypatch.setattr(nsight, "watcher", lambda: None)
    monkeypatch.setattr(nsight, "watch", lambda *_, **__: measured(table))
    given: Any = (None, None)
    report = nsight.audit(*given, provider=Any, device="cuda")
    used = "memory 80 % of its peak, arithmetic 30 % of its peak, 40 register/thread"
    assert report == ToolReport("clean", f"large: 2 kernels: second 2,048.00 µs; long_row_kernel 238.21 µs, {used}")
    for fails in (measured(""), Watched(0, "", {"tool output": b"nothing was launched"})):
        monkeypatch.setattr(nsight, "watch", lambda *_, fails=fails, **__: fails)
        assert nsight.audit(*given, provider=Any, device="cuda").state == "failed"
    late = measured(table)
    late.fault = "it crashed"
    monkeypatch.setattr(nsight, "watch", lambda *_, **__: late)
    assert nsight.audit(*given, provider=Any, device="cuda") == ToolReport("failed", "it crashed")


def test_forbidden_counters_get_a_remedy() -> None:
    printed = (
        b"==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters\n"
    )
    with pytest.raises(NothingMeasured, match="NVreg_RestrictProfilingToAdminUsers=0"):
        read(Watched(1, "", {"tool output": printed, "tool report": b"NVR"}))


def test_without_a_report_the_fault_comes_first() -> None:
    with pytest.raises(NothingMeasured, match=r"^gave no answer within 3 s; .*No kernels were profiled"):
        read(Watched(0, "gave no answer within 3 s", {"tool output": b"==WARNING== \n== No kernels were profiled.\n"}))


@pytest.mark.parametrize(
    "table",
    [
        b"",
        b'"ID"\n"0"\n',
        HEAD.encode() + b'"0","\n',
        HEAD.encode() + b'"0"\n' * 60_000,
        HEAD.encode() + "".join(line(SPEED, "x", "%", "1", launch=k) for k in range(5_000)).encode(),
        b'"' + b"x" * 200_000 + b'"\n"1"\n',
        HEAD.encode() + line("\x1b[31m", "<script>", "%", "1" * 5_000).encode(),
    ],
)
def test_a_forged_table_is_bounded_and_printable(table: bytes) -> None:
    profile = read(Watched(1, "", {"tool output": b"", "tool report": b"", "tool table": table}))
    assert len(profile.kernels) <= 64
    for kernel in profile.kernels:
        for metric in kernel.metrics:
            assert all(part.isprintable() and len(part) <= 200 for part in vars(metric).values())


CLEAN = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"
NO_RACE = CLEAN.replace("ERROR SUMMARY: 0 errors", "RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)")
MEMCHECK = """\
========= COMPUTE-SANITIZER
========= Invalid __global__ read of size 4 bytes
=========     at twice(const float *, float *, int)+0x70 in submission.cu:5
=========     by thread (17,0,0) in block (3,0,0)
=========     Access at 0x7f0000000fc4 is out of bounds
=========
========= ERROR SUMMARY: 1 error
"""
RACECHECK = """\
========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at total(float *)+0x90 in submission.cu:9
=========     and Read access at total(float *)+0xd0 in submission.cu:10 [8 hazards]
=========
========= RACECHECK SUMMARY: 2 hazards displayed (2 errors, 0 warnings)
"""
NOT_CUDA = """\
========= COMPUTE-SANITIZER
========= Error: process didn't terminate successfully
========= Target application terminated before first instrumented API call
"""


@pytest.mark.parametrize(
    ("printed", "state", "text"),
    [
        (CLEAN, "clean", "no errors"),
        (NO_RACE, "clean", "no errors"),
        (
            MEMCHECK,
            "found",
            "1 error, the first: Invalid __global__ read of size 4 bytes "
            "at twice(const float *, float *, int)+0x70 in submission.cu:5",
        ),
        (RACECHECK, "found", "2 hazards"),
        (RACECHECK, "found", "Write access at total(float *)+0x90 in submission.cu:9 and Read access"),
        (NOT_CUDA, "failed", "terminated before first instrumented API call"),
        ("", "failed", "it printed nothing"),
        ("nvidia\n", "failed", "nvidia"),
    ],
)
def test_what_a_tool_printed_is_one_report(printed: str, state: str, text: str) -> None:
    report = sanitized(printed)
    assert report.state == state
    assert text in report.text
    assert report.text.isprintable()


# ---- kernelmark audit


def test_a_sandbox_that_fails_or_a_mistake_of_ours_is_that_tools_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    says = {
        "first": SandboxError("the container did not start", "run `kernelmark doctor`"),
        "second": ZeroDivisionError("a mistake of ours"),
        "third": ToolReport("clean", "3 of 3 tests: no errors"),
    }

    audit = Mock(side_effect=says.values())
    monkeypatch.setattr(audits, "lock_alone", lambda device, wait: nullcontext())
    found = [audits._report(audit, "0123456789abcdef", name) for name in says]
    assert [report.state for report in found] == ["failed", "failed", "clean"]
    assert found[0].text.startswith("the container did not start")
    assert "ZeroDivisionError" in found[1].text


def test_the_first_of_both_tables_are_audited_and_a_file_in_both_once(monkeypatch: pytest.MonkeyPatch) -> None:
    isolated = accepted(author="ada", source="hers")
    others = [accepted(author="ada", source="hers", sandbox="process")]
    others.append(accepted(author="bob", source="his", score_ns=60_000, sandbox="process"))
    now = Current(problems={"softmax": sha256("softmax 1")}, protocol=1)
    tables = rank(chained(isolated, *others), now)
    monkeypatch.setattr(audits, "current", lambda settings: now)
    monkeypatch.setattr(audits, "tables", lambda settings, problem: tables)
    monkeypatch.setattr(DEVICES["cuda"], "facts", lambda: DeviceFacts("NVIDIA H200"))
    assert list(first(Settings(), 2, None)) == [isolated.run, others[1].run]
