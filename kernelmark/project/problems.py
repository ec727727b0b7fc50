"""Finds the project's problems, their private cases and the organizers' kernels, and those of kernelmark. Trusted."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import get_args

from harness.errors import HarnessError, SubmissionError, UsageError, nearest
from harness.files import outside
from harness.files.outside import real
from harness.languages import LANGUAGES
from harness.problem import Case, Problem, load
from harness.problem.load import identify
from harness.problem.signature import prototypes
from harness.submission import Submission
from harness.verdict import DeviceKind
from kernelmark.project.settings import FILE_NAME, PathSetting, Settings


def problem_directories(settings: Settings) -> list[Path]:
    """The project's problems, in the order of their slugs."""
    return sorted(file.parent for file in settings.locate("problems").glob("*/problem.toml"))


def is_project(settings: Settings) -> bool:
    """Whether the root has a kernelmark.toml, problems or results."""
    places = (settings.root / FILE_NAME, settings.locate("problems"), settings.locate("results"))
    return any(path.exists() for path in places)


def refuse_without_project(settings: Settings) -> None:
    """Raise a UsageError if the root is no project: a command would find nothing there, or record something."""
    if not is_project(settings):
        what = f"is not in a project: there is no {FILE_NAME} here or in a folder above"
        remedy = (
            "change to a project, make one with `kernelmark init`, or name a server: --to SERVER, --from SERVER to read"
        )
        raise UsageError(str(settings.root), what, remedy)


def statement_of(problem: Problem) -> str:
    """The content of the problem's README.md; empty if there is none."""
    try:
        return outside.text(problem.directory / "README.md", errors="replace")
    except OSError:
        return ""


def entry_points_of(problem: Problem) -> dict[str, tuple[str, ...]]:
    """The declarations in C of the functions that a submission may define, by the suffix of the language."""
    compiled = [suffix for suffix, language in LANGUAGES.items() if language.compiler is not None]
    declared = {suffix: tuple(prototypes(problem, suffix).values()) for suffix in compiled}
    return {suffix: functions for suffix, functions in declared.items() if functions}


def find_problem(settings: Settings, reference: str | Path, final: datetime | bool | None = None) -> Problem:
    """Load a problem by its directory or by its slug; `final` as for `load`.

    Raises:
        UsageError: there is none; the message names the nearest slug.
        ProblemError: it is not valid.
    """
    return read_problem(settings, find_directory(settings, reference), final)


def read_problem(settings: Settings, directory: Path, final: datetime | bool | None = None) -> Problem:
    """Load the problem in a directory as it is at a moment, with the private cases and the schedule of its phase;
    `final` as for `load`.

    Raises:
        UsageError: the folder of private cases is not valid.
        ProblemError: the problem is not valid.
    """
    moment = final if isinstance(final, datetime) else None
    return load(directory, private_folder(settings, moment), final, settings.checkouts, settings.phase(moment))


def identity(settings: Settings, directory: Path, now: datetime) -> str:
    """The hash of the problem in a directory as it is at a moment; raises as `read_problem`."""
    return identify(directory, private_folder(settings, now), now, settings.phase(now))


def visible_tests(problem: Problem, device: DeviceKind) -> list[Case]:
    """The tests that this device runs and that are not hidden."""
    return [case for case in problem.tests if not case.hidden and device in case.devices]


def visible_test(problem: Problem, device: DeviceKind, name: str | None = None) -> Case:
    """The visible test of that name that runs on this device; without a name, the first.

    Raises:
        UsageError: there is none; the message names the nearest.
    """
    tests = {case.name: case for case in visible_tests(problem, device)}
    if not tests:
        what = f"has no test for the device {device} that is not hidden"
        raise UsageError(problem.slug, what, "use another device")
    if name is not None and name not in tests:
        what = f"is not one of {problem.slug}"
        if any(case.name == name and not case.hidden for case in problem.tests):
            what = f"does not run on the device {device}"
        raise UsageError(f"test {name!r}", what, nearest(name, tests))
    return tests[name or next(iter(tests))]


def of_one_case(problem: Problem, name: str | None, device: DeviceKind) -> Problem:
    """The problem with one of its benchmarks, the largest if none is named.

    Raises:
        UsageError: it has no such benchmark.
    """
    cases = {case.name: case for case in problem.benchmarks if device in case.devices}
    if not cases:
        raise SubmissionError(problem.slug, f"has no benchmark for the device {device}", "use another device")
    if name is not None and name not in cases:
        what = f"is not a benchmark of {problem.slug}"
        if any(case.name == name for case in problem.benchmarks):
            what = f"does not run on the device {device}"
        raise UsageError(f"case {name!r}", what, nearest(name, cases))
    chosen = cases[name] if name else max(cases.values(), key=lambda case: problem.resolve(case).minimum_bytes)
    return problem.model_copy(update={"benchmarks": (chosen,)})


def private_folder(settings: Settings, now: datetime | None = None) -> Path | None:
    """The folder of private cases at a moment, by default now; None if none is set. If it has a folder for the phase,
    it is that one.

    Raises:
        UsageError: it does not exist, or is inside the project, with which it would be published.
    """
    if settings.private_cases is None:
        return None
    folder = real(settings.root / settings.private_cases.expanduser())
    if not folder.is_dir():
        raise UsageError("private_cases", f"{folder} is not a folder", "make it, or leave the setting out")
    root = real(settings.root)
    repository = next((parent for parent in (root, *root.parents) if (parent / ".git").exists()), root)
    for own in (repository, root, *(real(settings.locate(place)) for place in get_args(PathSetting))):
        if folder.is_relative_to(own):
            remedy = "move it elsewhere: it would be published with the project"
            raise UsageError("private_cases", f"{folder} is inside {own}", remedy)
    phase = settings.phase(now)
    return folder / phase.name if phase is not None and (folder / phase.name).is_dir() else folder


def find_directory(settings: Settings, reference: str | Path) -> Path:
    """The absolute path of a problem's directory, by any path to it or by its slug.

    A bare name is first taken as a slug: the working directory may belong to another project.

    Raises:
        UsageError: there is none; the message names the nearest slug, or says that this is a file.
    """
    if not str(reference):
        raise UsageError("the problem", "has no name", "`kernelmark problems list` lists the problems")
    path, own = Path(reference), settings.locate("problems") / reference
    for directory in (own, path) if path.name == reference else (path, own):
        try:
            if (directory / "problem.toml").is_file():
                return real(directory)
        except OSError as error:  # the name is too long, or a folder may not be read
            raise UsageError(f"{reference!s:.80}", f"cannot be looked for ({error.strerror})") from error
    if path.is_dir():
        raise UsageError(str(reference), "holds no problem.toml", "name a problem's directory, or its slug")
    if path.is_file() or path.suffix.removeprefix(".") in LANGUAGES:
        raise UsageError(str(reference), "is a file, not a problem", "name the problem first, then the file")
    refuse_without_project(settings)
    slugs = [directory.name for directory in problem_directories(settings)]
    remedy = nearest(str(reference), slugs, "`kernelmark problems list` lists the problems")
    raise UsageError(str(reference), "no such problem", remedy)


def find_baselines(settings: Settings, problem: Problem, device: DeviceKind) -> list[Submission]:
    """The organizers' kernels with which a grading alternates, in the order of the setting.

    By default this is `eager` on a GPU, if the problem has it, and none on a CPU or with an effort below the default.

    Raises:
        UsageError: a named kernel does not exist, or does not run on the device.
    """
    folder = settings.locate("reference") / problem.slug
    automatic = settings.baselines == ("auto",)
    if automatic and (device == "cpu" or settings.effort in ("screen", "quick")):
        return []
    kernels = []
    for name in ("eager",) if automatic else dict.fromkeys(settings.baselines):
        files = [folder / f"{name}.{language.suffix}" for language in LANGUAGES.values() if device in language.devices]
        file = next((file for file in files if file.is_file()), None)
        if file is not None:
            kernels.append(Submission.read(file, "baseline"))
        elif not automatic:
            known = sorted({file.stem for file in folder.glob("*") if file.suffix[1:] in LANGUAGES})
            raise UsageError(f"baseline {name}", f"is not in {folder}", nearest(name, known) if known else "")
    return kernels


_PACKAGE = Path(__file__).resolve().parents[1]


def shipped() -> Path:
    """The folder with `problems/`, `reference/` and `examples/`.

    Raises:
        HarnessError: this copy of kernelmark has none.
    """
    checkout = _PACKAGE.parent
    for folder, mark in ((_PACKAGE / "shipped", "problems"), (checkout, "setup.py")):
        if (folder / mark).exists():
            return folder
    raise HarnessError(f"{_PACKAGE} has no problems to copy", "install kernelmark's wheel, or run it from its clone")
