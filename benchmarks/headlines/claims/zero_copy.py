"""Rows looked up in the host's memory by the kernel, or after a copy of the table."""

from benchmarks.headlines.bench import Bench, lecture, ours
from benchmarks.headlines.finding import Claim, Finding, judged


def measure(bench: Bench) -> Finding:
    against = [lecture("gather_copy_first.py"), ours("gather_rows_host", "eager.py")]
    rows = bench.race("gather_rows_host", ours("gather_rows_host", "triton.py"), against)
    return judged(rows, "triton × gather_copy_first", at_least=2.0)


CLAIM = Claim(
    "zero_copy",
    "GPU Mode, lecture 6",
    "A kernel that reads the host's pinned memory itself spares the copy, where it needs a part of the data.",
    measure,
)
