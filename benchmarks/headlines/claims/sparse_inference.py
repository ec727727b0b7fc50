"""2:4 weights in inference, beside the dense product."""

from benchmarks.headlines.bench import Bench, Cases, ours
from benchmarks.headlines.finding import Claim, Finding, judged

CASES: Cases = {
    f"{m} × {n} × {k}": {"m": m, "n": n, "k": k, "dtype": "bfloat16"}
    for m, n, k in ((1, 14336, 4096), (16, 14336, 4096), (4096, 4096, 4096))
}


def measure(bench: Bench) -> Finding:
    slug = "matmul_sparse_24"
    against = bench.known(slug, "dense.py", "library.py", "triton.py")
    rows = bench.race(slug, ours(slug, "cuda.cu"), against, CASES)
    return judged(rows, "cuda × dense", at_least=1.1)


CLAIM = Claim(
    "sparse_inference",
    "GPU Mode, lecture 11",
    "Weights pruned 2:4 make products in inference faster than dense ones (counted from 10 % on).",
    measure,
)
