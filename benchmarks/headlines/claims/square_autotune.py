"""The square in Triton before and after autotuning."""

from benchmarks.headlines.bench import Bench, lecture, ours
from benchmarks.headlines.finding import Claim, Finding, judged

SIZES = {"4 Mi": {"n": 1 << 22}, "128 Mi": {"n": 1 << 27}}


def measure(bench: Bench) -> Finding:
    against = [ours("square", "eager.py"), lecture("square_block.py")]
    rows = bench.race("square", lecture("square_autotuned.py"), against, SIZES)
    return judged(rows, "square_autotuned × eager", at_least=1.02)


CLAIM = Claim(
    "square_autotune",
    "GPU Mode, lecture 1",
    "The square in Triton becomes faster than PyTorch's once its block is autotuned (counted from 2 % on).",
    measure,
)
