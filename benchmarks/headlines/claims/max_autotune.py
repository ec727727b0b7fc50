"""What torch.compile gains by searching."""

from dataclasses import replace

from benchmarks.headlines.bench import Bench, Cases, ours
from benchmarks.headlines.finding import Claim, Finding, Row, judged

PROBLEMS: dict[str, Cases] = {
    "matmul": {"bfloat16, 1024³": {"m": 1024, "n": 1024, "k": 1024, "dtype": "bfloat16"}},
    "softmax": {"4096 × 4096": {"rows": 4096, "cols": 4096}},
    "layernorm": {"8192 × 768": {"rows": 8192, "cols": 768, "dtype": "bfloat16"}},
}


def measure(bench: Bench) -> Finding:
    rows: list[Row] = []
    for slug, cases in PROBLEMS.items():
        found = bench.race(slug, ours(slug, "max_autotune.py"), [ours(slug, "compiled.py")], cases)
        rows += [replace(row, case=f"{slug}, {row.case}") for row in found]
    return judged(rows, "max_autotune × compiled", at_least=1.1)


CLAIM = Claim(
    "max_autotune",
    "A course's chapter on compilation",
    "torch.compile with max-autotune, which measures templates, is some 10 % faster than with its defaults.",
    measure,
)
