"""Dynamic quantization with one scale for the tensor, a scale a token, and a scale a channel."""

from benchmarks.headlines.bench import Bench, ours
from benchmarks.headlines.finding import Claim, Finding, Row, judged, ratio

SHAPES = ((4096, 4096), (4096, 14336))


def measure(bench: Bench) -> Finding:
    cases = {
        f"{m} × {k}, {name}": {"m": m, "k": k, "granularity": granularity}
        for m, k in SHAPES
        for granularity, name in enumerate(("tensor", "token", "channel"))
    }
    rows = bench.race(
        "quantize_scales", ours("quantize_scales", "triton.py"), [ours("quantize_scales", "compiled.py")], cases
    )
    times = {row.case: row for row in rows if row.what == "triton"}
    compared: list[Row] = []
    for m, k in SHAPES if bench.device == "cuda" else ():
        for finer in ("token", "channel"):
            slow, fast = times[f"{m} × {k}, tensor"], times[f"{m} × {k}, {finer}"]
            compared.append(ratio(slow, fast, "finer × per tensor"))
    return judged([*rows, *compared], "finer × per tensor", at_least=0.95)


CLAIM = Claim(
    "per_token",
    "GPU Mode, lecture 7",
    "A scale for each token or channel takes no more effort than one for the tensor (5 % more at most).",
    measure,
)
