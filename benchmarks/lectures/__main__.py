"""Runs what the lectures measure, use or ask for, row by row, and writes what each command printed.

    python -m benchmarks.lectures                       every row without an answer, at most ten minutes
    python -m benchmarks.lectures 6 7 12                these rows
    python -m benchmarks.lectures --again               also those that the result has an answer to

The rows are in `rows.toml`. The result is `benchmarks/results/lectures_DEVICE.json` with a page of the same name in
Markdown, saved after each row: a run that ends early goes on where it was. Settings (sandbox, image, binds) come from
kernelmark.toml or the environment. Claims are taken from the result of `benchmarks.headlines` for the same device.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel

from benchmarks.slug import device_slug
from harness.device import DEVICES

ROOT = Path(__file__).resolve().parent.parent.parent
RESULTS = ROOT / "benchmarks" / "results"
_COMMAND = "from kernelmark.commands.scripts import main; main()"
_SHOWN = 160
_LONGEST_S = 180.0
"""A command that takes longer is interrupted, and its row does not work."""
State = Literal["works", "does not work", "cannot be had here", "not tried"]


class Row(BaseModel, extra="forbid", frozen=True):
    """A thing that a lecture measures, uses or asks for, and how it is shown here: see rows.toml."""

    at: str
    asks: str
    run: tuple[str, ...] = ()
    status: int = 0
    input: str = ""
    shows: tuple[str, ...] = ()
    claim: str = ""
    cannot: str = ""

    @property
    def command(self) -> str:
        """What a reader types."""
        if self.claim:
            return f"python -m benchmarks.headlines {self.claim}"
        return "; ".join(f"kernelmark {words}" for words in self.run)


@dataclass(frozen=True)
class Seen:
    """How a row ended.

    `printed` has a line for each thing that it shows, or what is missing and the end of the output.
    """

    state: State
    printed: tuple[str, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True)
class Ended:
    """What the commands of a row printed, and the folder that they wrote to."""

    status: int
    output: str
    folder: Path
    seconds: float


def rows() -> list[Row]:
    listed = tomllib.loads((Path(__file__).parent / "rows.toml").read_text())["rows"]
    return [Row.model_validate(row) for row in listed]


class Runner:
    """Runs the commands of rows; the same commands once for all rows that have them."""

    def __init__(self, folder: Path, checkout: Path | None) -> None:
        self._folder, self._checkout = folder, checkout
        if checkout is not None:
            os.environ["KERNELMARK_GPU_MODE_CHECKOUT"] = str(checkout)  # else the import writes it to kernelmark.toml
        self.ended = cache(self._ended)

    def _ended(self, commands: tuple[str, ...], given: str) -> Ended:
        out = Path(tempfile.mkdtemp(dir=self._folder))
        places = {"OUT": out, "KERNELS": Path(__file__).parent / "kernels", "CHECKOUT": self._checkout}
        began, output, status = time.monotonic(), "", 0
        for command in commands:
            words = [re.sub(r"^(OUT|KERNELS|CHECKOUT)\b", lambda name: str(places[name[0]]), word)
                     for word in shlex.split(command)]  # fmt: skip
            child = subprocess.Popen(
                [sys.executable, "-c", _COMMAND, *words],
                cwd=ROOT, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path[1:]), "COLUMNS": "160"},
                text=True, errors="replace",
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
            try:
                printed, _ = child.communicate(given, timeout=_LONGEST_S)
            except subprocess.TimeoutExpired:
                child.send_signal(signal.SIGINT)  # so that it removes its sandboxes
                printed, _ = child.communicate()
            output, status = output + printed, child.returncode
        return Ended(status, output, out, time.monotonic() - began)

    def seen(self, row: Row, claims: dict[str, Any]) -> Seen:
        """What comes of a row."""
        if row.cannot:
            return Seen("cannot be had here", (row.cannot,))
        if row.claim:
            found = claims.get(row.claim, {"answer": "not measured"})
            if found["answer"] == "not measured":
                return Seen("not tried")
            return Seen("works", (f"{found['answer']}: {found['reason']}"[:_SHOWN],), found["seconds"])
        if self._checkout is None and any("CHECKOUT" in command for command in row.run):
            return Seen("not tried")
        ended = self.ended(row.run, row.input)
        printed = [_printed(ended, pattern) for pattern in row.shows]
        if ended.status != row.status or not all(printed):
            missing = [pattern for pattern, line in zip(row.shows, printed, strict=True) if not line]
            said = [line[:_SHOWN] for line in ended.output.strip().splitlines()[-3:]]
            return Seen("does not work", (f"status {ended.status}", *missing, *said), round(ended.seconds, 1))
        return Seen("works", tuple(printed), round(ended.seconds, 1))


def _printed(ended: Ended, pattern: str) -> str:
    """The first thing like the pattern that was printed or written, or nothing."""
    files, _, form = pattern.rpartition(" :: ")
    written = [path for path in sorted(ended.folder.glob(files)) if path.is_file()] if files else []
    for text in [path.read_text(errors="replace") for path in written] if files else [ended.output]:
        if found := re.search(form, text, re.MULTILINE):
            return " ".join(found[0].split())[:_SHOWN]
    return ""


def page(document: dict[str, Any]) -> str:
    """The result as Markdown."""
    found = document["rows"].values()
    counts = ", ".join(
        f"{sum(row['state'] == state for row in found)} {state}"
        for state in dict.fromkeys(row["state"] for row in found)
    )
    lines = [
        "# What the lectures measure, use or ask for",
        "",
        f"{document['device_name']}, torch {document['torch']}; `{document['command']}`: {counts}.",
        "",
        "| # | lecture | what | command | state | printed | s |",
        "|---:|---|---|---|---|---|---:|",
    ]
    for number, row in document["rows"].items():
        command = f"`{row['command']}`" if row["command"] else ""
        printed = "<br>".join(f"`{_cell(line)}`" for line in row["printed"])
        lines.append(
            f"| {number} | {row['at']} | {row['asks']} | {command} | {row['state']} | {printed} | {row['seconds']} |"
        )
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("`", "'")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("numbers", nargs="*", type=int, metavar="ROW")
    parser.add_argument("--seconds", type=float, default=570, help="no row begins later [default: 570]")
    parser.add_argument("--again", action="store_true", help="run what works already, too")
    parser.add_argument("--checkout", type=Path, help="a checkout of gpu-mode's reference-kernels")
    parser.add_argument("--out", type=Path, help="the result, a JSON file")
    given = parser.parse_args()
    import torch

    facts = DEVICES["cuda" if torch.cuda.is_available() else "cpu"].facts().known()
    slug = device_slug(str(facts["device_name"]))
    out = given.out or RESULTS / f"lectures_{slug}.json"
    document: dict[str, Any] = json.loads(out.read_text()) if out.exists() else {"rows": {}}
    headlines = RESULTS / f"headlines_{slug}.json"
    claims = json.loads(headlines.read_text())["claims"] if headlines.exists() else {}
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="lectures-") as folder:
        runner = Runner(Path(folder), given.checkout)
        for number, row in enumerate(rows(), 1):
            known = document["rows"].get(str(number), {"state": "not tried"})
            if given.numbers and number not in given.numbers:
                continue
            if known["state"] == "works" and not row.claim and not given.again:
                continue
            if time.monotonic() - began > given.seconds:
                break
            seen = runner.seen(row, claims)
            print(f"{number:2} {seen.state:18} {seen.seconds:6.1f} s  {row.asks}", flush=True)
            for line in seen.printed:
                print(f"     {line}", flush=True)
            document["rows"][str(number)] = {
                "at": row.at, "asks": row.asks, "command": row.command, **asdict(seen),
                "date": datetime.now(UTC).isoformat(timespec="seconds"),
            }  # fmt: skip
            document["rows"] = {key: document["rows"][key] for key in sorted(document["rows"], key=int)}
            document |= {"command": "python -m benchmarks.lectures", "torch": str(torch.__version__), **facts}
            out.write_text(json.dumps(document, indent=1) + "\n")
            out.with_suffix(".md").write_text(page(document))
    print(f"\nwrote {out}")
    states = [row["state"] for row in document["rows"].values()]
    return 0 if len(states) == len(rows()) and set(states) <= {"works", "cannot be had here"} else 1


if __name__ == "__main__":
    sys.exit(main())
