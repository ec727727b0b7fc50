"""The page of a run of `benchmarks.peers`: every number is worked out here, from its JSON."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.peers.evaluators import EVALUATORS, SIZES
from benchmarks.peers.kernels import REPORTED

Row = dict[str, Any]
BELIEVED = 0.9  # of the honest kernel's time
NONE = "–"


def page(found: Row) -> str:
    """The whole page in Markdown: the template beside this, filled in."""
    peers = {name: found["peers"][name] for name in EVALUATORS if name in found["peers"]}
    running = {name: peer for name, peer in peers.items() if "failed" not in peer["alone"]}
    truth = {size: [run["add"]["us"][size] for run in found["reference"]] for size in SIZES}
    slower = median(run["slower"]["us"]["long"] / run["add"]["us"]["long"] for run in found["reference"])
    versions = found["versions"]

    def table(cells: Callable[[Row], list[str]]) -> str:
        return "\n".join(f"| {name} | " + " | ".join(cells(peer)) + " |" for name, peer in running.items())

    ran = [f"- **{name}** ({versions.get(name, 'this commit')}): {entry(name)}" for name in running]
    ran += [
        f"- **{name}** ({versions.get(name, '')}) did not run: `{peer['alone']['failed']}`"
        for name, peer in peers.items()
        if name not in running
    ]
    cheats = [["", *running], [":---", *[":---"] * len(running)]]
    cheats += [[f"`{cheat}`", *(mark(peer, cheat) for peer in running.values())] for cheat in REPORTED]
    cheats.append(["believed", *(counted(peer) for peer in running.values())])
    return (Path(__file__).parent / "page.md").read_text().format(
        **{key: found[key] for key in ("device_name", "driver", "torch")},
        date=found["dates"][-1][:10],
        sizes=" and ".join(f"{n:,} elements ({median(truth[size]):.2f} µs)" for size, n in SIZES.items()),
        calls=sum(run["add"]["calls"] for run in found["reference"]),
        references=len(found["reference"]),
        bars=" and ".join(f"{max(each) - min(each):.2f} µs ({100 * spread(each):.1f} %)" for each in truth.values()),
        times=table(lambda peer: times(peer, truth)),
        slower=f"{100 * (slower - 1):+.1f} %",
        pairs=table(pairs),
        cheats="\n".join("| " + " | ".join(row) + " |" for row in cheats),
        reported="\n".join(f"- `{cheat}`: {where}." for cheat, where in REPORTED.items()),
        ran="\n".join([*ran, *(f"- {each}" for each in versions.get("left_out", []))]),
    )  # fmt: skip


def entry(name: str) -> str:
    """How an evaluator is called: the first line of its function's docstring."""
    return (EVALUATORS[name].__doc__ or "").splitlines()[0]


def median(values: Iterable[float]) -> float:
    return statistics.median(values)


def spread(values: Sequence[float]) -> float:
    return (max(values) - min(values)) / median(values)


def runs(peer: Row) -> list[Row]:
    """What its processes told of the kernels, those left out that did not tell both sizes of each."""
    every = [run["told"] for run in [peer["alone"], *peer["processes"]]]
    return [run for run in every if "add" in run and all(row["us"].keys() == SIZES.keys() for row in run.values())]


def reported(peer: Row, size: str = "long") -> list[float]:
    """The times in µs that its processes reported of the honest kernel."""
    return [run["add"]["us"][size] for run in runs(peer)]


def times(peer: Row, truth: dict[str, list[float]]) -> list[str]:
    """A row of the table of times."""
    seconds = [f"{each['seconds']:.1f}" for each in peer["alone"]["told"].values()]
    seconds += [NONE] * (2 - len(seconds))
    several = {size: reported(peer, size) for size in SIZES}
    if not several["long"]:
        return [*seconds, *[NONE] * 4]
    right = {size: median(each) for size, each in truth.items()}
    biases = {size: median(each) - right[size] for size, each in several.items()}
    far = [f"{bias:+.2f} µs ({100 * bias / right[size]:+.1f} %)" for size, bias in biases.items()]
    return [*seconds, *far, f"{100 * spread(several['long']):.2f} %", str(len(several["long"]))]


def differ(one: Row, other: Row, size: str = "long") -> bool | None:
    """Whether an evaluator's own errors tell two times apart; None if it reports none."""
    errors = [row["error_us"].get(size) for row in (one, other)]
    if not all(errors):
        return None
    return bool(abs(one["us"][size] - other["us"][size]) > 1.96 * math.hypot(*errors))


def excluded(row: Row, size: str = "long") -> bool | None:
    """Whether the interval of the ratio to the honest kernel leaves out 1; None if there is no ratio."""
    low, high = row.get("ratio", {}).get(size, (None, None))
    return None if low is None else not low <= 1 <= high


def pairs(peer: Row) -> list[str]:
    """A row of the table of pairs: equal ones are of two processes, one after the other, unless there is a ratio."""
    several = runs(peer)
    both = [run for run in several if "slower" in run]
    if not both or len(several) < 2:
        return [NONE] * 4
    equal = [excluded(run["add"]) for run in several]
    slower = [excluded(run["slower"]) for run in both]
    if None in equal:
        equal = [differ(one["add"], other["add"]) for one, other in pairwise(several)]
        slower = [differ(run["add"], run["slower"]) for run in both]
    apart = [abs(one / other - 1) for one, other in pairwise(reported(peer))]
    larger = sum(run["slower"]["us"]["long"] > run["add"]["us"]["long"] for run in both)
    called = ["no error" if None in each else f"{sum(map(bool, each))} of {len(each)}" for each in (equal, slower)]
    return [*called, f"{100 * median(apart):.2f} %", f"{larger} of {len(both)}"]


def gain(peer: Row, cheat: str) -> float | None:
    """The least share of the honest time that a size of a cheat was reported to take; None if it was refused."""
    row = peer["cheats"].get(cheat)
    if row is None or not row["right"] or not row["us"] or not reported(peer):
        return None
    return min(float(us) / median(reported(peer, size)) for size, us in row["us"].items())


def believed(peer: Row, cheat: str) -> bool:
    share = gain(peer, cheat)
    return share is not None and (share < BELIEVED or cheat == "downcast")


def mark(peer: Row, cheat: str) -> str:
    if cheat not in peer["cheats"]:
        return "not run"
    return f"**{gain(peer, cheat):.0%}**" if believed(peer, cheat) else NONE


def counted(peer: Row) -> str:
    return f"{sum(believed(peer, cheat) for cheat in REPORTED)} of {len(peer['cheats'])}"
