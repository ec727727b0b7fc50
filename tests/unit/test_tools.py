"""What the tools print, read: forms of compute-sanitizer 2025 and of Nsight Compute's raw table."""

from __future__ import annotations

import pytest

from harness.audit.tools import METRICS, profiled, sanitized

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


@pytest.mark.parametrize(
    ("printed", "state", "says"),
    [
        (CLEAN, "clean", ""),
        (NO_RACE, "clean", ""),
        (
            MEMCHECK,
            "found",
            "1 error, the first: Invalid __global__ read of size 4 bytes "
            "at twice(const float *, float *, int)+0x70 in submission.cu:5",
        ),
        (RACECHECK, "found", "2 hazards"),
        (RACECHECK, "found", "Write access at total(float *)+0x90 in submission.cu:9 and Read access"),
        (NOT_CUDA, "failed", "terminated before first instrumented API call"),
        ("", "failed", ""),
        ("nvidia\n", "failed", ""),
    ],
)
def test_the_sanitizer_is_clean_only_by_its_summary_and_its_first_finding_is_shown(
    printed: str, state: str, says: str
) -> None:
    found = sanitized(printed)
    assert found.state == state
    assert says in found.text


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


@pytest.mark.parametrize("printed", [NOT_CUDA, "", "nvidia\n", table(("0", "k", "58", "1", "1", "n/a", "3", "4"))])
def test_without_a_whole_table_there_is_no_profile(printed: str) -> None:
    assert profiled(printed).state == "failed"


def test_counters_that_may_not_be_read_come_with_the_remedy() -> None:
    printed = "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters"
    assert "NVreg_RestrictProfilingToAdminUsers=0" in profiled(printed).text


def test_hostile_names_stay_text() -> None:
    printed = table(("0", "k\x1b[2J", "58", "1", "1", "1", "3", "4"))
    assert "\x1b" not in profiled(printed).text
