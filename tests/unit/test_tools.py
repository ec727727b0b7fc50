"""What compute-sanitizer 2025 prints, read."""

from __future__ import annotations

import pytest

from harness.profiling.sanitizer import sanitized

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
