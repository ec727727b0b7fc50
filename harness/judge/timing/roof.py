"""The roofline of a case: its share is shown, and a time that beats it is rejected. Trusted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

from harness.device import DEVICES
from harness.judge.session import SubmissionFault
from harness.problem import ResolvedCase
from harness.verdict import DeviceKind, Outcome, Roofline
from harness.verdict.roofline import Calibration, Demand, choose, impossible, roofline


class Roof(NamedTuple):
    """A calibration that gives the share; only one of this same device may also reject a time."""

    calibration: Calibration
    binding: bool

    @classmethod
    def of(cls, calibrations: Sequence[Calibration], device: DeviceKind) -> Self | None:
        """The one for the judge's device, if there is any."""
        facts = DEVICES[device].facts()
        calibration = choose(calibrations, facts.device_name, facts.device_uuid_sha256)
        return cls(calibration, binding=calibration.is_of(facts.device_uuid_sha256)) if calibration else None

    def share(self, case: ResolvedCase, calls: int, time_ns: float) -> Roofline | None:
        """How much of the device's peak a call of `time_ns` reaches, in a batch of that many calls.

        None where it reads inputs in the host's memory, whose bandwidth no calibration measures.

        Raises:
            SubmissionFault: it is more than the device can do.
        """
        if any(tensor.memory == "host" for tensor in case.tensors):
            return None
        demand = demand_of(case)
        if self.binding and (why := impossible(self.calibration, demand, calls, time_ns)):
            raise SubmissionFault(Outcome.REJECTED, why)
        return roofline(self.calibration, demand, time_ns)


def demand_of(case: ResolvedCase) -> Demand:
    """The least that a call of the case must move and compute."""
    inputs = [tensor for tensor in case.tensors if tensor.role != "output"]
    dtype = (inputs or case.tensors)[0].dtype
    return Demand(nbytes=case.minimum_bytes or 0, flops=case.minimum_flops or 0, dtype=dtype)
