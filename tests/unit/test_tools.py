"""What the tools print, read: forms of compute-sanitizer 2025 and of Nsight Compute's raw table."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.audit.tools import METRICS, ToolReport, profiled, sanitized

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


def table(*rows: tuple[str, ...]) -> str:
    """The raw page as CSV: its header, its units, its rows, and what ncu says around it."""
    lines = [("ID", "Kernel Name", *METRICS), ("", "", "ns", "byte", "byte", "%", "%", "register/thread"), *rows]
    body = "\n".join(",".join(f'"{cell}"' for cell in line) for line in lines)
    return f"==PROF== Connected to process 12\n==PROF== Disconnected from process 12\n{body}\n"


NO_COUNTERS = (
    "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters\n"
)
KERNEL = ("0", "k\x1b[2J", "58", "1", "1", "1", "3", "4")


@pytest.mark.parametrize(
    ("read", "printed", "state", "text"),
    [
        (sanitized, CLEAN, "clean", "no errors"),
        (sanitized, NO_RACE, "clean", "no errors"),
        (
            sanitized,
            MEMCHECK,
            "found",
            "1 error, the first: Invalid __global__ read of size 4 bytes "
            "at twice(const float *, float *, int)+0x70 in submission.cu:5",
        ),
        (sanitized, RACECHECK, "found", "2 hazards"),
        (sanitized, RACECHECK, "found", "Write access at total(float *)+0x90 in submission.cu:9 and Read access"),
        (sanitized, NOT_CUDA, "failed", "terminated before first instrumented API call"),
        (profiled, NOT_CUDA, "failed", ""),
        *((read, printed, "failed", "") for read in (sanitized, profiled) for printed in ("", "nvidia\n")),
        (profiled, NO_COUNTERS, "failed", "NVreg_RestrictProfilingToAdminUsers=0"),
        (profiled, table((*KERNEL[:5], "n/a", "3", "4")), "failed", "its table cannot be read"),
        (profiled, table(KERNEL), "clean", "k\\x1b[2J"),
    ],
)
def test_what_a_tool_printed_is_one_report(
    read: Callable[[str], ToolReport], printed: str, state: str, text: str
) -> None:
    report = read(printed)
    assert report.state == state
    assert text in report.text
    assert report.text.isprintable()


def test_kernels_are_listed_by_their_time_the_longest_first() -> None:
    rows = [
        ("0", "short(float *)", "2048", "1000000", "500000", "11.4", "3.2", "18"),
        ("1", "long(float *)", "58,304", "33554432", "33554432", "91.2", "30.0", "40"),
    ]
    found = profiled(table(*rows))
    assert found.state == "clean"
    assert found.text == (
        "2 kernels, 60.4 µs in all: long(float *) 58.3 µs, 67.1 MB, DRAM 91 % and SM 30 % of their peaks, 40 registers"
        "; short(float *) 2.0 µs, 1.5 MB, DRAM 11 % and SM 3 % of their peaks, 18 registers"
    )
