"""How long a grading usually takes, by the record. `grading.recorder` asks it. Trusted."""

from __future__ import annotations

from statistics import median

from harness.errors import LedgerError
from harness.kinds import DeviceKind
from harness.verdict import Outcome
from kernelmark.project.choice import device_name
from kernelmark.project.settings import Settings
from kernelmark.record.records import ledger

_NEWEST, _LOOKED_AT = 5, 200  # how many gradings it takes the median of, and among how many it looks for them


def usual_s(settings: Settings, slug: str, device: DeviceKind, language: str) -> float | None:
    """How long a grading takes, in seconds: the median of the newest few that were accepted, of this problem, language
    and effort, on this machine's device, or else on the one of its kind that graded last: never of several models.
    None if there are none, or the ledger cannot be read.
    """
    try:
        recorded, effort = ledger(settings, slug), settings.effort
        with recorded.lines() as lines:
            newest = lines.newest(_LOOKED_AT, outcome=Outcome.ACCEPTED, language=language, effort=effort)
    except LedgerError:
        return None
    alike = [verdict for verdict in newest if verdict.environment.device_kind == device]
    names = [verdict.environment.device_name for verdict in alike]
    name = own if (own := device_name(device)) in names else next(iter(names), None)
    took = [verdict.duration_ns / 1e9 for verdict in alike if verdict.environment.device_name == name]
    return median(took[:_NEWEST]) if took else None
