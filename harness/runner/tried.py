"""Records the candidates that torch.compile's autotuning tried, with their times, for profiles. Untrusted.

Inductor keeps only the fastest candidate. So two of its searches are hooked before the first call: the choice between
libraries and templates for a matrix product, and the choice of block sizes for generated kernels.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

_SEARCHES, _TRIED = 64, 400  # limits: searches, and candidates shown per search

_found: list[tuple[str, dict[str, float]]] = []


def listen() -> None:
    """From now on record the searches, if the submission uses torch.compile."""
    if "torch._dynamo" not in sys.modules:
        return
    from torch._inductor import select_algorithm
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner

    select_algorithm.add_feedback_saver(_note_choices)
    measure: Any = CachingAutotuner.benchmark_all_configs

    def measured(tuner: Any, *args: Any, **kwargs: Any) -> Any:
        timings = measure(tuner, *args, **kwargs)
        _note(str(tuner.fn.__name__), {str(launcher.config): float(ms) for launcher, ms in timings.items()})
        return timings

    CachingAutotuner.benchmark_all_configs = measured  # type: ignore[assignment, method-assign]


def reports() -> Iterator[tuple[str, str]]:
    """A file name and a text for each search, with the fastest candidates first."""
    for number, (name, times_ms) in enumerate(_found):
        tried = sorted(times_ms.items(), key=lambda candidate: candidate[1])[:_TRIED]
        lines = [f"{1000 * ms:10.2f} µs  {what}\n" for what, ms in tried]
        yield f"torch.compile {number} {name[:60]}.autotune.txt", "".join([f"{name}\n", *lines])


def _note_choices(timings: Mapping[Any, float], name: str, inputs: list[Any], *_: Any) -> None:
    sizes = ", ".join("×".join(map(str, node.get_size())) for node in inputs)
    _note(f"{name}({sizes})", {f"{choice.name}  {choice.description}": float(ms) for choice, ms in timings.items()})


def _note(name: str, times_ms: dict[str, float]) -> None:
    if len(times_ms) > 1 and len(_found) < _SEARCHES:
        _found.append((name, times_ms))
