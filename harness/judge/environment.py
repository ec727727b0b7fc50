"""What the judge records of the machine: the device, its driver and limits, and the runner's own versions. Trusted.

The versions come from the runner's first two frames, sent before the submission was in its sandbox. Whether Triton's
interpreter ran it is its own word: it earns another table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.device import DEVICES
from harness.verdict import DeviceKind, Environment

if TYPE_CHECKING:
    from harness.judge.session import Session
    from harness.sandbox import Provider


def environment(session: Session, provider: Provider, device: DeviceKind) -> Environment:
    """Describe where a grading ran."""
    facts = DEVICES[device].facts()
    return Environment(
        device_kind=device,
        device_name=facts.device_name,
        device_uuid_sha256=facts.device_uuid_sha256,
        driver=facts.driver,
        cuda=facts.cuda,
        power_limit_mw=facts.power_limit_mw,
        sandbox=provider.name,
        image_digest=provider.image_digest(),
        interpreted=session.interpreted,
        python=session.hello.python,
        torch=session.ready.torch,
        triton=session.ready.triton or None,
    )
