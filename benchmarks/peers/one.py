"""A process in which one evaluator is asked about sources, in the order given.

    python -m benchmarks.peers.one EVALUATOR FOLDER SOURCE ...

It writes a line of JSON to FOLDER/told for each, with the time of day at which it was told. The evaluator `CUPTI` is
the reference: each kernel's own duration by torch.profiler, for each of the states in which L2 can be.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from benchmarks.peers import evaluators
from benchmarks.peers.evaluators import SIZES, STATES, Told
from benchmarks.peers.kernels import SOURCES

CALLS = 150


def cupti(sources: Mapping[str, str], folder: Path) -> Iterator[Told]:
    """The median of the durations of `CALLS` calls a size, for each state of L2."""
    import torch

    from benchmarks.accuracy.profilers import profile_run

    flush, total = torch.ones(64 << 20, device="cuda"), torch.empty((), device="cuda")

    def prepare(state: str) -> None:
        if state == "dirty":
            flush.fill_(1)
        elif state == "clean":
            torch.sum(flush, dim=0, out=total)

    for name, source in sources.items():
        add = evaluators.function(source, folder / f"{name}.py")
        us: dict[str, dict[str, float]] = {state: {} for state in STATES}
        for size, n in SIZES.items():
            a, b = (torch.randn(n, device="cuda") for _ in range(2))
            for state in STATES:

                def run() -> None:
                    for _ in range(CALLS):
                        prepare(state)  # noqa: B023 - called in this round
                        add(a, b)  # noqa: B023

                run()
                before = 0 if state == "own" else profile_run(partial(prepare, state), 1).events
                us[state][size] = statistics.median(profile_run(run, CALLS, before).busy_us)
        yield {"us": us, "calls": CALLS}


def main() -> None:
    name, folder, *wanted = sys.argv[1:]
    ask = {"CUPTI": cupti, **evaluators.EVALUATORS}[name]
    place = Path(folder)
    with (place / "told").open("w") as out:
        for row in ask({each: SOURCES[each] for each in wanted}, place):
            print(json.dumps(row | {"at": time.time()}), file=out, flush=True)


if __name__ == "__main__":
    main()
