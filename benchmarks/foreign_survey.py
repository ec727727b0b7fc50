"""Grades every problem of checkouts with its own reference, beside itself as the baseline.

`python -m benchmarks.foreign references` calls it.

Each problem is imported and graded by commands of their own, one after the other, so that a time limit can end any of
them, and the device's memory is that of one grading. A result is written as it comes, and the next call goes on.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.gradings import PeakMemory

Row = dict[str, Any]
_COMMAND = (sys.executable, "-c", "from kernelmark.commands.scripts import main; main()")
_ENDING_S = 30.0
_LEAST_S = 20.0  # in less nothing can be imported or graded


class Late(Exception):
    """The time of this call is over."""


def survey(
    wanted: Sequence[tuple[str, str, Path]],
    rows: dict[str, Row],
    left_out: dict[str, str],
    scratch: Path,
    *,
    effort: str,
    seconds: float,
    write: Callable[[], None],
) -> None:
    """Import and grade what has no result yet: (form, name, checkout); `write` is called after each.

    What is imported stays in `scratch`, and is not imported again.
    A problem that takes all the `seconds` of a call has that as its result.
    """
    deadline, fresh = time.monotonic() + seconds, True
    for form, name, checkout in wanted:
        if (label := f"{form} {name}") in rows or label in left_out:
            continue
        try:
            made = _one(form, name, checkout, scratch, effort, deadline)
        except Late:
            if not fresh:
                print(f"stopped after {seconds:g} s; the next call goes on with {label}", flush=True)
                return
            made = {"outcome": f"not done within {seconds:g} s"}
        fresh = False
        if isinstance(made, str):
            left_out[label] = made
        else:
            rows[label] = made
        print(f"{label}: {made if isinstance(made, str) else said(made)}", flush=True)
        write()


def _one(form: str, name: str, checkout: Path, scratch: Path, effort: str, deadline: float) -> Row | str:
    """The result of a problem, or why it was left out."""
    project = {"KERNELMARK_PROBLEMS": str(scratch / "problems"), "KERNELMARK_REFERENCE": str(scratch / "reference")}
    project["KERNELMARK_" + form.upper().replace("-", "_") + "_CHECKOUT"] = str(checkout)
    kept = scratch / f"{form}_{name.replace('/', '_')}.txt"
    if kept.exists():
        line = kept.read_text()
    else:
        status, out, err = _run(["import", form, str(checkout), name], project, deadline)
        line = next((each for each in out.splitlines() if each.startswith(("imported", "left out"))), "")
        if status or not line.startswith("imported"):
            return (line.partition(": ")[2] or err.strip()[-300:] or f"import ended with {status}")[:300]
        kept.write_text(line)
    folder = Path(line.partition(" as ")[2].split("  (")[0]).name
    kernel = scratch / "reference" / folder / "eager.py"
    if not kernel.exists():
        return line.partition("no baseline: ")[2].rstrip(")") or "it has no baseline"
    peak, started = _peak(), time.monotonic()
    words = ["bench", str(scratch / "problems" / folder), str(kernel), "--baseline", "eager", "--format", "json"]
    words += {"default": [], "quick": ["--quick"], "thorough": ["--thorough"]}[effort]
    try:
        status, out, err = _run(words, project, deadline)
    finally:
        most = peak.stop() if peak else None
    row = _row(out, err, status)
    return {
        **row,
        "seconds": round(time.monotonic() - started, 1),
        **({} if most is None else {"peak_device_bytes": most}),
    }


def _row(out: str, err: str, status: int) -> Row:
    try:
        verdict = json.loads(out)
    except ValueError:
        return {"outcome": "error", "message": (err.strip().splitlines() or [f"ended with {status}"])[-1][:300]}
    row = {key: verdict[key] for key in ("outcome", "timing", "effort", "message") if verdict.get(key)}
    row["doubts"] = sorted({each["code"] for each in verdict.get("doubts", ())})
    for each in verdict.get("speedups", ()):
        ratio = each["ratio"]
        row["speedup"] = [ratio[key] for key in ("median", "low", "high")]
        row["holds_one"] = ratio["low"] <= 1.0 <= ratio["high"]
    return row


def _peak() -> PeakMemory | None:
    """Of the device, where NVML tells."""
    try:
        return PeakMemory()
    except Exception:  # noqa: BLE001  # no pynvml, no driver or no GPU: the number is absent
        return None


def _run(words: Sequence[str], more: Mapping[str, str], deadline: float) -> tuple[int, str, str]:
    """Run a command of kernelmark to its end.

    Raises:
        Late: the deadline passed; the command was interrupted, and has closed its sandboxes.
    """
    left_s = deadline - time.monotonic() - _ENDING_S
    if left_s < _LEAST_S:
        raise Late
    path = os.pathsep.join(filter(None, (str(Path(__file__).resolve().parent.parent), os.environ.get("PYTHONPATH"))))
    process = subprocess.Popen(
        [*_COMMAND, *words],
        env={**os.environ, **more, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=min(left_s, 1e6))
    except BaseException as error:
        process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=_ENDING_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        if isinstance(error, subprocess.TimeoutExpired):
            raise Late from None
        raise
    return process.returncode, out, err


def said(row: Row) -> str:
    """A result in a line."""
    parts = [str(row["outcome"])]
    if "speedup" in row:
        median, low, high = row["speedup"]
        parts.append(f"{median:.3f} [{low:.3f}, {high:.3f}]{'' if row['holds_one'] else ' without 1.00'}")
    parts += [f"{row['seconds']} s"] if "seconds" in row else []
    parts += [f"{row['peak_device_bytes'] / 2**30:.1f} GiB"] if "peak_device_bytes" in row else []
    parts += [", ".join(row["doubts"])] if row.get("doubts") else []
    return "; ".join([*parts, *([str(row["message"])[:150]] if row.get("message") else [])])


def table(rows: Mapping[str, Row], left_out: Mapping[str, str]) -> Iterator[str]:
    """What became of each set or level, then every problem that was not accepted, or whose interval lacks 1.00."""
    yield f"{'set':<28} problems  imported  accepted  holds 1.00"
    for group in dict.fromkeys(map(_group, sorted([*rows, *left_out]))):
        own = [row for label, row in rows.items() if _group(label) == group]
        out = sum(_group(label) == group for label in left_out)
        right = sum(row["outcome"] == "accepted" for row in own)
        holds = sum(row.get("holds_one", False) for row in own)
        yield f"{group:<28} {len(own) + out:>8}  {len(own):>8}  {right:>8}  {holds:>10}"
    for label, row in sorted(rows.items()):
        if not row.get("holds_one"):
            yield f"{label}: {said(row)}"
    for label, why in sorted(left_out.items()):
        yield f"{label}: left out: {why}"


def _group(label: str) -> str:
    return label.rpartition("/")[0]


def share(names: Iterable[Any], text: str) -> list[Any]:
    """Every Nth from the Kth, of `K/N`."""
    part, of = (int(each) for each in text.split("/"))
    if not 1 <= part <= of:
        raise ValueError(f"{text} is no share: give K/N, from 1/N to N/N")
    return [*names][part - 1 :: of]
