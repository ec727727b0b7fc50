"""The suite of attacks and honest kernels as parameters of tests: each on each device and in each sandbox it names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from kernelmark.diagnostics.selftest import KnownSubmission


def trials(cases: Iterable[KnownSubmission]) -> list[Any]:
    """(case, device, sandbox); what needs a GPU, or is too much for `make test`, is marked so."""
    found = []
    for case in cases:
        for device in case.devices:
            for sandbox in case.sandboxes:
                always = case.often and device == "cpu" and sandbox == case.sandboxes[0]
                marks = [pytest.mark.gpu] if device == "cuda" else [getattr(pytest.mark, sandbox)]
                marks += [] if always else [pytest.mark.full]

                found.append(pytest.param(case, device, sandbox, marks=marks, id=f"{case.label}-{device}-{sandbox}"))
    return found
