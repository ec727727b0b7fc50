"""`kernelmark import` from end to end: small problems of our own, and references that misbehave, in sandboxes."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from harness import sandbox
from harness.sandbox import Provider
from harness.shared.foreign import ForeignForm
from harness.verdict import Outcome, SandboxName
from kernelmark.interop.importing import Importer, answer
from tests.command import kernelmark
from tests.grading import checked

FOREIGN = Path(__file__).parents[1] / "foreign"
IMPORTED = Path(__file__).parents[1] / "data/imported"
README = FOREIGN / "README.md"
TASK = """
files: [{"name": "reference.py", "source": "reference.py"}]
tests: [{"n": 4, "seed": 1}]
benchmarks: [{"n": 8}]
"""
GOOD = """
import torch
def ref_kernel(data): return data + 1
def generate_input(n, seed): return torch.zeros(n)
def check_implementation(data, output): return True, ""
"""


def importer(provider: Provider, into: Path, limit_s: float = 60.0) -> Importer:
    return Importer(provider, "cpu", into, into, limit_s=limit_s)


def provider(name: SandboxName) -> Provider:
    return sandbox.provider(name)


@pytest.mark.full
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.full]),
        pytest.param("bwrap", marks=pytest.mark.bwrap),
    ],
)
def test_problems_of_both_forms_are_imported(name: SandboxName, tmp_path: Path) -> None:
    """As the files in `tests/data/imported` say: an import wrote them, and a reader found them right.

    How large seeds may be is left out: the importer tries that for a limited time.
    """
    ours = importer(provider(name), tmp_path)
    outcomes = [*ours.all("gpu-mode", FOREIGN / "reference-kernels", (), 2)]
    outcomes += ours.all("kernelbench", FOREIGN / "KernelBench", ("1",), 2)
    assert [outcome.reason for outcome in outcomes] == [""] * 8
    texts = {file.parent.name: file.read_text() for file in tmp_path.glob("*/problem.toml")}
    written = {slug: re.sub(r"seed_bits = \d+\n", "", text) for slug, text in texts.items()}
    assert written == {file.stem: file.read_text() for file in IMPORTED.glob("*.toml")}


MODEL = (FOREIGN / "KernelBench" / "level1" / "2_Recurrent_Net_.py").read_text().replace("Model(", "ModelNew(")
INTO_ROOM = """def custom_kernel(data):
    x, output = data
    output[0] = x.sum()
    return output[0]
"""
EXPERTS = """import torch

def custom_kernel(data):
    x, weights, config, output = data
    output.copy_(x * weights["shared.0"])
    for i in range(config["experts"]):
        output += torch.relu(x @ weights[f"expert.{i}.0.weight"]) @ weights[f"expert.{i}.1.weight"]
    return output
"""


@pytest.mark.full
@pytest.mark.parametrize(
    ("form", "folder", "name", "right", "change"),
    [
        pytest.param("kernelbench", "KernelBench", "1/2", MODEL, ("+ 1", "+ 2"), id="a model"),
        pytest.param(
            "gpu-mode", "reference-kernels", "small/total", INTO_ROOM, ("()\n", "() + 1\n"), id="a sum in room"
        ),
        pytest.param("gpu-mode", "reference-kernels", "small/experts", EXPERTS, ('s"])', 's"] - 1)'), id="a list"),
    ],
)
def test_an_imported_problem_is_graded(
    form: ForeignForm, folder: str, name: str, right: str, change: tuple[str, str], tmp_path: Path
) -> None:
    [imported] = importer(provider("process"), tmp_path).all(form, FOREIGN / folder, (name,), 1)
    assert imported.problem is not None, imported.reason
    assert change[0] in right
    for code, outcome in ((right, Outcome.ACCEPTED), (right.replace(*change), Outcome.WRONG_ANSWER)):
        verdict = checked(imported.problem, code)
        assert verdict.outcome is outcome, verdict.message


@pytest.mark.full
@pytest.mark.bwrap
def test_debug_asks_the_foreign_reference(tmp_path: Path) -> None:
    (tmp_path / "kernelmark.toml").write_text("")
    arguments = ["import", "gpu-mode", str(FOREIGN / "reference-kernels"), "small/total", "--device", "cpu"]
    assert kernelmark(tmp_path, *arguments).returncode == 0
    (tmp_path / "sum.py").write_text(INTO_ROOM.replace("()\n", "() + 1\n"))
    debugged = kernelmark(tmp_path, "debug", "gpu_mode_small_total", "sum.py", "--device", "cpu")
    assert debugged.returncode == 1, debugged.stderr
    assert debugged.stdout.startswith("n=5 (n=5): wrong answer: the result is wrong\n")


def changed(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new)


HOSTILE = {
    "ends": (changed("return data + 1", "import os; os._exit(3)"), r"the process ended by itself \(exit status 3\)"),
    "exits": (changed("import torch", "import sys; sys.exit()"), "SystemExit"),
    "is killed": (changed("return data + 1", "import os; os.kill(os.getpid(), 9)"), "ended by SIGKILL"),
    "never ends": (changed("return data + 1", "\n while True: pass"), "it did not end within 8 s"),
    "does not end in C": (
        changed("return data + 1", "\n while True:\n  try: __import__('time').sleep(99)\n  except BaseException: pass"),
        "it did not end within 8 s",
    ),
    "reads files": (changed("import torch", f"import torch; open({str(README)!r})"), "FileNotFoundError"),
    "imports what is not there": (changed("import torch", "import torch, aiter_"), "it imports 'aiter_', which is not"),
    "does not parse": ("def", "is not Python"),
    "takes all memory": (changed("data + 1", "[bytearray(1 << 30) for _ in range(99)]"), "memory|MemoryError"),
    "lacks a function": (changed("def check_implementation", "def check"), r"defines no check_implementation\(\)"),
    "needs an argument": (changed("(n, seed)", "(n, rank, seed)"), "needs 'rank', which its cases do not give"),
    "takes no seed": (changed("(n, seed)", "(n)"), "takes no seed"),
    "takes no n": (changed("(n, seed): return torch.zeros(n)", "(seed): return torch.zeros(3)"), "give 'n', which"),
    "is random": (changed("torch.zeros(n)", "torch.zeros(n + seed)"), "depend on the seed"),
    "changes": (changed("torch.zeros(n)", "[torch.zeros(n)] * n"), "has another structure in other cases"),
    "holds an object": (changed("torch.zeros(n)", "(torch.zeros(n), torch.nn.Linear(1, 1))"), "a Linear, for which"),
    "is deep": (changed("torch.zeros(n)", "eval('[' * 40 + ']' * 40)"), "nested more than"),
    "is large": (changed("torch.zeros(n)", "[0] * 10**6"), "more than 5,000 values"),
    "raises": (changed("data + 1", "data @ torch.ones(3, 3)"), "RuntimeError: .* cannot be multiplied"),
    "answers itself": (
        changed(
            "import torch",
            "import torch, os\nfor fd in range(3, 20):\n try: os.write(fd, b'{\"cases\": [{}, {}]}')\n"
            " except OSError: pass\nos._exit(0)",
        ),
        "what came out of the sandbox is not an answer",
    ),
    "floods": (
        changed(
            "import torch",
            "import torch, os\nwhile True:\n for fd in range(3, 20):\n  try: os.write(fd, b' ' * 65536)\n"
            "  except OSError: pass",
        ),
        "more than 8 MiB",
    ),
    "prints": (changed("import torch", "import torch; print('x' * 10**7)"), ""),
}
BY_DEFAULT = {"ends", "reads files", "is random", "answers itself", "floods"}
# What the importer says of what it finds; a sandbox has no part in that.
SAID = {
    "imports what is not there", "does not parse", "lacks a function", "needs an argument", "takes no seed",
    "takes no n", "is random", "changes", "holds an object", "is deep", "is large", "raises",
}  # fmt: skip


def hostile(name: str) -> Any:
    sandbox, isolated = ("process", []) if name in SAID else ("bwrap", [pytest.mark.bwrap])
    marks = [*isolated, *([] if name in BY_DEFAULT else [pytest.mark.full])]
    return pytest.param(*HOSTILE[name], sandbox, id=name, marks=marks)


@pytest.mark.parametrize(("source", "why", "within"), [hostile(name) for name in HOSTILE])
def test_a_hostile_reference_ends_in_one_line(
    source: str, why: str, within: SandboxName, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    less = answer._LIMITS.model_copy(update={"memory_bytes": 4 << 30})  # which is filled sooner
    monkeypatch.setattr(answer, "_LIMITS", less)
    problem = tmp_path / "set" / "problem"
    problem.mkdir(parents=True)
    (problem / "task.yml").write_text(TASK)
    (problem / "reference.py").write_text(source)
    limit_s = 8.0 if " 8 s" in why else 120.0  # which 4 GiB may take to fill on a busy machine
    [imported] = importer(provider(within), tmp_path / "into", limit_s).all("gpu-mode", tmp_path, (), 1)
    assert "\n" not in imported.reason
    if why:
        assert imported.problem is None
        assert re.search(why, imported.reason), imported.reason
        assert not (tmp_path / "into").exists()
    else:
        assert imported.reason == ""


@pytest.mark.bwrap
def test_the_command_prints_a_line_a_problem_and_overwrites_nothing(tmp_path: Path) -> None:
    checkout = tmp_path / "theirs"
    shutil.copytree(FOREIGN / "KernelBench", checkout)
    (checkout / "level1" / "4_Missing.py").write_text("import not_installed_anywhere")
    arguments = ["import", "kernelbench", "theirs", "1/3", "1/4", "--sandbox", "bwrap", "--device", "cpu"]
    missing = "left out  kernelbench 1/4 Missing: it imports 'not_installed_anywhere', which is not installed here"
    first = "imported  kernelbench 1/3 Values  as problems/kernelbench_1_3_values  (1 input, 1 output)"

    ran = kernelmark(tmp_path, *arguments)
    assert ran.stdout.splitlines() == [first, missing, "1 imported, 1 left out"], ran.stderr
    assert ran.returncode == 0
    written = tmp_path / "problems" / "kernelbench_1_3_values"
    assert '"../../theirs/level1/3_Values.py"' in (written / "problem.toml").read_text()

    again = kernelmark(tmp_path, *arguments)
    exists = "left out  kernelbench 1/3 Values: kernelbench_1_3_values exists; --force writes it again"
    assert again.stdout.splitlines() == [exists, missing, "0 imported, 2 left out"]
    assert again.returncode == 2

    (checkout / "level1" / "3_Values.py").write_text((checkout / "level1" / "2_Recurrent_Net_.py").read_text())
    shown = kernelmark(tmp_path, "problems", "show", "kernelbench_1_3_values")
    assert "has changed since it was imported" in shown.stderr
    forced = kernelmark(tmp_path, *arguments, "--force")
    assert forced.stdout.splitlines()[0] == first.replace("1 input, 1 output", "2 inputs, 2 outputs")
    assert kernelmark(tmp_path, "problems", "show", "kernelbench_1_3_values").returncode == 0


def test_code_that_nobody_read_does_not_run_unisolated_by_default(tmp_path: Path) -> None:
    arguments = ["import", "kernelbench", str(FOREIGN / "KernelBench"), "1/1", "--into", str(tmp_path / "p")]
    named = kernelmark(tmp_path, *arguments, "--sandbox", "process", "--device", "cpu")
    warned, wrote = named.stderr.splitlines()
    assert warned == "kernelmark: warning: the code of these problems runs without isolation"
    assert "wrote `kernelbench_checkout` to kernelmark.toml" in wrote
    shown = kernelmark(tmp_path, "problems", "show", "p/kernelbench_1_1_double")
    assert shown.returncode == 0, shown.stderr
    assert named.returncode == 0
    without = kernelmark(tmp_path, *arguments, "--device", "cpu", PATH="/nowhere", DOCKER_HOST="unix:///nowhere")
    assert without.returncode == 7
    assert "neither docker nor bwrap can be used here" in without.stderr


def test_an_import_to_elsewhere_changes_no_settings_here(tmp_path: Path) -> None:
    for name in ("here", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "kernelmark.toml").write_text("")
    arguments = ["import", "kernelbench", str(FOREIGN / "KernelBench"), "1/1", "--sandbox", "process", "--into"]
    for into, written in (("../apart", ""), ("../other/problems", "../other/kernelmark.toml")):
        done = kernelmark(tmp_path / "here", *arguments, into)
        assert (done.returncode, f"wrote `kernelbench_checkout` to {written};" in done.stderr) == (0, bool(written))
        shown = kernelmark(tmp_path / "here", "problems", "show", f"{into}/kernelbench_1_1_double")
        assert shown.returncode == 0, shown.stderr
    assert (tmp_path / "here/kernelmark.toml").read_text() == ""
    assert not (tmp_path / "apart/kernelmark.toml").exists()
    assert "kernelbench_checkout" in (tmp_path / "other/kernelmark.toml").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gpu-mode", "nowhere"], "nowhere is not a folder; name the folder of a checkout"),
        (["gpu-mode", "."], "holds no such problem"),
        (["kernelbench", str(FOREIGN / "KernelBench"), "9/9"], "left out  kernelbench 9/9: no such problem"),
    ],
)
def test_a_wrong_path_or_name_is_said_at_once(tmp_path: Path, arguments: list[str], message: str) -> None:
    ran = kernelmark(tmp_path, "import", *arguments, "--sandbox", "process")
    assert message in ran.stdout + ran.stderr
    assert ran.returncode == 2


def test_a_wrong_name_stops_only_itself(tmp_path: Path) -> None:
    ran = kernelmark(
        tmp_path,
        "import",
        "kernelbench",
        str(FOREIGN / "KernelBench"),
        "9/9",
        "1/1",
        "--sandbox",
        "process",
        "--device",
        "cpu",
    )
    left_out, imported, total = ran.stdout.splitlines()
    assert left_out.startswith("left out  kernelbench 9/9: no such problem")
    assert imported.startswith("imported  kernelbench 1/1")
    assert (total, ran.returncode) == ("1 imported, 1 left out", 0)
