"""Profiles a submission with torch.profiler in its sandbox, and reads what came back. Trusted.

Everything comes from the submission's own process, so it is bounded, made printable, and only displayed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import get_args

from harness.judge.correctness.graded_case import GradedCase
from harness.profiling.memory import Timeline, snapshot, timelines
from harness.profiling.stacks import Frame, StacksError, parse
from harness.profiling.watch import artefacts
from harness.sandbox import Provider
from harness.submission import Submission
from harness.wire import checks, commands
from harness.wire.checks import printable, strict_json

_MAX_TABLE = 400_000  # characters
_SETS = 4
EVERYTHING = commands.Profile(active=3, repeats=2, parts=get_args(commands.ProfilePart))
_TABLES = ("operators", "shapes", "by stack", "modules", "autograd table")
_STACKS = ("cpu stacks", "device stacks")


@dataclass
class TorchProfile:
    """What torch.profiler recorded during some calls on one case."""

    calls: int = 0
    """The number of calls in each trace and flame graph."""
    traces: list[bytes] = field(default_factory=list)
    """Chrome traces as ASCII JSON, one for each repeat."""
    tables: dict[str, str] = field(default_factory=dict)
    """Text tables by their name in `_TABLES`."""
    stacks: dict[str, Frame] = field(default_factory=dict)
    """Flame graphs by their name in `_STACKS`: own times in µs by call stack, with operators and kernels."""
    memory: list[Timeline] = field(default_factory=list)
    """The memory that PyTorch held during the first trace, without inputs and outputs, which PyTorch does not own."""
    memory_snapshot: bytes = b""
    """A pickle of plain values for PyTorch's memory viewer; it covers one call on a GPU."""
    unreadable: list[str] = field(default_factory=list)
    """One line for each document that arrived but could not be read."""


def torch_profile(
    submission: Submission,
    case: GradedCase,
    provider: Provider,
    settings: commands.Profile = EVERYTHING,
) -> TorchProfile:
    """Build the submission in its own sandbox, and profile calls on this case.

    Args:
        settings: which calls to profile, and what to record; the part "torch" includes the traces.

    Raises:
        SubmissionFault: it cannot be built or called, or its process broke the protocol.
        HarnessError: the sandbox or the device failed.
    """
    found = artefacts(submission, case, provider, settings, doing=f"profiling {case.name}", sets=_SETS)
    profile = TorchProfile(settings.active, unreadable=found.too_large)
    for name, content in found.documents.items():
        _read(profile, name, content)
    if "memory" not in settings.parts:
        profile.memory = []
    if "torch" not in settings.parts:
        profile.traces = []
    return profile


def _read(profile: TorchProfile, name: str, content: bytes) -> None:
    try:
        if name in _TABLES:
            profile.tables[name] = printable(content.decode("utf-8", "replace"))[:_MAX_TABLE]
        elif name in _STACKS:
            profile.stacks[name] = parse(content)
        elif name == "memory snapshot":
            profile.memory_snapshot = snapshot(content)
        elif name.startswith("trace "):
            document = strict_json(content)
            if not isinstance(document, Mapping) or not isinstance(document.get("traceEvents"), list):
                raise checks.WireError("not a Chrome trace")
            profile.traces.append(json.dumps(document, separators=(",", ":")).encode("ascii"))
            profile.memory = profile.memory or timelines(document["traceEvents"])
        else:
            raise checks.WireError("was not asked for")
    except (StacksError, checks.WireError) as error:
        profile.unreadable.append(f"{name}: {error}")
