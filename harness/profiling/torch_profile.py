"""Profiles a submission with torch.profiler in its sandbox, and reads what came back. Trusted.

All that is read comes from the submission's own process: it is bounded, made printable, and only ever displayed.
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
    """What torch.profiler said of some calls of one case."""

    calls: int = 0
    """How many of them each trace and flame graph is of."""
    traces: list[bytes] = field(default_factory=list)
    """Chrome traces, as ASCII JSON; one a repeat."""
    tables: dict[str, str] = field(default_factory=dict)
    """By what they list: operators, shapes, stacks, modules, and the older profiler's."""
    stacks: dict[str, Frame] = field(default_factory=dict)
    """Own times in µs by call stack, operators and kernels included: on the CPU, and on the device."""
    memory: list[Timeline] = field(default_factory=list)
    """What PyTorch held over the time of the first trace, inputs and outputs left out: those are not PyTorch's."""
    memory_snapshot: bytes = b""
    """For torch's memory viewer, of one call on a GPU; a pickle that was made of plain values."""
    unreadable: list[str] = field(default_factory=list)
    """What came and could not be read, one line each."""


def torch_profile(
    submission: Submission,
    case: GradedCase,
    provider: Provider,
    asked: commands.Profile = EVERYTHING,
) -> TorchProfile:
    """Build the submission in a sandbox of its own, and profile calls of this case.

    Args:
        asked: which calls, and what of them; the traces come with the part "torch".

    Raises:
        SubmissionFault: it cannot be built or called, or its process broke the protocol.
        HarnessError: the sandbox or the device failed.
    """
    found = artefacts(submission, case, provider, asked, doing=f"profiling {case.name}", sets=_SETS)
    profile = TorchProfile(asked.active, unreadable=found.too_large)
    for name, content in found.documents.items():
        _read(profile, name, content)
    if "memory" not in asked.parts:
        profile.memory = []
    if "torch" not in asked.parts:
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
