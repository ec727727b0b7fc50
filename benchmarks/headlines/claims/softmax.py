"""The course's Triton softmax beside PyTorch's and the compiler's, over the width of rows."""

from benchmarks.headlines.bench import Bench, lecture, ours
from benchmarks.headlines.finding import Claim, Finding, judged

WIDTHS = {
    f"{(1 << 24) // cols} × {cols}": {"rows": (1 << 24) // cols, "cols": cols}
    for cols in (256, 1024, 4096, 16384, 65536)
}


def measure(bench: Bench) -> Finding:
    against = [ours("softmax", "eager.py"), ours("softmax", "compiled.py")]
    rows = bench.race("softmax", lecture("softmax_row.py"), against, WIDTHS)
    return judged(rows, "softmax_row × eager", at_least=1.0)


CLAIM = Claim(
    "softmax",
    "A course's chapter on Triton",
    "A softmax with one program a row, which reads and writes memory once, is faster than PyTorch's.",
    measure,
)
