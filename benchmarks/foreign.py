"""Problems of gpu-mode and KernelBench, from checkouts: imported, graded, and timed beside their own evaluators.

    python -m benchmarks.foreign grade --gpu-mode ../reference-kernels --kernelbench ../KernelBench --out foreign.json
    python -m benchmarks.foreign time --gpu-mode ../reference-kernels --kernelbench ../KernelBench --out times.json

`grade` imports every problem of gpu-mode and a drawn sample of KernelBench, and grades each problem's own reference as
a submission to it. It checks gpu-mode's solutions that are called right and wrong, and asks their evaluator about the
same files. `time` grades ten submissions with nothing beside them, and lets the evaluators time them on the same card.
The evaluators run without a sandbox, as they do at home. Settings come from kernelmark.toml or the environment.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
import yaml

import kernelmark
from kernelmark.services.settings import Settings
from kernelmark.services.start import write

ROOT = Path(__file__).resolve().parent.parent
SETS = ("pmpp", "pmpp_v2")  # of gpu-mode: those that come with solutions
DRAWN = {1: 16, 2: 16, 3: 8}  # of KernelBench, by level
EVALUATOR_S = 300
TIMED_GPU_MODE = (
    ("vectoradd_py", "submission_triton.py"),
    ("grayscale_py", "ref.py"),
    ("histogram_py", "ref.py"),
    ("matmul_py", "ref.py"),
    ("prefixsum_py", "ref.py"),
    ("sort_py", "ref.py"),
)
TIMED_KERNELBENCH = ("1/40", "2/1")
COMPILED = "\n\nclass ModelNew(Model):\n    forward = torch.compile(Model.forward)\n"
EAGER = "\n\nModelNew = Model\n"
# Runs in a process of its own, with their `src` on its path: prints what their evaluator measures.
KERNELBENCH = """
import json, sys
from pathlib import Path
from kernelbench.eval import eval_kernel_against_ref
reference, custom = (Path(each).read_text() for each in sys.argv[1:3])
found = eval_kernel_against_ref(reference, custom, num_correct_trials=1, num_perf_trials=100, measure_performance=True,
                                backend="triton", check_for_excessive_speedup=False)
print(json.dumps({"correct": found.correctness, "us": found.runtime * 1e3, "reference_us": found.ref_runtime * 1e3}))
"""


def imported(form: str, checkout: Path, names: Iterable[str], into: Path, jobs: int) -> dict[str, str]:
    """Import problems with our command: what it says of each, by the name that the project gives it."""
    command = [sys.executable, "-c", "from kernelmark.commands.scripts import main; main()", "import", form]
    words = [*map(str, [checkout, *names]), "--device", "cuda", "--into", str(into), "--jobs", str(jobs)]
    done = subprocess.run([*command, *words], capture_output=True, text=True, env=_importing(ROOT), check=False)
    if done.returncode not in (0, 2):
        raise SystemExit(done.stdout + done.stderr)
    lines = re.findall(rf"^(?:imported|left out)\s+{form} .*$", done.stdout, re.MULTILINE)
    return {re.split(r"[\s:]+", line.split(form, 1)[1].strip())[0]: line for line in lines}


def _importing(folder: Path) -> dict[str, str]:
    """The environment of a process that imports from a folder, too."""
    return {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}


def folder_of(line: str) -> str | None:
    """The problem's folder in a line that says it was imported."""
    found = re.search(r" as (\S+)", line) if line.startswith("imported") else None
    return Path(found[1]).name if found else None


def drawn(checkout: Path, seed: int) -> list[str]:
    """Problems of KernelBench, `LEVEL/ID`, a number of each level."""
    dice, names = random.Random(seed), []
    for level, count in DRAWN.items():
        found = sorted(int(path.name.split("_")[0]) for path in (checkout / f"KernelBench/level{level}").glob("*.py"))
        names += [f"{level}/{number}" for number in sorted(dice.sample(found, count))]
    return names


def references(problems: Path, folders: Iterable[str], into: Path) -> Iterator[kernelmark.Job]:
    """Each problem's reference as a submission to it, as `kernelmark start` writes it."""
    settings = Settings.load().model_copy(update={"problems": problems})
    for folder in folders:
        try:
            file = write(settings, problems / folder, "torch", into / f"{folder}.py").path
        except kernelmark.UsageError as error:
            print(f"no submission for {folder}: {error}", flush=True)
            continue
        yield kernelmark.Job(problem=problems / folder, submission=file, key=folder)


def solutions(checkout: Path) -> Iterator[Path]:
    """The files that gpu-mode calls right and wrong."""
    for each in SETS:
        yield from sorted((checkout / "problems" / each).glob("*/solutions/*/*.py"))


def said(result: kernelmark.JobResult) -> str:
    """What became of a job, in a line."""
    verdict = result.verdict or result.check
    if verdict is None:
        return f"{type(result.error).__name__}: {result.error}"[:300]
    return f"{verdict.outcome}: {verdict.message}"[:300] if verdict.message else str(verdict.outcome)


def evaluated(file: Path, task: Path, mode: str) -> dict[str, str]:
    """What gpu-mode's evaluator logs of a submission: their files in a folder, their `eval.py` in a process."""
    described = yaml.safe_load((task / "task.yml").read_text())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for each in described["files"]:
            source = file if each["source"] == "@SUBMISSION@" else task / each["source"]
            (folder / each["name"]).write_bytes(source.read_bytes())
        cases = described["tests" if mode == "test" else "benchmarks"]
        lines = ["; ".join(f"{key}: {value}" for key, value in case.items()) for case in cases]
        (folder / "cases.txt").write_text("\n".join(lines))
        log = folder / "log"
        with log.open("w") as out:
            os.set_inheritable(out.fileno(), True)
            environment = {**os.environ, "POPCORN_FD": str(out.fileno())}
            try:
                done = subprocess.run(
                    [sys.executable, "eval.py", mode, "cases.txt"],
                    cwd=folder, env=environment, pass_fds=[out.fileno()], timeout=EVALUATOR_S,
                    capture_output=True, text=True, check=False,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                return {"check": f"ran out of {EVALUATOR_S} s"}
        logged = dict(line.split(": ", 1) for line in log.read_text().splitlines() if ": " in line)
        return logged if "check" in logged else {"check": f"ended with {done.returncode}: {done.stderr[-200:]}"}


def judged_at_home(file: Path) -> str:
    """What their evaluator says of a solution."""
    logged = evaluated(file, file.parents[2], "test")
    errors = [value for key, value in logged.items() if key.endswith(".error")]
    return " ".join([logged["check"], *errors[:1]])[:200]


def grade(arguments: argparse.Namespace, scratch: Path, found: dict[str, Any]) -> None:
    """Import, check the solutions, grade the references; `found` gets each result as it comes."""
    begun, problems, files = time.perf_counter(), scratch / "problems", scratch / "submissions"
    files.mkdir()
    wanted = drawn(arguments.kernelbench, arguments.seed)
    lines = imported("gpu-mode", arguments.gpu_mode, (), problems, arguments.jobs)
    lines |= imported("kernelbench", arguments.kernelbench, wanted, problems, arguments.jobs)
    folders = {name: folder for name, line in lines.items() if (folder := folder_of(line))}
    found["drawn"] = wanted
    found["left_out"] = {name: line for name, line in lines.items() if name not in folders}
    print(f"imported in {time.perf_counter() - begun:.0f} s", flush=True)
    here: list[Path] = [path for path in solutions(arguments.gpu_mode) if _named(path) in folders]
    rows = found["solutions"] = {_label(path): {} for path in here}
    with ThreadPoolExecutor(6) as pool:
        for path, told in zip(here, pool.map(judged_at_home, here), strict=True):
            rows[_label(path)]["there"] = told
    with kernelmark.Fleet(slots=arguments.slots) as fleet:
        checks = [kernelmark.Job(problem=problems / folders[_named(path)], submission=path, key=path) for path in here]
        for result in fleet.check_many(checks):
            assert isinstance(result.job.key, Path)
            rows[_label(result.job.key)]["here"] = said(result)
            print(f"{_label(result.job.key)}: {rows[_label(result.job.key)]}", flush=True)
        graded = found["references"] = {}
        for result in fleet.grade_many(references(problems, folders.values(), files), effort="screen"):
            graded[result.job.key] = said(result)
            print(f"{time.perf_counter() - begun:5.0f} s  {result.job.key}: {said(result)[:150]}", flush=True)


def _label(solution: Path) -> str:
    return f"{_named(solution)} {solution.parent.name}/{solution.name}"


def _named(solution: Path) -> str:
    return f"{solution.parents[3].name}/{solution.parents[2].name}"


def timed(arguments: argparse.Namespace, scratch: Path, found: dict[str, Any]) -> None:
    """Ten submissions, timed here and by their evaluators, one after the other; `found` gets each as it comes."""
    problems = scratch / "problems"
    names = [f"pmpp_v2/{name}" for name, _ in TIMED_GPU_MODE]
    lines = imported("gpu-mode", arguments.gpu_mode, names, problems, arguments.jobs)
    lines |= imported("kernelbench", arguments.kernelbench, TIMED_KERNELBENCH, problems, arguments.jobs)
    rows = found["rows"] = []
    with kernelmark.Fleet(slots=1) as fleet:
        for name, file in TIMED_GPU_MODE:
            task = arguments.gpu_mode / "problems/pmpp_v2" / name
            source = next(task.glob(f"solutions/correct/{file}"))
            here = _here(fleet, problems / str(folder_of(lines[f"pmpp_v2/{name}"])), source)
            logged = evaluated(source, task, "benchmark")
            means = [float(logged[key]) / 1e3 for key in logged if re.fullmatch(r"benchmark\.\d+\.mean", key)]
            rows.append({"problem": f"gpu-mode pmpp_v2/{name} {file}", **here, "there_us": means or logged["check"]})
            print(json.dumps(rows[-1]), flush=True)
        for name in TIMED_KERNELBENCH:
            level, number = name.split("/")
            path = next((arguments.kernelbench / f"KernelBench/level{level}").glob(f"{number}_*.py"))
            for kind, end in (("eager", EAGER), ("torch.compile", COMPILED)):
                custom = scratch / f"{level}_{number}_{kind}.py"
                custom.write_text(path.read_text() + end)
                here = _here(fleet, problems / str(folder_of(lines[name])), custom)
                there = _kernelbench(arguments.kernelbench, path, custom)
                rows.append({"problem": f"KernelBench {name} {kind}", **here, **there})
                print(json.dumps(rows[-1]), flush=True)


def _here(fleet: kernelmark.Fleet, problem: Path, source: Path) -> dict[str, Any]:
    (result,) = fleet.grade_many([kernelmark.Job(problem=problem, submission=source)], effort="quick")
    cases = result.verdict.benchmarks if result.verdict and result.verdict.score else ()
    return {
        "outcome": said(result),
        "timing": result.verdict.timing if result.verdict else "",
        "cases": [each.name for each in cases],
        "here_us": [each.score.median_ns / 1e3 for each in cases],
    }


def _kernelbench(checkout: Path, reference: Path, custom: Path) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", KERNELBENCH, str(reference), str(custom)],
        cwd=custom.parent, env=_importing(checkout / "src"), timeout=EVALUATOR_S,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        return {"there_us": f"ended with {done.returncode}: {done.stderr[-200:]}"}
    found = json.loads(done.stdout.splitlines()[-1])
    return {"there_us": [found["us"]], "there_reference_us": found["reference_us"], "there_correct": found["correct"]}


def main() -> None:
    """Run, print what came of it, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("grade", "time"))
    parser.add_argument("--gpu-mode", type=Path, required=True)
    parser.add_argument("--kernelbench", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=20, help="of the sample of KernelBench")
    parser.add_argument("--jobs", type=int, default=8, help="imports at a time")
    parser.add_argument("--slots", type=int)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    arguments.gpu_mode, arguments.kernelbench = arguments.gpu_mode.resolve(), arguments.kernelbench.resolve()
    document: dict[str, Any] = {
        "command": f"python -m benchmarks.foreign {' '.join(sys.argv[1:])}",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
    }
    try:
        with tempfile.TemporaryDirectory() as scratch:
            (grade if arguments.what == "grade" else timed)(arguments, Path(scratch), document)
    finally:  # what there is, if it was interrupted
        arguments.out.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
