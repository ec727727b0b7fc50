"""What torch.compile's search tried, and how long each took, for whoever looks at a kernel. Untrusted.

Inductor keeps what was fastest and forgets the rest. So this listens, from before the first call: to the choice between
libraries and templates for a product, and to the block sizes of the kernels that it writes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

_SEARCHES, _TRIED = 64, 400  # kept, and lines of each

_found: list[tuple[str, dict[str, float]]] = []


def listen() -> None:
    """Note what is tried from now on, if the submission uses torch.compile."""
    if "torch._dynamo" not in sys.modules:
        return
    from torch._inductor import select_algorithm
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner

    select_algorithm.add_feedback_saver(_note_choices)
    measure: Any = CachingAutotuner.benchmark_all_configs

    def measured(tuner: Any, *args: Any, **kwargs: Any) -> Any:
        timings = measure(tuner, *args, **kwargs)
        _note(str(tuner.fn.__name__), {str(each.config): float(ms) for each, ms in timings.items()})
        return timings

    CachingAutotuner.benchmark_all_configs = measured  # type: ignore[assignment, method-assign]


def reports() -> Iterator[tuple[str, str]]:
    """A text for each search, by the name of a file: the fastest first."""
    for number, (name, times_ms) in enumerate(_found):
        tried = sorted(times_ms.items(), key=lambda each: each[1])[:_TRIED]
        lines = [f"{1000 * ms:10.2f} µs  {what}\n" for what, ms in tried]
        yield f"torch.compile {number} {name[:60]}.autotune.txt", "".join([f"{name}\n", *lines])


def _note_choices(timings: Mapping[Any, float], name: str, inputs: list[Any], *_: Any) -> None:
    sizes = ", ".join("×".join(map(str, node.get_size())) for node in inputs)
    _note(f"{name}({sizes})", {f"{choice.name}  {choice.description}": float(ms) for choice, ms in timings.items()})


def _note(name: str, times_ms: dict[str, float]) -> None:
    if len(times_ms) > 1 and len(_found) < _SEARCHES:
        _found.append((name, times_ms))
