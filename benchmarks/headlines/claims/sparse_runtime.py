"""Pruning 2:4 at run time, for training: what it costs beside the product that it is to make faster."""

from benchmarks.headlines.bench import Bench, Cases, ours
from benchmarks.headlines.finding import Claim, Finding, judged

CASES: Cases = {
    f"{rows} × {cols}": {"rows": rows, "cols": cols, "dtype": "bfloat16"}
    for rows, cols in ((4096, 4096), (14336, 4096))
}


def measure(bench: Bench) -> Finding:
    slug = "sparsify_24_transpose"
    rows = bench.race(slug, ours(slug, "triton.py"), bench.known(slug, "dense.py", "library.py", "compiled.py"), CASES)
    return judged(rows, "triton × dense", at_least=4.0)


CLAIM = Claim(
    "sparse_runtime",
    "GPU Mode, lecture 11",
    "Pruning W and its transpose at run time is cheap enough for training: a quarter of the time of one dense product "
    "with 4096 tokens, or less.",
    measure,
)
