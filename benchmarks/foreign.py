"""Problems of gpu-mode and KernelBench, from checkouts: imported, graded, and timed beside their own evaluators.

    checkouts="--gpu-mode ../reference-kernels --kernelbench ../KernelBench"
    python -m benchmarks.foreign references $checkouts --seconds 550
    python -m benchmarks.foreign solutions $checkouts --out solutions.json
    python -m benchmarks.foreign examples $checkouts --out examples.json
    python -m benchmarks.foreign time $checkouts --out times.json

`references` imports every problem of gpu-mode and of KernelBench's four levels, and grades each problem's own reference
as a submission to it, beside itself as the baseline: their ratio should be 1.00. It goes on where the last call
stopped; `--share K/N` is for several devices, each with an `--out` of its own. `solutions` checks gpu-mode's solutions
that are called right and wrong, asks their evaluator about the same files, and grades the wrong ones that the tests
accept, since a benchmark may refuse them.
`examples` grades the kernels that KernelBench shows to models, as submissions to the models beside them, and those with
which it tests its evaluator. `time` grades submissions to ten problems with nothing beside them, and lets the
evaluators time them on the same card.

`--only` takes patterns of problems, `pmpp_v2/*` or `1/*`, or of the examples' paths, and a run adds to what FILE has,
so that the work can be done in pieces. The evaluators run without a sandbox, as they do at home. Settings come from
kernelmark.toml or the environment.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import torch
import yaml

import kernelmark
from benchmarks.foreign_survey import share, survey, table
from benchmarks.slug import device_slug
from harness.device import DEVICES
from harness.shared.foreign import FORMS, ForeignForm
from kernelmark.project.choice import choose_device
from kernelmark.project.settings import Settings

ROOT = Path(__file__).resolve().parent.parent
Found = dict[str, Any]
SETS = ("pmpp", "pmpp_v2")  # of gpu-mode: those that come with solutions
EVALUATOR_S = 300
TIMED_GPU_MODE = (
    ("vectoradd_py", "submission_triton.py"),
    ("grayscale_py", "ref.py"),
    ("histogram_py", "ref.py"),
    ("matmul_py", "ref.py"),
    ("prefixsum_py", "ref.py"),
    ("sort_py", "ref.py"),
)
TIMED_KERNELBENCH = ("1/1", "1/40", "1/88", "2/1")
TRICKED = "KernelBench/level1/1_Square_matrix_multiplication_.py"  # by the kernels that its evaluator must refuse
COMPILED = "\n\nclass ModelNew(Model):\n    forward = torch.compile(Model.forward)\n"
EAGER = "\n\nModelNew = Model\n"
# Runs in a process of its own, with their `src` on its path: prints what their evaluator measures.
KERNELBENCH = """
import importlib.util, json, sys, types
from pathlib import Path
# Its package imports clients of language models, which an evaluation does not use.
for name, what in (("openai", "OpenAI"), ("litellm", "completion")):
    if importlib.util.find_spec(name) is None:
        sys.modules[name] = types.SimpleNamespace(**{what: None})
from kernelbench.eval import eval_kernel_against_ref
reference, custom = (Path(each).read_text() for each in sys.argv[1:3])
found = eval_kernel_against_ref(reference, custom, num_correct_trials=1, num_perf_trials=100, measure_performance=True,
                                backend="triton", check_for_excessive_speedup=False)
print(json.dumps({"correct": found.correctness, "us": found.runtime * 1e3}))
"""


def imported(form: ForeignForm, checkout: Path, names: Sequence[str], into: Path, jobs: int) -> dict[str, str]:
    """Import problems with our command: what it says of each, by the name that the project gives it."""
    if not names:
        return {}
    os.environ[f"KERNELMARK_{FORMS[form].setting.upper()}"] = str(checkout.resolve())  # where gradings look for it
    command = [sys.executable, "-c", "from kernelmark.commands.scripts import main; main()", "import", form]
    words = [*map(str, [checkout, *names]), "--into", str(into), "--jobs", str(jobs)]
    done = subprocess.run([*command, *words], capture_output=True, text=True, env=_importing(ROOT), check=False)
    lines = re.findall(rf"^(?:imported|left out)\s+{form} .*$", done.stdout, re.MULTILINE)
    if not lines:
        raise SystemExit(done.stdout + done.stderr)
    return {re.split(r"[\s:]+", line.split(form, 1)[1].strip())[0]: line for line in lines}


def _importing(folder: Path) -> dict[str, str]:
    """The environment of a process that imports from a folder, too."""
    return {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}


def folder_of(line: str) -> str | None:
    """The problem's folder in a line that says it was imported."""
    found = re.search(r" as (\S+)", line) if line.startswith("imported") else None
    return Path(found[1]).name if found else None


def of_kernelbench(checkout: Path) -> list[str]:
    """Its problems, `LEVEL/ID`."""
    found = [file.parts[-2:] for file in checkout.glob("KernelBench/level[0-9]*/[0-9]*_*.py")]
    return [f"{a}/{b}" for a, b in sorted((int(level[5:]), int(name.split("_")[0])) for level, name in found)]


def brought(
    arguments: argparse.Namespace, problems: Path, found: Found, ours: Iterable[str], theirs: Iterable[str] = ()
) -> dict[str, Path]:
    """Import what is wanted of gpu-mode and KernelBench: the folder of each problem; `found` gets what is left out."""
    lines = imported("gpu-mode", arguments.gpu_mode, _wanted(ours, arguments), problems, arguments.jobs)
    lines |= imported("kernelbench", arguments.kernelbench, _wanted(theirs, arguments), problems, arguments.jobs)
    folders = {name: problems / folder for name, line in lines.items() if (folder := folder_of(line))}
    found.setdefault("left_out", {}).update({name: line for name, line in lines.items() if name not in folders})
    return folders


def of_gpu_mode(checkout: Path) -> list[str]:
    """Its problems, `SET/NAME`."""
    return sorted("/".join(file.parts[-3:-1]) for file in (checkout / "problems").glob("*/*/task.yml"))


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


def surveyed(arguments: argparse.Namespace, scratch: Path, found: Found) -> None:
    """Grade the references of all problems, those of other calls left out."""
    ours, theirs = of_gpu_mode(arguments.gpu_mode), of_kernelbench(arguments.kernelbench)
    wanted = [("gpu-mode", name, arguments.gpu_mode) for name in _wanted(ours, arguments)]
    wanted += [("kernelbench", name, arguments.kernelbench) for name in _wanted(theirs, arguments)]
    rows, left_out = found.setdefault("problems", {}), found.setdefault("left_out", {})
    if arguments.imports:
        scratch = arguments.imports.resolve()
        scratch.mkdir(parents=True, exist_ok=True)
    survey(
        share(wanted, arguments.share), rows, left_out, scratch,
        effort=arguments.effort, seconds=arguments.seconds, write=lambda: keep(arguments.out, found),
    )  # fmt: skip
    print("\n".join(table(rows, left_out)), flush=True)


def keep(file: Path, found: Found) -> None:
    """Write what there is, whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f"{file.name}.part")
    part.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    part.replace(file)


def checked_solutions(arguments: argparse.Namespace, scratch: Path, found: Found) -> None:
    """Check the solutions here and by their evaluator, and grade the wrong ones that the tests accept."""
    problems = scratch / "problems"
    sets = [name for name in of_gpu_mode(arguments.gpu_mode) if name.split("/")[0] in SETS]
    folders = brought(arguments, problems, found, sets)
    here = [path for path in solutions(arguments.gpu_mode) if _named(path) in folders]
    rows = found.setdefault("solutions", {})
    rows.update({_label(path): {} for path in here})
    with ThreadPoolExecutor(6) as pool:
        for path, told in zip(here, pool.map(judged_at_home, here), strict=True):
            rows[_label(path)]["there"] = told
    with kernelmark.Fleet(slots=arguments.slots) as fleet:
        jobs = {path: kernelmark.Job(problem=folders[_named(path)], submission=path, key=path) for path in here}
        for result in fleet.check_many(jobs.values()):
            assert isinstance(result.job.key, Path)
            rows[_label(result.job.key)]["check"] = said(result)
        missed = [path for path in here if path.parent.name == "wrong" and rows[_label(path)]["check"] == "accepted"]
        for result in fleet.grade_many([jobs[path] for path in missed], effort="screen"):
            assert isinstance(result.job.key, Path)
            rows[_label(result.job.key)]["grade"] = said(result)
    for path in here:
        print(f"{_label(path)}: {rows[_label(path)]}", flush=True)


def examples(checkout: Path) -> Iterator[tuple[Path, Path]]:
    """KernelBench's example kernels, each with its model."""
    home = checkout / "src/kernelbench"
    for kernel in sorted((home / "prompts").rglob("model_new_ex_*.py")):
        model = kernel.with_name(kernel.name.replace("model_new_ex", "model_ex"))
        yield kernel, model if model.exists() else model.with_stem(model.stem.rsplit("_", 1)[0])
    for kernel in sorted((home / "unit_tests/test_kernels").glob("*.py")):
        yield kernel, checkout / TRICKED


def graded_examples(arguments: argparse.Namespace, scratch: Path, found: Found) -> None:
    """Grade the example kernels, in a checkout where their models are problems."""
    every = {str(kernel.relative_to(arguments.kernelbench)): model for kernel, model in examples(arguments.kernelbench)}
    models = {label: every[label] for label in _wanted(every, arguments)}
    level = scratch / "checkout/KernelBench/level1"
    level.mkdir(parents=True)
    names = {model: f"1/{number}" for number, model in enumerate(dict.fromkeys(models.values()), 1)}
    for model, name in names.items():
        (level / f"{name.removeprefix('1/')}_{model.stem}.py").write_bytes(model.read_bytes())
    lines = imported("kernelbench", level.parents[1], list(names.values()), scratch / "problems", arguments.jobs)
    jobs = []
    rows = found.setdefault("examples", {})
    for label, model in models.items():
        rows[label] = lines[names[model]]
        if folder := folder_of(rows[label]):
            file = arguments.kernelbench / label
            jobs.append(kernelmark.Job(problem=scratch / "problems" / folder, submission=file, key=label))
    with kernelmark.Fleet(slots=arguments.slots) as fleet:
        for result in fleet.grade_many(jobs, effort="screen"):
            rows[str(result.job.key)] = said(result)
            print(f"{result.job.key}: {said(result)}", flush=True)


def _wanted(names: Iterable[str], arguments: argparse.Namespace) -> list[str]:
    return [name for name in names if any(fnmatch(name, pattern) for pattern in arguments.only)]


def _label(solution: Path) -> str:
    return f"{_named(solution)} {solution.parent.name}/{solution.name}"


def _named(solution: Path) -> str:
    return f"{solution.parents[3].name}/{solution.parents[2].name}"


def timed(arguments: argparse.Namespace, scratch: Path, found: Found) -> None:
    """Submissions timed here and by their evaluators, one after the other; `found` gets each as it comes."""
    problems = scratch / "problems"
    files = {f"pmpp_v2/{name}": file for name, file in TIMED_GPU_MODE}
    folders = brought(arguments, problems, found, files, TIMED_KERNELBENCH)
    rows = found.setdefault("rows", {})

    def keep(problem: str, row: Found) -> None:
        rows[problem] = row
        print(json.dumps({problem: row}), flush=True)

    with kernelmark.Fleet(slots=1) as fleet:
        for name in (each for each in files if each in folders):
            task = arguments.gpu_mode / "problems" / name
            source = next(task.glob(f"solutions/correct/{files[name]}"))
            here = _here(fleet, folders[name], source)
            logged = evaluated(source, task, "benchmark")
            means = [float(logged[key]) / 1e3 for key in logged if re.fullmatch(r"benchmark\.\d+\.mean", key)]
            keep(f"gpu-mode {name} {files[name]}", {**here, "there_us": means or logged["check"]})
        for name in (each for each in TIMED_KERNELBENCH if each in folders):
            level, number = name.split("/")
            path = next((arguments.kernelbench / f"KernelBench/level{level}").glob(f"{number}_*.py"))
            for kind, end in (("eager", EAGER), ("torch.compile", COMPILED)):
                custom = scratch / f"{level}_{number}_{kind}.py"
                custom.write_text(path.read_text() + end)
                here = _here(fleet, folders[name], custom)
                there = _kernelbench(arguments.kernelbench, path, custom)
                keep(f"KernelBench {name} {kind}", {**here, **there})


def _here(fleet: kernelmark.Fleet, problem: Path, source: Path) -> dict[str, Any]:
    (result,) = fleet.grade_many([kernelmark.Job(problem=problem, submission=source)], effort="quick")
    cases = result.verdict.benchmarks if result.verdict and result.verdict.score else ()
    return {
        "outcome": said(result),
        "timing": result.verdict.timing if result.verdict else "",
        "cases": [case.name for case in cases],
        "here_us": [case.score.median_ns / 1e3 for case in cases],
    }


def _kernelbench(checkout: Path, reference: Path, custom: Path) -> dict[str, Any]:
    try:
        done = subprocess.run(
            [sys.executable, "-c", KERNELBENCH, str(reference), str(custom)],
            cwd=custom.parent, env=_importing(checkout / "src"), timeout=EVALUATOR_S,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {"there_us": f"ran out of {EVALUATOR_S} s"}
    if done.returncode:
        return {"there_us": f"ended with {done.returncode}: {done.stderr[-200:]}"}
    found = json.loads(done.stdout.splitlines()[-1])
    return {"there_us": [found["us"]], "there_correct": found["correct"]}


PARTS: dict[str, Callable[[argparse.Namespace, Path, Found], None]] = {
    "references": surveyed,
    "solutions": checked_solutions,
    "examples": graded_examples,
    "time": timed,
}


def main() -> None:
    """Run, print what came of it, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=PARTS)
    parser.add_argument("--gpu-mode", type=Path, required=True)
    parser.add_argument("--kernelbench", type=Path, required=True)
    parser.add_argument(
        "--only", nargs="+", default=["*"], metavar="PATTERN", help="of problems or examples; by default all"
    )
    parser.add_argument("--share", default="1/1", metavar="K/N", help="references: every Nth problem, from the Kth")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="references: when to stop, cleanly")
    parser.add_argument("--effort", choices=("quick", "default", "thorough"), default="quick", help="of references")
    parser.add_argument("--imports", type=Path, metavar="FOLDER", help="references: keep the imported problems in it")
    parser.add_argument("--jobs", type=int, default=8, help="imports at a time")
    parser.add_argument("--slots", type=int)
    parser.add_argument("--out", type=Path, metavar="FILE", help="is added to; references have one by default")
    arguments = parser.parse_args()
    facts = DEVICES[choose_device(Settings.load().device, "py")].facts()
    if arguments.out is None:
        if arguments.what != "references":
            parser.error("--out is required")
        device = device_slug(facts.device_name)
        arguments.out = ROOT / f"benchmarks/results/foreign_survey_{device}.json"
    arguments.gpu_mode, arguments.kernelbench = arguments.gpu_mode.resolve(), arguments.kernelbench.resolve()
    document: Found = json.loads(arguments.out.read_text()) if arguments.out.exists() else {}
    if document.setdefault("device", facts.device_name) != facts.device_name:
        raise SystemExit(f"{arguments.out} is of {document['device']}, and this is {facts.device_name}")
    document |= {
        "driver": facts.driver,
        "command": f"python -m benchmarks.foreign {arguments.what} --gpu-mode CHECKOUT --kernelbench CHECKOUT",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "torch": torch.__version__,
    }
    try:
        with tempfile.TemporaryDirectory() as scratch:
            PARTS[arguments.what](arguments, Path(scratch), document)
    finally:  # what there is, if it was interrupted
        keep(arguments.out, document)


if __name__ == "__main__":
    main()
