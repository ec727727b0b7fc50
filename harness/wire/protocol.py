"""The version of the protocol, and the limits that commands and replies share."""

from __future__ import annotations

from harness.wire.checks import integer, line, text

PROTOCOL = 5
NANOSECONDS = 1 << 53  # a hundred days; the largest integer that every JSON reader represents exactly
SHORT, LONG = line(500), text(8_000)
REASON = line(500, least=1)  # a verdict without a reason is refused
SIZE = integer(0, 1 << 50)
ARTEFACTS = (
    "trace 0", "trace 1", "trace 2", "trace 3", "operators", "shapes", "by stack", "autograd table", "cpu stacks",
    "device stacks", "modules", "code", "objects",
    "memory snapshot", "tool output", "tool report", "tool details", "tool table", "tool version",
)  # fmt: skip
"""The names of the documents of a profile, or of a tool that watched the runner."""
