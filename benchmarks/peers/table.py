"""The page of a run of `benchmarks.peers`: every number is worked out here, from its JSON."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.peers.evaluators import EVALUATORS, LEAVES, SIZES, STATES
from benchmarks.peers.kernels import REPORTED

Row = dict[str, Any]
BELIEVED = 0.5  # of the honest kernel's time: a gain that no other load on the machine explains
PROCESSES = 10
NONE = "–"
SPREAD = "\n- **Spread** is (largest − smallest) / median of those times."
PAIRS = (
    "",
    "equal, called different",
    "1 % slower, called different",
    "equal ones differ by",
    "slower one's time is larger",
)


def page(found: Row) -> str:
    """The page in Markdown: the template beside this, filled in, without the sections that nothing was measured for."""
    peers = {name: found["peers"][name] for name in EVALUATORS if name in found["peers"]}
    running = {name: peer for name, peer in peers.items() if ran(peer)}
    truth = references(found)
    several = max(len(reported(peer)) for peer in running.values()) > 1
    dirty = [{name: row["us"]["dirty"]["long"] for name, row in run.items()} for run in found["reference"]]
    versions = found["versions"]
    heads = ["", "L2", "seconds, cold", "next", "bias, short", "bias, long", *["spread, long", "processes"] * several]
    said = [f"- **{name}** ({versions.get(name, 'this commit')}): {entry(name)}" for name in running]
    said += [
        f"- **{name}** ({versions[name]}) did not run: `{why(peers[name])}`." for name in peers if name not in running
    ]
    said += [f"- {each}" for each in [*versions.get("left_out", []), *found.get("notes", []), *left(found, running)]]
    cheats = [[f"`{cheat}`", *(mark(peer, cheat) for peer in running.values())] for cheat in REPORTED]
    cheats.append(["believed", *(counted(peer) for peer in running.values())])
    text = (Path(__file__).parent / "page.md").read_text().format(
        **{key: found[key] for key in ("device_name", "driver", "torch")},
        date=found["dates"][-1][:10],
        calls=sum(run["add"]["calls"] for run in found["reference"]),
        references=len(found["reference"]),
        truth=table(["L2", *(f"{size}: {n:,} elements" for size, n in SIZES.items())], stated(truth)),
        times=table(heads, [[name, *times(name, peer, truth, several)] for name, peer in running.items()]),
        spread=SPREAD if several else "",
        slower=f"{100 * (median(run['slower'] / run['add'] for run in dirty) - 1):+.1f} %",
        pairs=table(PAIRS, [[name, *row] for name, peer in running.items() if (row := pairs(peer))]),
        cheats=table(["", *running], cheats),
        reported="\n".join(f"- `{cheat}`: {where}." for cheat, where in REPORTED.items()),
        ran="\n".join(said),
    )  # fmt: skip
    sections = text.split("\n## ")
    return "\n## ".join(section for section in sections if "\n\nnothing was measured\n" not in section)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [list(row) for row in rows]
    if not lines:
        return "nothing was measured"
    ruled = [list(heads), [":---", *["---:"] * (len(heads) - 1)], *lines]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in ruled)


def ran(peer: Row) -> bool:
    """Whether an evaluator takes the honest kernel; if it does not, what it refuses says nothing."""
    return "failed" not in peer["alone"] and all(row["right"] for row in peer["alone"]["told"].values())


def why(peer: Row) -> str:
    """What an evaluator said that does not run."""
    return str(peer["alone"].get("failed") or [row["said"] for row in peer["alone"]["told"].values()])


def left(found: Row, running: Row) -> list[str]:
    """What is still to be measured, in a sentence."""
    missing = [name for name in EVALUATORS if name not in found["peers"]]
    cheats = sum(len(REPORTED) - len(peer["cheats"]) for peer in running.values())
    processes = sum(PROCESSES - len(peer["processes"]) for peer in running.values())
    counts = [f"{cheats} cheats", f"{processes} of the new processes (ten an evaluator), which spreads and pairs need"]
    what = [*missing, *(count for count in counts if not count.startswith("0 "))]
    on = "`--pack FOLDER` goes on where this stopped, on the same card."
    return [f"Not run yet: {', '.join(what)}. {on}"] if what else []


def references(found: Row) -> dict[str, dict[str, list[float]]]:
    """CUPTI's medians by the state of L2 and the size, one for each process, of the states that were measured."""
    every = [run["add"]["us"] for run in found["reference"]]
    return {
        state: {size: [each[state][size] for each in every] for size in SIZES}
        for state in STATES
        if all(state in each for each in every)
    }


def stated(truth: dict[str, dict[str, list[float]]]) -> list[list[str]]:
    """The rows of the reference: medians, and how far the processes are apart."""
    return [
        [state, *(f"{median(size):.2f} ± {(max(size) - min(size)) / 2:.2f} µs" for size in sizes.values())]
        for state, sizes in truth.items()
    ]


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


def times(name: str, peer: Row, truth: dict[str, dict[str, list[float]]], several: bool) -> list[str]:
    """A row of the table of times: each bias is against CUPTI with L2 as the evaluator leaves it."""
    state = LEAVES.get(name, "dirty")
    seconds = [f"{each['seconds']:.1f}" for each in peer["alone"]["told"].values()]
    cells = [state, *seconds, *[NONE] * (2 - len(seconds))]
    for size in SIZES:
        right = truth.get(state, {}).get(size)
        if right is None or not reported(peer, size):
            cells.append(NONE)
            continue
        bias = median(reported(peer, size)) - median(right)
        cells.append(f"{bias:+.2f} µs ({100 * bias / median(right):+.1f} %)")
    if several:
        cells += [f"{100 * spread(reported(peer)):.2f} %", str(len(reported(peer)))]
    return cells


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
        return []
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
    share = gain(peer, cheat)
    return NONE if share is None else f"**{share:.0%}**" if believed(peer, cheat) else "no gain"


def counted(peer: Row) -> str:
    return f"{sum(believed(peer, cheat) for cheat in REPORTED)} of {len(peer['cheats'])}"
