"""Runs the kernels of `reference/` against the problems of this repository, in this process, on the CPU.

As a program, `python -m tests.shipped`, it reads slugs and runs their Triton kernels in Triton's interpreter, with a
line of JSON for each: an environment variable that Triton reads at import chooses it, so it needs its own process.
"""

from __future__ import annotations

import importlib.util
import json
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from harness.compare import check_output
from harness.judge.correctness.truth import Truth
from harness.problem import Case, Problem, ResolvedCase, load
from harness.problem.elements import widened
from harness.problem.reference import Reference
from harness.runner import interpreter

ROOT = Path(__file__).resolve().parents[1]
SLUGS = tuple(sorted(file.parent.name for file in (ROOT / "problems").glob("*/problem.toml")))


def problem(slug: str) -> Problem:
    return load(ROOT / "problems" / slug)


def cases(problem: Problem, device: str) -> list[Case]:
    return [case for case in problem.tests + problem.benchmarks if device in case.devices]


def small_case(problem: Problem) -> Case:
    """The benchmark of the CPU that asks for least."""
    return min(
        (case for case in problem.benchmarks if "cpu" in case.devices),
        key=lambda case: problem.resolve(case).minimum_bytes,
    )


def module(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"shipped_{path.parent.name}_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made
    spec.loader.exec_module(made)
    return made


def call(entry: Callable[..., object], problem: Problem, case: ResolvedCase, tensors: dict[str, torch.Tensor]) -> None:
    """Call a Python kernel as the runner does: tensors in order, a list as one argument, then the scalars.

    Where it returns its output, that is the problem's only one.
    """
    arguments: dict[str, Any] = {}
    for spec in case.tensors:
        if spec.list_name is None:
            arguments[spec.name] = tensors[spec.name]
        else:
            arguments.setdefault(spec.list_name, []).append(tensors[spec.name])
    scalars = (scalar.value for scalar in case.scalars)
    if problem.call.style == "writes":
        entry(*arguments.values(), *scalars)
    else:
        [output] = (spec.name for spec in case.tensors if spec.role == "output")
        del arguments[output]
        tensors[output] = entry(*arguments.values(), *scalars)  # type: ignore[assignment]


def flaw(problem: Problem, case: Case, run: Callable[[ResolvedCase, dict[str, torch.Tensor]], object]) -> str:
    """Why a kernel is wrong in one case, by the rules of a grading; nothing if it is right."""
    resolved = problem.resolve(case.drawn(random.Random(case.name)))
    generator = torch.Generator().manual_seed(len(case.name))
    reference = Reference.load(problem)
    truth, inputs = Truth(reference, resolved), reference.draw(resolved, generator)
    tensors = {name: t.clone() for name, t in inputs.items()}
    for spec in resolved.tensors:
        if spec.role == "output":
            tensors[spec.name] = torch.empty(spec.shape, dtype=getattr(torch, spec.dtype))
            tensors[spec.name].view(torch.uint8).fill_(0xA5)
        if spec.strides is not None:
            apart = torch.empty(spec.span, dtype=tensors[spec.name].dtype).as_strided(spec.shape, spec.strides)
            tensors[spec.name] = apart.copy_(tensors[spec.name])
    wide = {name: widened(tensor) for name, tensor in inputs.items()}
    exact, honest = truth.of_call(wide), truth.of_call(inputs)
    run(resolved, tensors)
    if truth.reference.compares:
        outputs = {name: tensors[name] for name in exact}
        return (
            truth.reference.compare(*(truth.grouped(tensors_by_name) for tensors_by_name in (outputs, inputs, exact)))
            or ""
        )
    for name, right in exact.items():
        check = check_output(name, tensors[name], right, honest[name], resolved.tolerance)
        if not check.correct:
            return f"{case.name}: {name}: largest error {check.max_error}, RMS {check.rms_error}"
    return ""


def main() -> None:
    interpreter.complete()
    for slug in map(str.strip, sys.stdin):
        results = []
        of, entry = problem(slug), getattr(module(ROOT / "reference" / slug / "triton.py"), slug)
        for case in cases(of, "cpu"):
            wrong = flaw(of, case, lambda resolved, tensors, entry=entry, of=of: call(entry, of, resolved, tensors))
            results.append({"case": [slug, case.name], "flaw": wrong})
        print(json.dumps(results), flush=True)


if __name__ == "__main__":
    main()
