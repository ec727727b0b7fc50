"""`x * x`, `x ** 2` and `torch.square(x)`: their times, and what the profiler's table says of the last."""

import re
import tempfile
from pathlib import Path

from benchmarks.headlines.bench import KERNELS, Bench, lecture
from benchmarks.headlines.finding import Claim, Finding, Row, judged

SIZES = {"4 Mi": {"n": 1 << 22}, "32 Mi": {"n": 1 << 25}}
UNITS = {"us": 1.0, "ms": 1e3, "s": 1e6}


def measure(bench: Bench) -> Finding:
    rows = bench.race(
        "square", lecture("square_square.py"), [lecture("square_pow.py"), lecture("square_mul.py")], SIZES
    )
    with tempfile.TemporaryDirectory() as folder:
        bench.command("profile", "square", KERNELS / "square_square.py", "--torch", "--out", folder)
        [table] = Path(folder).glob("*operators.txt")
        times = operators(table.read_text())
    device = "CUDA" if bench.device == "cuda" else "CPU"
    for name, column in (("aten::pow", "Self CPU"), ("aten::square", f"{device} total")):
        whole = sum(
            time[f"Self {column.split()[-1]}" if "Self" in column else f"Self {device}"] for time in times.values()
        )
        rows.append(Row(f"{name}, {column}", "share", times[name][column] / whole, "of the whole"))
    return judged(rows, "share", at_least=0.5)


def operators(table: str) -> dict[str, dict[str, float]]:
    """The times in µs of each operator of torch.profiler's table, by column."""
    lines = [re.split(r"\s{2,}", line.strip()) for line in table.splitlines() if line.strip() and "---" not in line]
    head = next(line for line in lines if line[0] == "Name")
    found = {}
    for line in lines:
        if line[0].startswith("aten::") and len(line) == len(head):
            cells = {title: re.fullmatch(r"([\d.]+)(us|ms|s)", cell) for title, cell in zip(head, line, strict=True)}
            found[line[0]] = {title: float(m[1]) * UNITS[m[2]] for title, m in cells.items() if m}
    return found


CLAIM = Claim(
    "pow_square",
    "GPU Mode, lecture 1",
    "In the profiler's table of torch.square, aten::pow has most of the CPU's time, and aten::square of the GPU's.",
    measure,
)
