"""Asks a Ray for its cluster's id, as `python -m kernelmark.grading.fleet.cluster.probe HOST:PORT`.

Prints `answered`, or `refused` if it wants another token than this process has, or any.
"""

from __future__ import annotations

import sys

from ray import _raylet
from ray.exceptions import AuthenticationError


def main() -> None:
    """Ask once."""
    try:
        _raylet.GcsClient(address=sys.argv[1])  # type: ignore[attr-defined]  # as `ray health-check` does
    except AuthenticationError:
        print("refused")
    else:
        print("answered")


if __name__ == "__main__":
    main()
