"""The name of a device as a part of a result's file name."""

import re


def device_slug(name: str) -> str:
    """`nvidia_h100_80gb_hbm3` for `NVIDIA H100 80GB HBM3`."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
