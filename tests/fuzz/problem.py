"""Fuzzes the problem loader: `python tests/fuzz/problem.py -runs=200000`, or `-max_total_time=60`.

The first byte chooses: an expression and its parameter, a whole `problem.toml`, or a valid one with a piece replaced.
Nothing but a `ProblemError` of one line may leave the loader, in bounded time, and what it accepts resolves to sizes
and scalars that fit the types of C.
"""

from __future__ import annotations

import sys
import tempfile
import tomllib
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

with atheris.instrument_imports(include=["harness", "tomllib"]):
    from harness.errors import ProblemError
    from harness.problem import load
    from harness.problem.dtypes import DTYPES
    from harness.problem.expression import FUNCTIONS, MAX_VALUE, ExpressionError, parse

from tests.fuzz.campaign import ROOT, run
from tests.unit.test_problem import GOOD

MEMORY = Path("/dev/shm")
VALID = [GOOD.encode(), *(path.read_bytes() for path in sorted(ROOT.glob("problems/*/problem.toml")))]


def problem(data: bytes) -> None:
    choice, rest = data[:1], data[1:]
    if choice == b"e":
        expression(rest)
    elif choice == b"t":
        document(rest)
    elif len(rest) > 4:
        source = VALID[choice[0] % len(VALID)]
        place, cut = int.from_bytes(rest[:2]) % (len(source) + 1), rest[2]
        document(source[:place] + rest[3:] + source[place + cut :])


def expression(data: bytes) -> None:
    """Eight bytes of a parameter's value, then the text."""
    parameters = {"m": int.from_bytes(data[:8], signed=True), "n": 7, "dtype": "bfloat16"}
    text = data[8:].decode("utf-8", "surrogateescape")
    try:
        parsed = parse(text)
        value = parsed.value(parameters)
    except ExpressionError as error:
        message = str(error)
        assert "\n" not in message
        return
    assert type(value) is int
    assert abs(value) <= MAX_VALUE
    assert parse(parsed.text).value(parameters) == value, "the text that it shows means the same"


def document(toml: bytes) -> None:
    (FOLDER / "problem.toml").write_bytes(toml)
    try:
        loaded = load(FOLDER)
    except ProblemError as error:
        message = str(error)
        assert "\n" not in message
        return
    tomllib.loads(toml.decode().replace("\r\n", "\n"))
    for case in loaded.tests + loaded.benchmarks:
        resolved = loaded.resolve(next(case.extremes()))
        assert resolved.tensors
        assert all(0 <= tensor.elements <= 2**40 for tensor in resolved.tensors)
        assert all(size >= 0 for tensor in resolved.tensors for size in tensor.shape)
        assert any(tensor.elements for tensor in resolved.tensors if tensor.role != "input")
        assert all(tensor.dtype in DTYPES for tensor in resolved.tensors)
        for scalar in resolved.scalars:
            assert type(scalar.value) is (int if scalar.dtype == "int64" else float)
            assert scalar.dtype == "float64" or -(2**63) <= scalar.value < 2**63
        assert 1 <= resolved.minimum_bytes <= MAX_VALUE
        assert 0 <= resolved.minimum_flops <= MAX_VALUE


EXPRESSIONS = (
    "m", "-m", "m // 2 + n", "min(m, n, 6)", "ceil_div(m, -1)", "sizeof(dtype)", "2 ** 62", "(-1) ** m", "m % n",
    "(m)(n)", "f'{m}'", "m if n else 2", "-" * 399 + "m", "(" * 199 + "m" + ")" * 199, "0x7fffffffffffffff",
    "1_0", "m\tn", "m#n",
)  # fmt: skip
NESTED = (b"a = " + b"[" * 4000, b"a = " + b"{a=" * 2000, b"a." * 1500 + b"a = 1", b"[" + b"a." * 1500 + b"a]")
LONG = (b"title = 0x" + b"f" * 5000, b"title = " + b"9" * 5000, b"m = 1979-05-27T07:32:00.9+23:59")


def seeds() -> list[bytes]:
    numbers = [n.to_bytes(8, signed=True) for n in (3, 0, -1, -(2**63), 2**63 - 1)]
    found = [b"e" + number + text.encode() for number in numbers for text in EXPRESSIONS]
    found += [b"t" + text for text in (*VALID, *NESTED, *LONG)]
    edits = (b'"', b"-9223372036854775808", b"nan", b"inf", b"[[tests]]\n", b'"\\U00110000"', b"1e308", b"{}", b"[]")
    return found + [bytes([n]) + (97 * n).to_bytes(2) + b"\x04" + edit for n in range(4) for edit in edits]


KEYS = (
    "title", "entry", "parameters", "tensors", "scalars", "cost", "tolerance", "limits", "tests", "benchmarks", "fill",
    "role", "shape", "count", "index", "params", "kind", "low", "high", "neg_inf", "mean", "scale", "deadline", "grace",
    "late", "days", "penalty_per_day", "draw", "multiple_of",
)  # fmt: skip
SYNTAX = (
    "-9223372036854775808", "9223372036854775807", "inf", "nan", "1e308", "0x", "**", "//", "[[", "]]", "= [", "= {",
    '"""', "'''", "\\ud800", "\\U0010ffff", "1979-05-27T07:32:00Z",
)  # fmt: skip
WORDS = (*KEYS, *SYNTAX, *DTYPES, *FUNCTIONS)

if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None, prefix="fuzz_") as scratch:
        FOLDER = Path(scratch) / "made"
        FOLDER.mkdir()
        (FOLDER / "reference.py").write_text("def reference(): ...\n")
        run("problem", problem, seeds(), WORDS)
