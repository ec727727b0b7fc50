"""The environment for reinforcement learning in `environments/`: its tasks, its rewards, and what a model is told."""

from __future__ import annotations

import ast
import asyncio
import json
import os
import shutil
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

import kernelmark
from harness.verdict import CaseResult, Outcome
from tests import command
from tests.prepared_fleet import PreparedFleet
from tests.verdicts import REPLAYED, accepted, failed

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "environments/kernel_tasks"
BROKEN = kernelmark.HarnessError("the machine fails")
WRONG = failed(Outcome.WRONG_ANSWER)
PROJECT = kernelmark.Project(ROOT)

sys.path.insert(0, str(PACKAGE))
from kernel_tasks import dataset, grading  # noqa: E402 - it is not installed

sys.path.remove(str(PACKAGE))


def python(*line: str) -> str:
    """What Python prints with these arguments, with the package, in bubblewrap on the CPU."""
    path = f"{ROOT}{os.pathsep}{PACKAGE}"
    variables = {"KERNELMARK_SANDBOX": "bwrap", "KERNELMARK_DEVICE": "cpu", "PYTHONPATH": path}
    return command.python(ROOT, *line, **variables).stdout


def test_a_cancelled_grading_leaves_the_next_one_of_the_same_answer_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may end after that one has begun, which must still be shared, and still be ended with its last caller."""
    asked, answer = grading.Grading(ROOT), "```python\n1\n```"
    begun = 0

    async def main() -> None:
        may_end = asyncio.Event()

        async def graded(*_: str) -> None:
            nonlocal begun
            begun += 1
            try:
                await asyncio.Event().wait()
            finally:
                await may_end.wait()

        async def ask() -> asyncio.Task[Any]:
            task = asyncio.create_task(asked.grade("square", answer))
            for _ in range(10):
                await asyncio.sleep(0)
            return task

        async def cancelled(*tasks: asyncio.Task[Any]) -> list[type]:
            for task in tasks:
                task.cancel()
            return [type(ended) for ended in await asyncio.gather(*tasks, return_exceptions=True)]

        monkeypatch.setattr(asked, "_graded", graded)
        await cancelled(await ask())
        second = await ask()
        may_end.set()
        third = await ask()
        assert begun == 2, "the third caller waits for what the second began"
        assert await cancelled(second, third) == [asyncio.CancelledError] * 2

    asyncio.run(main())


@pytest.mark.full
@pytest.mark.bwrap
def test_answers_earn_by_how_right_they_are_and_their_author_is_told() -> None:
    script = """
import asyncio, json
from kernel_tasks.grading import Grading
bodies = "y.copy_(x * x)", "y[:4096] = x[:4096] ** 2", "y.copy_(x + x)", "#" * (1 << 21), "y.copy_("
answers = [*(f"```python\\ndef square(x, y):\\n    {body}\\n```" for body in bodies), "I would multiply."]
async def main():
    grading = Grading()
    await grading.open()
    try:
        graded = await asyncio.gather(*(grading.grade("square", answer) for answer in answers))
    finally:
        await grading.close()
    print(json.dumps([(each.reward, each.said) for each in graded]))
asyncio.run(main())
"""
    right, partly, wrong, long, cut, none = json.loads(python("-c", script))
    assert right[0] >= 1 > partly[0] > wrong[0] == long[0] == cut[0] == none[0] == 0
    assert "µs a call. It is right. Make it faster" in right[1]
    assert "elements wrong" in partly[1]
    assert "is larger than 1,048,576 bytes" in long[1]
    assert "SyntaxError" in cut[1]
    assert none[1] == grading.NO_BLOCK


def test_the_package_is_built_as_it_is_installed(tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "copy")
    build = f"import os; os.chdir({str(tmp_path / 'copy')!r}); from setuptools import build_meta as b"
    wheel = python("-c", f"{build}; print(b.build_wheel({str(tmp_path)!r}))").splitlines()[-1]
    own = {f"kernel_tasks/{file.name}" for file in (PACKAGE / "kernel_tasks").glob("*.py")}
    files = zipfile.ZipFile(tmp_path / wheel).namelist()
    assert own == {file for file in files if file.startswith("kernel_tasks/")}
    assert any(file.endswith("entry_points.txt") for file in files), "the command kernel-tasks"


def test_it_uses_public_names_only() -> None:
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [node.module] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not [name for name in names if name and name.split(".")[0] in ("harness", "leaderboard")], file
            assert not [name for name in names if name and name.startswith("kernelmark.")], file
            of_kernelmark = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
            if of_kernelmark and node.value.id == "kernelmark":
                assert node.attr in kernelmark.__all__, file


def test_no_problem_is_both_for_training_and_held_out() -> None:
    train, held_out, every = (dataset.problems(PROJECT, split) for split in ("train", "held_out", "all"))
    assert set(held_out) == dataset.HELD_OUT, "each of them is there"
    assert sorted([*train, *held_out]) == every == PROJECT.problems()


def test_the_command_prints_a_row_for_each_task() -> None:
    read = [json.loads(line) for line in python("-m", "kernel_tasks.dataset", "--split", "held_out").splitlines()]
    assert [row["info"]["problem"] for row in read] == dataset.problems(PROJECT, "held_out")
    assert {row["info"]["split"] for row in read} == {"held_out"}
    assert read == list(dataset.rows(PROJECT, "held_out"))
    [message] = read[0]["prompt"]
    assert message == {"role": "user", "content": dataset.prompt(PROJECT.problem("layernorm"))}
    assert read[0]["info"]["problem_sha256"] == PROJECT.problem("layernorm").sha256


@pytest.mark.parametrize("problem", PROJECT.problems())
def test_a_prompt_says_what_to_write_and_what_is_right(problem: str) -> None:
    loaded = PROJECT.problem(problem)
    said = dataset.prompt(loaded, "cu")
    assert said.startswith(f"# {problem}")
    assert f"Write `{loaded.entry}` as a CUDA file" in said
    assert grading.source_in(said) == (loaded.directory / "reference.py").read_text()


@pytest.mark.parametrize(
    ("answer", "source"),
    [
        ("Here:\n```python\nx = 1\n```\nIt is fast.", "x = 1\n"),
        ("```\nx = 1\n```", "x = 1\n"),
        ("```cpp\nint x;\n```  \n", "int x;\n"),
        ("<think>\n```python\nfirst\n```\n</think>\n```python\nlast\n```", "last\n"),
        ("```python\nlast\n```\n```python\ncut off", "last\n"),
        ("```python\nx = '```'\n# ``` x\n```", "x = '```'\n# ``` x\n"),
        ("```python\n```", ""),
        ("```python\ncut off", None),
        ("use `y = x`, or ```y```", None),
        ("", None),
    ],
)
def test_the_source_is_the_last_block_that_ends(answer: str, source: str | None) -> None:
    assert grading.source_in(answer) == source


def test_a_model_is_told_what_the_compiler_and_the_checker_say_and_nothing_of_hidden_tests() -> None:
    tests = (
        CaseResult(name="one row", outcome=Outcome.WRONG_ANSWER, message="2 of 8 elements wrong"),
        CaseResult(name="secret", hidden=True, outcome=Outcome.WRONG_ANSWER, message="it is wrong"),
        CaseResult(name="two rows", outcome=Outcome.ACCEPTED),
    )
    log = {"log": f"first{'x' * grading.MOST_SAID}error: expected ;\n", "traceback": "line 3: IndexError"}
    said = told(WRONG.model_copy(update={"tests": tests, "message": "test one row: no", **log}))
    assert said.startswith("wrong_answer: test one row: no (1 of 3 tests right)\n- test one row: 2 of 8 elements")
    assert "secret" not in said
    assert "error: expected ;\n```\n```\nline 3: IndexError\n```\nCorrect it" in said
    assert "first" not in said
    fast = told(accepted(modes=REPLAYED, speedups={"eager": 2.0}, score_ns=1500))
    assert fast == f"accepted, 2 [1.99, 2.01] × eager. It takes 1.5 µs a call. {grading.FASTER}"


def told(verdict: kernelmark.Verdict) -> str:
    return grading.told(verdict, kernelmark.reward_parts(verdict))


class Fleet(PreparedFleet):
    def __init__(self, prepared: dict[str, list[kernelmark.Verdict | kernelmark.KernelmarkError]]) -> None:
        super().__init__(prepared)
        self.cancelled = list[object]()
        self.going = asyncio.Event()
        self.going.set()

    async def agrade(self, job: kernelmark.Job, **how: Any) -> kernelmark.JobResult:
        assert how == {"effort": "screen", "baselines": ["eager"], "reuse": "run"}
        try:
            await self.going.wait()
        except asyncio.CancelledError:
            self.cancelled.append(job.submission)
            raise
        return self.result(job)


@pytest.fixture(autouse=True)
def _does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grading, "WAIT_S", 0.0)


def made(fleet: Fleet) -> grading.Grading:
    prepared = grading.Grading(ROOT)
    prepared._fleet = fleet  # type: ignore[assignment]
    return prepared


def rewards(fleet: Fleet, *answers: str) -> list[float | BaseException]:
    async def all_at_a_time() -> list[grading.Graded | BaseException]:
        prepared = made(fleet)
        return await asyncio.gather(*(prepared.grade("square", answer) for answer in answers), return_exceptions=True)

    graded = asyncio.run(all_at_a_time())
    return [each.reward if isinstance(each, grading.Graded) else each for each in graded]


def test_an_answer_is_graded_once_for_all_that_wait_for_it() -> None:
    fleet = Fleet({"a\n": [WRONG], "b\n": [kernelmark.SubmissionError("source", "is not text")]})
    worth = kernelmark.reward(WRONG)
    assert rewards(fleet, "```\na\n```", "```\nb\n```", "none", "so:\n```\na\n```") == [worth, 0, 0, worth]
    assert fleet.graded == ["a\n", "b\n"]
    rewards(fleet, "```\na\n```")
    assert fleet.graded == ["a\n", "b\n", "a\n"], "the fleet may have a later one's verdict"


def test_the_machines_failure_is_tried_again_and_never_rewarded() -> None:
    usage = kernelmark.UsageError("problem square", "has no case for cpu")
    fleet = Fleet({"flaky\n": [BROKEN, BROKEN, WRONG], "fails\n": [BROKEN], "all\n": [usage]})
    blocks = (f"```\n{source}\n```" for source in ("flaky", "fails", "all"))
    assert rewards(fleet, *blocks) == [kernelmark.reward(WRONG), BROKEN, usage]
    assert sorted(map(str, fleet.graded)) == ["all\n", *["fails\n"] * 3, *["flaky\n"] * 3]


def test_a_rollout_that_is_cancelled_leaves_the_others_their_grading_and_the_last_ends_it() -> None:
    async def main() -> Fleet:
        fleet = Fleet({"a\n": [WRONG]})
        prepared = made(fleet)
        fleet.going.clear()
        three = [asyncio.create_task(prepared.grade("square", "```\na\n```")) for _ in range(3)]
        await asyncio.sleep(0)
        three[0].cancel()
        await asyncio.sleep(0.01)
        assert (three[0].cancelled(), fleet.cancelled) == (True, [])
        fleet.going.set()
        assert [(await each).reward for each in three[1:]] == [kernelmark.reward(WRONG)] * 2
        fleet.going.clear()
        two = [asyncio.create_task(prepared.grade("square", "```\nb\n```")) for _ in range(2)]
        await asyncio.sleep(0)
        for each in two:
            each.cancel()
        await asyncio.sleep(0.01)
        return fleet

    fleet = asyncio.run(main())
    assert (fleet.graded, fleet.cancelled) == (["a\n"], ["b\n"])
