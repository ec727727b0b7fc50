"""Compares the time of a case with the device's peak rates, and rejects a time that is impossible. Trusted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

from harness.device import DEVICES
from harness.judge.session import SubmissionFault
from harness.problem import ResolvedCase
from harness.verdict import DeviceKind, Outcome, Roofline
from harness.verdict.roofline import Calibration, Demand, choose, impossible, roofline


class Roof(NamedTuple):
    """A calibration. It may reject times (`binding`) only if it was measured on this very device."""

    calibration: Calibration
    binding: bool

    @classmethod
    def of(cls, calibrations: Sequence[Calibration], device: DeviceKind) -> Self | None:
        """The calibration that fits the judge's device best, if there is any."""
        facts = DEVICES[device].facts()
        calibration = choose(calibrations, facts.device_name, facts.device_uuid_sha256)
        return cls(calibration, binding=calibration.is_of(facts.device_uuid_sha256)) if calibration else None

    def share(self, case: ResolvedCase, calls: int, time_ns: float) -> Roofline | None:
        """The share of the device's peak rates that a call of `time_ns` reaches, in a batch of `calls` calls.

        None if the call reads inputs in the host's memory, whose bandwidth no calibration measures.

        Raises:
            SubmissionFault: the time is shorter than the device allows.
        """
        if any(tensor.memory == "host" for tensor in case.tensors):
            return None
        demand = demand_of(case)
        if self.binding and (why := impossible(self.calibration, demand, calls, time_ns)):
            raise SubmissionFault(Outcome.REJECTED, why)
        return roofline(self.calibration, demand, time_ns)


def demand_of(case: ResolvedCase) -> Demand:
    """The least number of bytes that a call of the case must move, and of operations that it must compute."""
    inputs = [tensor for tensor in case.tensors if tensor.role != "output"]
    dtype = (inputs or case.tensors)[0].dtype
    return Demand(nbytes=case.minimum_bytes or 0, flops=case.minimum_flops or 0, dtype=dtype)
