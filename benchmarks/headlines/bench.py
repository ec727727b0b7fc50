"""Grades the kernels of a claim by `kernelmark.grade`, on few tests and on the cases that the claim is about."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Literal

import kernelmark
from benchmarks.headlines.finding import NotHereError, Row
from benchmarks.slug import device_slug
from harness.device import DEVICES
from harness.problem import Case, Problem

ROOT = Path(__file__).resolve().parents[2]
KERNELS = Path(__file__).resolve().parent / "kernels"
Cases = Mapping[str, Mapping[str, int | str]]
"""By the name that each has in tables, its parameters."""
_COMMAND = "from kernelmark.commands.scripts import main; main()"
_PATIENT_S = 150.0  # what searches for a kernel may take, once a shape


@dataclass(frozen=True)
class Kernel:
    """A source with the name that it has in the rows."""

    name: str
    source: str
    language: str

    def changed(self, name: str, old: str, new: str) -> Kernel:
        """The same with another name and one text replaced, which must occur once."""
        assert self.source.count(old) == 1, f"{old} occurs {self.source.count(old)} times in {self.name}"
        return replace(self, name=name, source=self.source.replace(old, new))


def ours(problem: str, file: str) -> Kernel:
    """A kernel of `reference/`."""
    return _read(ROOT / "reference" / problem / file)


def lecture(file: str) -> Kernel:
    """A kernel as a lecture has it, of the folder `kernels` here."""
    return _read(KERNELS / file)


def _read(path: Path) -> Kernel:
    return Kernel(path.stem, path.read_text(), path.suffix.removeprefix("."))


class Bench(AbstractContextManager["Bench"]):
    """A device to measure on. Its own folder takes the place of `reference/`, so any kernel can be a baseline."""

    def __init__(
        self,
        device: Literal["auto", "cpu", "cuda"] = "auto",
        sandbox: Literal["auto", "docker", "bwrap", "process"] = "auto",
        effort: Literal["quick", "default", "thorough"] = "quick",
    ) -> None:
        import torch

        self.device: Literal["cpu", "cuda"]
        self.device = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
        self.sandbox, self.effort = sandbox, effort
        self._sandbox: str = sandbox  # that which was chosen, once it has been
        self._folder = tempfile.TemporaryDirectory(prefix="headlines-")
        os.environ["KERNELMARK_REFERENCE"] = self._folder.name
        self._project = kernelmark.Project(ROOT)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._folder.cleanup()

    def slug(self) -> str:
        """The device's name as a part of a file's: `nvidia_h100_80gb_hbm3`."""
        return device_slug(str(self.facts()["device_name"]))

    def facts(self) -> dict[str, str | int]:
        """The device and the versions that every number depends on."""
        import torch
        import triton

        versions = {"torch": str(torch.__version__), "triton": str(triton.__version__), "sandbox": self._sandbox}
        return {**DEVICES[self.device].facts().known(), **versions}

    def needs_gpu(self, why: str) -> None:
        """Raises:
        NotHereError: there is none.
        """
        if self.device != "cuda":
            raise NotHereError(f"needs a GPU: {why}")

    def known(self, slug: str, *files: str) -> list[Kernel]:
        """Those of these kernels that `reference/` has."""
        return [ours(slug, file) for file in files if (ROOT / "reference" / slug / file).exists()]

    def problem(self, slug: str, cases: Cases | Sequence[str] | None) -> Problem:
        """A problem of this repository with one test and these benchmarks; on a CPU with its own for a CPU.

        Cases are given by name, or with parameters; None stands for all that there are for a GPU.
        """
        found = self._project.problem(slug)
        here = [case for case in found.benchmarks if self.device in case.devices]
        tests = [case for case in found.tests if self.device in case.devices and not case.draw and not case.hidden]
        if self.device == "cuda" and isinstance(cases, Mapping):
            here = [_case(here[0], name, params) for name, params in cases.items()]
        elif self.device == "cuda" and cases is not None:
            here = [case for case in here if case.name in cases]
            assert len(here) == len(cases), f"{slug} has not all of {', '.join(cases)}"
        limits = found.limits.model_copy(update={"build_s": _PATIENT_S, "call_s": _PATIENT_S, "time_s": _PATIENT_S})
        changed = {"benchmarks": tuple(here), "tests": tuple(tests[:1]), "limits": limits}
        return found.model_copy(update=changed)

    def verdict(
        self, slug: str, candidate: Kernel, against: Sequence[Kernel] = (), cases: Cases | Sequence[str] | None = None
    ) -> kernelmark.Verdict:
        """Grade a kernel, alternating with these others.

        Raises:
            NotHereError: it cannot run on this device, or is not accepted.
            KernelmarkError: the grading failed.
        """
        here = [each for each in against if self.device == "cuda" or each.language != "cu"]
        if candidate.language == "cu":
            self.needs_gpu(f"{candidate.name} is CUDA")
        folder = Path(self._folder.name) / slug
        folder.mkdir(exist_ok=True)
        for kernel in here:
            (folder / f"{kernel.name}.{kernel.language}").write_text(kernel.source)
        source = kernelmark.Submission.of(candidate.source, candidate.language, author="headlines", name=candidate.name)
        return self.grade(self.problem(slug, cases), source, [kernel.name for kernel in here])

    def grade(
        self, problem: Problem, source: kernelmark.Submission | Path, baselines: Sequence[str] = ()
    ) -> kernelmark.Verdict:
        """Grade what must be accepted.

        Raises:
            NotHereError: it is not.
            KernelmarkError: the grading failed.
        """
        verdict = kernelmark.grade(
            problem,
            source,
            device=self.device,
            sandbox=self.sandbox,
            effort=self.effort,
            baselines=baselines or ["none"],
            project=self._project,
        )
        if verdict.outcome is not kernelmark.Outcome.ACCEPTED:
            raise NotHereError(f"{verdict.submission.name} of {problem.slug} is {verdict.outcome}: {verdict.message}")
        self._sandbox = verdict.environment.sandbox
        for doubt in notes(verdict):
            print(f"  doubt   {verdict.submission.name}: {doubt}", flush=True)
        return verdict

    def command(self, *words: str | Path) -> None:
        """Run a command of kernelmark on this device.

        Raises:
            NotHereError: it failed.
        """
        sandbox = [] if self.sandbox == "auto" else ["--sandbox", self.sandbox]
        line = [sys.executable, "-c", _COMMAND, *map(str, words), "--device", self.device, *sandbox]
        ended = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
        if ended.returncode:
            raise NotHereError(f"kernelmark {words[0]} ended with {ended.returncode}: {ended.stderr.strip()[-300:]}")

    def race(
        self, slug: str, candidate: Kernel, against: Sequence[Kernel] = (), cases: Cases | Sequence[str] | None = None
    ) -> list[Row]:
        """Times in µs, and how many times as fast the candidate is as each of the others (`triton × eager`)."""
        return rows_of(self.verdict(slug, candidate, against, cases), candidate.name)


def rows_of(verdict: kernelmark.Verdict, name: str) -> list[Row]:
    """The rows of an accepted verdict: times, ratios, and the most memory that a call allocates, if that is known."""
    rows = []
    for case in verdict.benchmarks:
        score = case.score
        rows.append(Row(case.name, name, score.median_ns / 1e3, "µs", score.low_ns / 1e3, score.high_ns / 1e3))
        peaks = {name: case.peak_bytes if case.mode == "replayed" else None}
        for other in case.baselines:
            over, ratio = other.name.removesuffix(" (another computation)"), other.speedup
            rows.append(Row(case.name, over, other.time_ns / 1e3, "µs"))
            rows.append(Row(case.name, f"{name} × {over}", ratio.median, "×", ratio.low, ratio.high))
            peaks[over] = other.peak_bytes
        rows += [
            Row(case.name, f"memory of {who}", peak / 1e6, "MB") for who, peak in peaks.items() if peak is not None
        ]
    return rows


def notes(verdict: kernelmark.Verdict) -> Iterator[str]:
    """Why a baseline has no number, or a time is doubtful."""
    for where, doubts in [("", verdict.doubts), *((f"{case.name}: ", case.doubts) for case in verdict.benchmarks)]:
        yield from (f"{where}{doubt.text}" for doubt in doubts)


def _case(like: Case, name: str, params: Mapping[str, int | str]) -> Case:
    return like.model_copy(update={"name": name, "params": dict(params), "fill": {}, "weight": 1.0})
