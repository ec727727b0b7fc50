"""A process in which one evaluator is asked about sources, in the order given.

    python -m benchmarks.peers.one EVALUATOR FOLDER SOURCE ...

It writes a line of JSON to FOLDER/told for each, with the time of day at which it was told. The evaluator `CUPTI` is
the reference: each kernel's own duration by torch.profiler, after L2 was filled with other data.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.peers import evaluators
from benchmarks.peers.evaluators import SIZES, Told
from benchmarks.peers.kernels import SOURCES

CALLS = 150


def cupti(sources: Mapping[str, str], folder: Path) -> Iterator[Told]:
    """The median of the durations of `CALLS` calls a size."""
    import statistics

    import torch

    from benchmarks.accuracy.profilers import profile_run

    flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    for name, source in sources.items():
        add = evaluators.function(source, folder / f"{name}.py")
        calls = {}
        for size, n in SIZES.items():
            a, b = (torch.randn(n, device="cuda") for _ in range(2))

            def run(times: int = CALLS) -> None:
                for _ in range(times):
                    flush.zero_()
                    add(a, b)  # noqa: B023 - called in this round

            run(10)
            calls[size] = profile_run(run, CALLS, before=1).busy_us
        yield {"us": {size: statistics.median(each) for size, each in calls.items()}, "calls": CALLS}


def main() -> None:
    name, folder, *wanted = sys.argv[1:]
    ask = {"CUPTI": cupti, **evaluators.EVALUATORS}[name]
    place = Path(folder)
    with (place / "told").open("w") as out:
        for row in ask({each: SOURCES[each] for each in wanted}, place):
            print(json.dumps(row | {"at": time.time()}), file=out, flush=True)


if __name__ == "__main__":
    main()
