"""Imports problems of other projects: writes ordinary problem folders that point to the files of a checkout. Trusted.

`kernelmark import` calls it. A checkout's files are read here, but run only in a sandbox (`harness.importer`). Each
problem gets a new one, so that no problem can affect the answer about another.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from harness.errors import KernelmarkError, UsageError
from harness.kinds import DeviceKind
from harness.problem import Problem
from harness.sandbox import Provider
from harness.shared.foreign import ForeignForm
from kernelmark.interop.importing import baselines, gpu_mode, kernelbench
from kernelmark.interop.importing import folder as folders
from kernelmark.interop.importing.answer import LIMIT_S, ImporterAnswer, ask, check
from kernelmark.interop.importing.checkout import Candidate, ForeignProblem, NotImportedError, chosen
from kernelmark.interop.importing.draft import draft

_FORMS: dict[ForeignForm, ModuleType] = {"gpu-mode": gpu_mode, "kernelbench": kernelbench}


@dataclass(frozen=True)
class Imported:
    """The outcome for one problem: it was imported, or there is a reason."""

    form: ForeignForm
    label: str
    problem: Problem | None = None
    reason: str = ""
    remarks: tuple[str, ...] = ()
    """What the problem lacks: baselines although they were requested, or inputs that a submission cannot predict."""


@dataclass(frozen=True)
class Importer:
    """Where problems are written, and where their code runs."""

    provider: Provider
    device: DeviceKind
    into: Path
    project: Path
    """Problems point to a checkout inside it by relative paths, and to any other by the setting that names it."""
    force: bool = False
    reference: Path | None = None
    """The folder in which each problem gets a folder of baselines; None: no baselines are written."""
    limit_s: float = LIMIT_S

    def all(self, form: ForeignForm, root: Path, names: Sequence[str], jobs: int) -> Iterator[Imported]:
        """Import the problems with these names, or all if there are no names, in order and `jobs` at a time.

        Names that no problem has come first, with that reason.

        Raises:
            UsageError: there is no such checkout, or no problem in it.
            SandboxError: a sandbox did not start.
        """
        if not root.is_dir():
            raise UsageError(str(root), "is not a folder", "name the folder of a checkout")
        candidates, unknown = chosen(_FORMS[form].candidates(root), names, root)
        yield from (Imported(form, name, reason=reason) for name, reason in unknown.items())
        owners = {candidate.slug: candidate for candidate in reversed(candidates)}
        stop = threading.Event()
        with ThreadPoolExecutor(jobs) as pool:
            waiting = [pool.submit(self._one, root, found, owners[found.slug] is found, stop) for found in candidates]
            try:
                for future in waiting:
                    yield future.result()
            finally:  # the caller stops early, or a sandbox failed: imports that have not begun are cancelled
                stop.set()
                for future in waiting:
                    future.cancel()

    def _one(self, root: Path, candidate: Candidate, first: bool, stop: threading.Event) -> Imported:
        form, label, folder = candidate.form, candidate.label, self.into / candidate.slug
        try:
            if not first:
                raise NotImportedError(f"another problem would be called {candidate.slug}, too")
            if stop.is_set():
                raise NotImportedError("the import was stopped")
            folders.refuse_existing(folder, force=self.force)
            stated: ForeignProblem = _FORMS[form].read(root, candidate)
            answer = check(ask(self.provider, self.device, stated, self.limit_s), len(stated.cases))
            problem = folders.write(folder, stated, draft(stated, answer), root, self.project, force=self.force)
        except NotImportedError as error:
            return Imported(form, label, reason=str(error))
        except KernelmarkError:
            raise
        except Exception as error:  # noqa: BLE001  # untrusted files and an untrusted answer, of one problem of many
            why = f"its files, or its answers, describe no problem ({type(error).__name__})"
            return Imported(form, label, reason=why)
        lacking = baselines.write(problem, self.reference / problem.slug) if self.reference else ""
        remarks = (*_known(answer, form), *([f"no baseline: {lacking}"] if lacking else []))
        return Imported(form, label, problem=problem, remarks=remarks)


def _known(answer: ImporterAnswer, form: ForeignForm) -> Iterator[str]:
    """Why no result of a problem will have a rank: a submission can predict all its inputs."""
    if answer.fixed:
        yield "no rank: its inputs are the same with every seed"
    elif form == "gpu-mode" and not answer.seed_bits:
        yield "no rank: its inputs can be drawn from small seeds alone, or not at all here"
