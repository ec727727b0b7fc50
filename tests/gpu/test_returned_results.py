"""Results that a call returns: what a replayed call copies, and what it takes beside a call that fills its output.

Run by hand on a machine with a GPU: `pytest -s -m gpu tests/gpu/test_returned_results.py` prints what was measured.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from harness import stats
from harness.judge.correctness.graded_case import GradedCase
from harness.judge.session import Handover, Session, SubmissionFault
from harness.judge.timing.replayed.benchmark import Player
from harness.judge.timing.replayed.fresh_inputs import FreshInputs
from harness.judge.timing.replayed.launcher import LauncherSession, record, scratch_for
from harness.problem import load
from harness.problem.reference import Reference
from harness.recording.schema import Kernel, Memcpy
from harness.sandbox import Provider
from harness.submission import Submission

pytestmark = pytest.mark.gpu

PROBLEM = """
title = "Twice a matrix, and what is largest in its rows"
entry = "twice"
parameters = ["n"]
tensors = [
    {{ name = "x", role = "input", shape = ["n", "n"], dtype = "float32" }},
    {{ name = "y", role = "output", shape = ["n", "n"], dtype = "float32" }},
    {{ name = "largest", role = "output", shape = ["n"], dtype = "float32" }},
]
cost = {{ bytes = "8 * n * n", flops = "2 * n * n" }}
call = {{ style = "{style}" }}
tests = [{{ name = "small", params = {{ n = 33 }} }}]
benchmarks = [{{ name = "large", params = {{ n = 8192 }} }}]
"""
REFERENCE = """
def reference(x):
    return 2 * x, x.amax(1)
"""
CALLS = 11


class Returning(NamedTuple):
    source: str
    stay: int
    """How many of its two results stay where they are."""
    style: str = "returns"
    wrong: str = ""


RETURNING = {
    "new memory": Returning("def twice(x):\n    return 2 * x, x.amax(1)\n", 2),
    "new memory by Triton": Returning(
        """
import torch
import triton
import triton.language as tl

@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)

def twice(x):
    y = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 4096),)](x, y, x.numel(), BLOCK=4096)
    return y, x.amax(1)
""",
        2,
    ),
    "compiled": Returning("import torch\n\n@torch.compile\ndef twice(x):\n    return 2 * x, x.amax(1)\n", 2),
    "a transposed view": Returning("def twice(x):\n    return 2 * x.t().contiguous().t(), x.amax(1)\n", 1),
    "a view of more": Returning(
        "import torch\ndef twice(x):\n    return torch.cat([x, x[:1]])[:-1].mul_(2), x.amax(1)\n", 2
    ),
    "memory that is kept": Returning(
        "import torch\nkept = {}\ndef twice(x):\n"
        "    y = kept.setdefault(len(x), torch.empty_like(x))\n"
        "    return torch.mul(x, 2, out=y), x.amax(1)\n",
        1,
    ),
    "filled outputs": Returning(
        "import torch\ndef twice(x, y, largest):\n    torch.mul(x, 2, out=y)\n    torch.amax(x, 1, out=largest)\n",
        0,
        style="writes",
    ),
    "half of it written": Returning(
        "import torch\ndef twice(x):\n    y = torch.empty_like(x)\n"
        "    torch.mul(x[::2], 2, out=y[::2])\n    return y, x.amax(1)\n",
        2,
        wrong="elements wrong",
    ),
    "memory that is kept, half of it written": Returning(
        "import torch\nkept = {}\ndef twice(x):\n"
        "    y = kept.setdefault(len(x), 2 * x)\n"
        "    y[::2] = 2 * x[::2]\n    return y, x.amax(1)\n",
        1,
        wrong="elements wrong",
    ),
}


@pytest.mark.parametrize("name", RETURNING)
def test_a_result_in_new_memory_is_not_copied(name: str, provider: Provider, tmp_path: Path) -> None:
    returning = RETURNING[name]
    (tmp_path / "twice").mkdir()
    (tmp_path / "twice/problem.toml").write_text(PROBLEM.format(style=returning.style))
    (tmp_path / "twice/reference.py").write_text(REFERENCE)
    (tmp_path / "twice/README.md").write_text("# Twice\n")
    problem = load(tmp_path / "twice")
    case = GradedCase(problem, Reference.load(problem), "cuda", problem.resolve(problem.benchmarks[0]))
    submission = Submission.of(returning.source, "py", author="tester")
    with Session.start(provider, "cuda", problem.limits, records=True) as session:
        session.handshake()
        handover = Handover.of(problem, submission, [case.resolved], "cuda")
        session.hand_over(handover, problem.limits.build_s)
        recorded = record(session, case)
    recording = recorded.packed.recording
    kernels = sum(isinstance(node, Kernel) for node in recording.nodes)
    copies = sum(isinstance(node, Memcpy) for node in recording.nodes)
    fresh, fault = FreshInputs(case), ""
    try:
        with (
            Session.start(provider, "cuda", problem.limits, role="launcher") as session,
            scratch_for([recorded], "cuda") as scratch,
        ):
            player = Player(LauncherSession(session, "cuda"), recorded, case, scratch)
            try:
                player.warm_up(fresh)
                for _ in range(CALLS):
                    fresh.next()
                    player.play(fresh)
                    fresh.keep()
                fresh.check()
            except SubmissionFault as raised:
                fault = str(raised)
    finally:
        fresh.close()
    text = fault or f"{stats.median([call.device_ns for call in player.made]) / 1e3:.1f} µs a call"
    print(f"{name}: {kernels} kernels, {copies} copies, {len(recording.returned)} results stay; {text}")
    assert len(recording.returned) == returning.stay
    assert returning.wrong in fault if returning.wrong else not fault, text
