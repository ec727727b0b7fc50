"""Stores calibrations: one small JSON file per device, in the folder that the setting `devices` names.

The command line writes them; a grading reads them. Trusted.
"""

from __future__ import annotations

import re
from pathlib import Path

from pydantic import ValidationError

from harness.errors import HarnessError, UsageError
from harness.files import outside
from harness.verdict.roofline import Calibration
from kernelmark.project.settings import Settings
from leaderboard.record.durable import write_whole


def stored(settings: Settings) -> list[Calibration]:
    """Every calibration of the project.

    Raises:
        UsageError: a file in the folder is not a valid calibration.
    """
    calibrations = []
    for file in sorted(settings.locate("devices").glob("*.json")):
        try:
            calibrations.append(Calibration.model_validate_json(outside.read(file, outside.TEXT_BYTES, follow=True)))
        except (OSError, ValidationError) as error:
            why = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error.strerror
            raise UsageError(
                str(file), f"is not a valid calibration ({why})", "remove it and run `kernelmark calibrate`"
            ) from error
    return calibrations


def store(settings: Settings, calibration: Calibration) -> Path:
    """Write a calibration, replacing an older one of the same device; returns its path.

    Raises:
        HarnessError: it cannot be written.
    """
    name = re.sub(r"[^A-Za-z0-9]+", "-", calibration.device_name).strip("-").lower() or "device"
    which = (calibration.device_uuid_sha256 or "cpu")[:8]
    path = settings.locate("devices") / f"{name}-{which}.json"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, (calibration.model_dump_json(indent=1, exclude_none=True) + "\n").encode(), replace=True)
    except OSError as error:
        raise HarnessError(f"{path}: the calibration cannot be written ({error.strerror})") from error
    return path
