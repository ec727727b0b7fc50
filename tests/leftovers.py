"""What gradings could leave behind on this machine: processes, containers, mounts and files."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path


def leftovers() -> dict[str, list[str]]:
    """Everything of ours that is there now; compare before and after."""
    return {"processes": _processes(), "containers": _containers(), "mounts": _mounts(), "files": _files()}


def _processes() -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it ended in this moment
        if any(f"harness/{role}/__main__.py" in line for role in ("runner", "launcher")):
            found.append(f"{path.parent.name}: {line}")
    return sorted(found)


def _containers() -> list[str]:
    if shutil.which("docker") is None:
        return []
    listing = subprocess.run(
        ["docker", "ps", "-aq", "--filter", "label=kernelmark=runner"], capture_output=True, text=True, check=False
    )
    return sorted(listing.stdout.split())


def _mounts() -> list[str]:
    return sorted(line for line in Path("/proc/self/mounts").read_text().splitlines() if "kernelmark" in line)


def _files() -> list[str]:
    # Lock files stay: judges of different users meet in them.
    found = Path(tempfile.gettempdir()).glob("kernelmark*")
    return sorted(path.name for path in found if path.suffix != ".lock")
