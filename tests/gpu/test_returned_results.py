"""Results that a call returns: what a replayed call copies, and what it takes beside a call that fills its output.

Run by hand on a machine with a GPU: `pytest -s -m gpu tests/gpu/test_returned_results.py` prints what was measured.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

from harness import stats
from harness.arena import free_deferred
from harness.device import DEVICES
from harness.judge.correctness.graded_case import GradedCase
from harness.judge.session import BuildRequest, Session, SubmissionFault
from harness.judge.timing.replayed.benchmark import Player
from harness.judge.timing.replayed.fresh_inputs import FreshInputs
from harness.judge.timing.replayed.launcher import LauncherSession, RecordedCall, record, scratch_for
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
    {{ name = "y", role = "output", shape = ["n", "n"], dtype = "float32"{layouts} }},
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
    layouts: str = ""


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
    "a transposed view that is allowed": Returning(
        "def twice(x):\n    return 2 * x.t().contiguous().t(), x.amax(1)\n", 2, layouts=', layouts = ["column_major"]'
    ),
    "a transposed view in memory that is kept": Returning(
        "import torch\nkept = {}\ndef twice(x):\n"
        "    y = kept.setdefault(len(x), torch.empty_like(x))\n"
        "    return torch.mul(x.t(), 2, out=y).t(), x.amax(1)\n",
        1,
        layouts=', layouts = ["column_major"]',
    ),
    "half of a transposed view written": Returning(
        "import torch\ndef twice(x):\n    y = torch.empty_like(x)\n"
        "    torch.mul(x.t()[::2], 2, out=y[::2])\n    return y.t(), x.amax(1)\n",
        2,
        wrong="elements wrong",
        layouts=', layouts = ["column_major"]',
    ),
    "a view of more": Returning(
        "import torch\ndef twice(x):\n    return torch.cat([x, x[:1]])[:-1].mul_(2), x.amax(1)\n", 2
    ),
    "memory that is kept": Returning(
        "import torch\nkept = {}\ndef twice(x):\n"
        "    y = kept.setdefault(len(x), torch.empty_like(x))\n"
        "    return torch.mul(x, 2, out=y), x.amax(1)\n",
        1,
    ),
    "a scale that each call replaces": Returning(
        "import torch\nscales = {}\ndef twice(x):\n"
        "    scale = scales.setdefault(len(x), torch.full((1,), 2.0, device=x.device))\n"
        "    y, scales[len(x)] = x * scale, scale.clone()\n"
        "    return y, x.amax(1)\n",
        2,
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


def recorded_by(returning: Returning, provider: Provider, folder: Path) -> tuple[GradedCase, RecordedCall]:
    """The recording of a submission's call, and its case."""
    (folder / "twice").mkdir()
    (folder / "twice/problem.toml").write_text(PROBLEM.format(style=returning.style, layouts=returning.layouts))
    (folder / "twice/reference.py").write_text(REFERENCE)
    (folder / "twice/README.md").write_text("# Twice\n")
    problem = load(folder / "twice")
    case = GradedCase(problem, Reference.load(problem), "cuda", problem.resolve(problem.benchmarks[0]))
    submission = Submission.of(returning.source, "py", author="tester")
    with Session.start(provider, "cuda", problem.limits, modes=["records"]) as session:
        session.handshake()
        request = BuildRequest.of(problem, submission, [case.resolved], "cuda")
        session.build(request, problem.limits.build_s)
        return case, record(session, case)


@pytest.mark.parametrize("name", RETURNING)
def test_a_result_in_new_memory_is_not_copied(name: str, provider: Provider, tmp_path: Path) -> None:
    returning = RETURNING[name]
    case, recorded = recorded_by(returning, provider, tmp_path)
    recording = recorded.packed.recording
    kernels = sum(isinstance(node, Kernel) for node in recording.nodes)
    copies = sum(isinstance(node, Memcpy) for node in recording.nodes)
    fresh, fault = FreshInputs(case), ""
    try:
        with (
            Session.start(provider, "cuda", case.problem.limits, role="launcher") as session,
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


def test_what_a_call_needs_no_more_is_kept_by_neither_judge_nor_launcher(provider: Provider, tmp_path: Path) -> None:
    intermediate = Returning("def twice(x):\n    return (x + 1) * 2 - 2, x.amax(1)\n", 2)
    before = torch.cuda.memory_allocated()
    case, recorded = recorded_by(intermediate, provider, tmp_path)
    assert recorded.scratch is not None
    assert recorded.scratch.nbytes >= 2 * 4 * 8192 * 8192, "a result, and an intermediate one"
    assert torch.cuda.memory_allocated() - before < 1 << 20, "which is not kept"
    with (
        Session.start(provider, "cuda", case.problem.limits, role="launcher") as session,
        scratch_for([recorded], "cuda") as scratch,
    ):
        player = Player(LauncherSession(session, "cuda"), recorded, case, scratch)
        with closing(FreshInputs(case)) as fresh:
            player.warm_up(fresh)
        free_deferred("cuda")
        free = DEVICES["cuda"].free_bytes()
        player.unload()
        assert DEVICES["cuda"].free_bytes() - free >= 2 * 4 * 8192 * 8192, "the call's input and output"
