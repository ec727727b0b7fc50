"""Weights in int8, activations in float16, one token: naively, and by a kernel, beside the unquantized product."""

from benchmarks.headlines.bench import Bench, ours
from benchmarks.headlines.finding import Claim, Finding, judged

CASES = {f"{n} × {k}": {"n": n, "k": k} for n, k in ((4096, 4096), (14336, 4096), (8192, 8192))}


def measure(bench: Bench) -> Finding:
    slug, dense = "gemv_int8", ours("gemv_int8", "dense.py")
    rows = bench.race(slug, ours(slug, "eager.py"), [dense], CASES)
    rows += bench.race(slug, ours(slug, "triton.py"), [dense, *bench.known(slug, "library.py", "compiled.py")], CASES)
    return judged(rows, "eager × dense", at_most=1.0)


CLAIM = Claim(
    "int8_weight_only",
    "GPU Mode, lecture 7",
    "A product with int8 weights that are made wide first is slower than one that was never quantized; a kernel "
    "that widens them in registers is faster.",
    measure,
)
