"""Results in layouts that the problem allows: taken as they are, compared by index, in plain and in replayed calls."""

from __future__ import annotations

import mmap
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.judge.correctness.graded_case import GradedCase
from harness.judge.session import Session, SubmissionFault
from harness.judge.timing.replayed.benchmark import Player
from harness.judge.timing.replayed.fresh_inputs import FreshInputs
from harness.judge.timing.replayed.launcher import LauncherSession, scratch_for
from harness.problem import Problem
from harness.problem.reference import Reference
from harness.recording.file import pack
from harness.recording.schema import Returned
from harness.recording.windows import OUTPUTS, SCRATCH
from harness.verdict import Outcome
from kernelmark.text.problem import lines
from tests.grading import checked, graded, submission, written
from tests.integration.test_foreign import problem as foreign_problem
from tests.integration.test_replays import LOADED, TIMES, recorded, recording
from tests.recordings import BLOBS, CALL
from tests.runners import Act, Script, Scripted, answering, but

PROBLEM = """
title = "Twice a matrix, and three times an image"
entry = "scale"
parameters = ["rows", "cols"]
tensors = [
    { name = "x", role = "input", shape = ["rows", "cols"], dtype = "float32" },
    { name = "image", role = "input", shape = [2, 3, "rows", "cols"], dtype = "float16" },
    { name = "y", role = "output", shape = ["rows", "cols"], dtype = "float32", layouts = ["column_major"] },
    { name = "largest", role = "output", shape = ["rows"], dtype = "float32" },
    { name = "z", role = "output", shape = [2, 3, "rows", "cols"], dtype = "float16", layouts = LAYOUTS },
]
cost = { bytes = "8 * rows * cols", flops = "rows * cols" }
call = { style = "returns" }
tests = [
    { name = "square", params = { rows = 7, cols = 7 } },
    { name = "wide", params = { rows = 3, cols = 64 } },
    { name = "one row", params = { rows = 1, cols = 5 } },
]
benchmarks = [{ name = "large", params = { rows = 256, cols = 512 } }]
""".replace("LAYOUTS", '["channels_last", "column_major"]')
REFERENCE = "def reference(x, image):\n    return 2 * x, x.amax(1), 3 * image\n"
RETURNING = "import torch\ndef scale(x, image):\n    return {}, x.amax(1), {}\n"
TRANSPOSED = "(2 * x.t().contiguous()).t()"
CHANNELS_LAST = "(3 * image).contiguous(memory_format=torch.channels_last)"
ROWS = RETURNING.format("2 * x", "3 * image")


@pytest.fixture
def problem(tmp_path: Path) -> Problem:
    return written(tmp_path / "scale", PROBLEM, REFERENCE)


def test_a_view_is_accepted_and_timed_beside_a_baseline_that_is_row_major(problem: Problem) -> None:
    views = submission(RETURNING.format(TRANSPOSED, CHANNELS_LAST))
    for kernel, baseline in ((views, submission(ROWS)), (submission(ROWS), views)):
        verdict = graded(problem, kernel, baselines=[baseline])
        assert (verdict.outcome, verdict.message) == (Outcome.ACCEPTED, ""), verdict.traceback
        assert len(verdict.speedups) == 1


@pytest.mark.parametrize(
    ("y", "z", "outcome", "message"),
    [
        ("torch.cat([2 * x, x], 1)[:, :x.shape[1]]", "3 * image", "accepted", ""),
        ("2 * x", "(3 * image).permute(1, 0, 2, 3).contiguous().permute(1, 0, 2, 3)", "accepted", ""),
        ("(2 * x)[:1].expand(len(x), -1)", "3 * image", "wrong_answer", "test square: y: "),
        ("torch.as_strided(2 * x, x.shape, (1, 1))", "3 * image", "wrong_answer", "test square: y: "),
        ("torch.as_strided(2 * x, x.shape, (1, len(x)))", "3 * image", "wrong_answer", "test square: y: "),
        ("x.as_strided(x.shape, (1, len(x)))", "3 * image", "wrong_answer", "test square: y: "),
        ("2 * x.t().double().t()", "3 * image", "runtime_error", "returned float64, `y` is float32"),
    ],
    ids=["gaps", "an order that is not allowed", "expanded", "overlapping", "transposed values", "the input", "dtype"],
)  # fmt: skip
def test_another_result_is_copied_and_compared(problem: Problem, y: str, z: str, outcome: str, message: str) -> None:
    check = checked(problem, RETURNING.format(y, z))
    assert check.outcome == outcome
    assert message in check.message


def test_participants_are_told_what_they_may_return(problem: Problem) -> None:
    said = [text for text in map(str, lines(problem, width=200)) if text.strip().startswith("output")]
    assert [text.partition("float")[2] for text in said] == [
        "32, may be returned column_major",
        "32",
        "16, may be returned channels_last or column_major",
    ]


def test_a_layout_may_change_between_the_calls_of_a_case(problem: Problem) -> None:
    source = "calls = 0\n" + RETURNING.format(f"{TRANSPOSED} if calls % 2 else 2 * x", "3 * image")
    verdict = graded(problem, source.replace("    return", "    global calls\n    calls += 1\n    return"))
    assert (verdict.outcome, verdict.message) == (Outcome.ACCEPTED, "")


def test_cpp_writes_row_major_outputs(problem: Problem) -> None:
    source = """
#include <cstdint>
extern "C" void scale(const float* x, const _Float16* image, float* y, float* largest, _Float16* z,
                      int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; ++r) {
        largest[r] = x[r * cols];
        for (int64_t c = 0; c < cols; ++c) {
            float value = x[r * cols + c];
            y[r * cols + c] = 2 * value;
            largest[r] = value > largest[r] ? value : largest[r];
        }
    }
    for (int64_t i = 0; i < 6 * rows * cols; ++i) z[i] = 3 * image[i];
}
"""
    check = checked(problem, submission(source, "cpp"))
    assert (check.outcome, check.message) == (Outcome.ACCEPTED, "")


@pytest.mark.parametrize("layouts", ["", 'layouts = ["column_major"], '], ids=["none", "column_major"])
def test_a_foreign_reference_may_return_any_layout(tmp_path: Path, layouts: str) -> None:
    reference = tmp_path / "1_Turned.py"
    reference.write_text(
        "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n"
        "        return torch.cat([3 * x, x], 1)[:, : x.shape[1]]\n"
        "def get_inputs():\n    return [torch.rand(4, 5)]\ndef get_init_inputs():\n    return []\n"
    )
    toml = """
title = "Turned"
entry = "ModelNew"
parameters = ["cols"]
cost = { bytes = 1, flops = 0 }
tensors = [
    { name = "x", role = "input", shape = [4, "cols"], dtype = "float32" },
    { name = "y", role = "output", shape = [4, "cols"], LAYOUTSdtype = "float32" },
]
tests = [{ name = "its sizes", params = { cols = 5 } }]
benchmarks = [{ name = "timed", params = { cols = 5 } }]
call = { style = "module" }
""".replace("LAYOUTS", layouts)
    theirs = foreign_problem(tmp_path / "turned", toml, "kernelbench", reference)
    model = reference.read_text().replace("class Model(", "class ModelNew(")
    turned = model.replace("torch.cat([3 * x, x], 1)[:, : x.shape[1]]", "(3 * x.t().contiguous()).t()")
    for source in (turned, model):
        check = checked(theirs, source)
        assert (check.outcome, check.message) == (Outcome.ACCEPTED, "")


# ---- replayed calls, by a runner and a launcher that are scripted ----------------------------------------------------

MATRIX = """
title = "Twice a matrix"
entry = "twice"
parameters = ["n"]
tensors = [
    { name = "x", role = "input", shape = ["n", "n"], dtype = "float32" },
    { name = "y", role = "output", shape = ["n", "n"], dtype = "float32", layouts = ["column_major"] },
]
cost = { bytes = "8 * n * n", flops = "n * n" }
call = { style = "returns" }
tests = [{ name = "small", params = { n = 33 } }]
benchmarks = [{ name = "small too", params = { n = 33 } }]
"""


@pytest.fixture
def case(tmp_path: Path) -> GradedCase:
    problem = written(tmp_path / "twice", MATRIX, "def reference(x):\n    return 2 * x\n")
    return GradedCase(problem, Reference.load(problem), "cpu", problem.resolve(problem.tests[0]))


def said(*layouts: str) -> Act:
    """A runner whose result stays in scratch memory, and which says that it has these layouts."""
    call = answering("Called", returned="nothing", interpreted=False, layouts=list(layouts))
    nbytes = 4 * 33 * 33
    result = Returned(SCRATCH.start, OUTPUTS.start + 4096, nbytes)
    of = replace(CALL, scratch_bytes=nbytes, returned=(result,))
    return but(recording(pack(of, BLOBS), bytes(nbytes)), Call=call)


def launching(order: str) -> Act:
    """A launcher whose call makes the result in scratch memory, in this order of NumPy's."""
    held: list[mmap.mmap] = []

    def act(script: Script, token: int, body: dict[str, Any]) -> None:
        if body["kind"] == "Load":
            held.append(mmap.mmap(script.descriptors[1], 0))
            script.reply(token, "Loaded", **LOADED)
            return
        inputs, _ = script.arenas()
        with mmap.mmap(inputs, 0, prot=mmap.PROT_READ) as given:
            y = 2 * np.frombuffer(given[: 4 * 33 * 33], np.float32).reshape(33, 33)
        held[0][: y.nbytes] = y.tobytes(order=order)  # type: ignore[arg-type]
        script.reply(token, "Replayed", **TIMES)

    return but(act, Release=answering("Done"))


def replayed(case: GradedCase, calls: list[tuple[str, str]]) -> None:
    """Make a call of each of these (layout that is said, order of NumPy's) on the same inputs, and keep the first's."""
    with closing(FreshInputs(case)) as fresh:
        fresh.next()
        for number, (layout, order) in enumerate(calls):
            found = recorded(said(layout), case)
            session = Session.start(Scripted(launching(order)), "cpu", case.problem.limits, role="launcher")
            with session, scratch_for([found], "cpu") as scratch:
                player = Player(LauncherSession(session, "cpu"), found, case, scratch)
                player.play(fresh)
                if number == 0:
                    fresh.keep()
                fresh.again()
        fresh.check()


def test_a_replayed_result_is_compared_in_its_own_layout(case: GradedCase) -> None:
    replayed(case, [("column_major", "F"), ("row_major", "C")])
    replayed(case, [("row_major", "C"), ("column_major", "F")])


@pytest.mark.parametrize(("layout", "order"), [("column_major", "C"), ("row_major", "F")])
def test_a_replayed_result_in_another_layout_than_was_said_is_wrong(case: GradedCase, layout: str, order: str) -> None:
    with pytest.raises(SubmissionFault, match="call 1: y: ") as raised:
        replayed(case, [(layout, order)])
    assert raised.value.outcome is Outcome.WRONG_ANSWER


@pytest.mark.parametrize("layouts", [("channels_last",), ("column_major", "row_major")], ids=["another", "too many"])
def test_layouts_that_the_problem_does_not_allow_are_no_honest_runners(
    case: GradedCase, layouts: tuple[str, ...]
) -> None:
    with pytest.raises(SubmissionFault, match="layouts that the problem does not allow") as raised:
        recorded(said(*layouts), case)
    assert raised.value.outcome is Outcome.REJECTED
