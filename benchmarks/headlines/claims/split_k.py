"""Split-K by atomic additions, beside the plain product of the same kernel, and of cuBLAS."""

from benchmarks.headlines.bench import Bench, ours
from benchmarks.headlines.finding import Claim, Finding, judged

CASES = {
    f"{dtype}, {m} × {n} × {k}": {"m": m, "n": n, "k": k, "dtype": dtype}
    for dtype in ("float16", "bfloat16")
    for m, n, k in ((16, 4096, 14336), (16, 14336, 4096), (1024, 1024, 1024))
}


def measure(bench: Bench) -> Finding:
    split = ours("matmul", "split_k.py")
    plain = split.changed("split_k_1", "SPLIT_K = 8", "SPLIT_K = 1")
    rows = bench.race("matmul", split, [plain, ours("matmul", "eager.py")], CASES)
    return judged(rows, "split_k × split_k_1", at_least=1.05)


CLAIM = Claim(
    "split_k",
    "GPU Mode, lecture 34",
    "Sharing the sum of a product out over more programs, which add by atomics, is faster (counted from 5 % on).",
    measure,
)
