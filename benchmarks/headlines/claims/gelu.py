"""GELU in five ways."""

from benchmarks.headlines.bench import Bench, ours
from benchmarks.headlines.finding import Claim, Finding, judged

SIZES = {"4 Mi": {"n": 1 << 22}, "32 Mi": {"n": 1 << 25}, "256 Mi": {"n": 1 << 28}}


def measure(bench: Bench) -> Finding:
    manual, triton, compiled, cuda = (ours("gelu", f) for f in ("manual.py", "triton.py", "compiled.py", "cuda.cu"))
    rows = bench.race("gelu", ours("gelu", "eager.py"), [manual, triton, compiled, cuda], SIZES)
    return judged(rows, "eager × manual", at_least=5.0)


CLAIM = Claim(
    "gelu",
    "A course's chapter on fusion",
    "One fused kernel is many times as fast as a kernel for each operation, whether PyTorch has it, the compiler makes "
    "it, or one writes it in CUDA or Triton.",
    measure,
)
