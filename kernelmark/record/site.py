"""Gathers the inputs of the site: the project's problems, calibrations and ledgers. Trusted.

`kernelmark site` passes it to `leaderboard.publishing.site`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

from harness.errors import HarnessError, ProblemError
from harness.files import outside
from harness.files.identity import length_prefixed_sha256
from harness.files.outside import real
from harness.problem import Problem
from harness.problem.resolve import ResolvedTensor
from harness.problem.spec import TensorSpec
from harness.shared.layouts import ROW_MAJOR
from kernelmark.project import competition
from kernelmark.project.calibrations import stored
from kernelmark.project.problems import identity, private_folder, problem_directories, read_problem
from kernelmark.project.settings import PathSetting, Settings
from kernelmark.record.publishing import rule
from kernelmark.record.records import current_with, index, notices_of
from leaderboard.publishing.site.inputs import SiteInputs
from leaderboard.publishing.site.statement import Shapes, StatedArgument, Statement
from leaderboard.record.durable import write_whole
from leaderboard.record.profile import SUFFIX


def own_file_in(settings: Settings, folder: Path) -> Path | None:
    """The first of the project's own paths inside this folder, to which the site then must not be written."""
    private = private_folder(settings)
    places = (settings.root, *map(settings.locate, get_args(PathSetting)), *([private] if private else []))
    return next((place for place in places if real(place).is_relative_to(real(folder))), None)


def material(settings: Settings, memory: Path) -> SiteInputs:
    """The site's inputs; problems that have not changed come from the cache in `memory`.

    Raises:
        UsageError: a problem or a calibration cannot be read.
    """
    now = datetime.now(UTC)
    code = [Path(__file__), *sorted((Path(__file__).parents[2] / "harness" / "problem").glob("*.py"))]
    read_by = length_prefixed_sha256(*(file.read_bytes() for file in code))
    kept = [_kept_statement(settings, directory, memory, now, read_by) for directory in problem_directories(settings)]
    rules = [(statement.slug, statement.rule) for statement in kept]
    closed = {slug: own.closes for slug, own in rules if own.closes is not None and own.closed(now)}
    whole = competition.state(settings, None, now)
    return SiteInputs(
        ledgers=tuple(sorted(settings.locate("results").glob("*.jsonl"))),
        archive=settings.locate("archive"),
        archive_name=settings.archive.as_posix(),
        now=now,
        current=current_with(settings, {statement.slug: statement.sha256 for statement in kept}, closed),
        statements=tuple(kept),
        calibrations=tuple(stored(settings)),
        reference=settings.locate("reference"),
        reference_name=settings.reference.as_posix(),
        url=settings.site_url or "",
        teams=settings.teams,
        title=settings.title or "",
        how_to_submit=settings.how_to_submit or "",
        phase=whole.phase,
        announcements=notices_of(whole),
        index=index(settings),
    )


def _kept_statement(settings: Settings, directory: Path, memory: Path, now: datetime, read_by: str) -> Statement:
    """A problem's statement, from the cache unless its files, its hash or the code (by its hash `read_by`) changed."""
    parts = [directory / name for name in ("problem.toml", "reference.py", "README.md")]
    try:
        content = [outside.read(file, outside.TEXT_BYTES, follow=True) if file.is_file() else b"" for file in parts]
    except OSError as error:
        raise ProblemError(str(directory), f"cannot be read ({error.strerror})") from error
    phase = settings.phase(now)
    content += [read_by.encode(), phase.model_dump_json().encode() if phase is not None else b""]
    if settings.private_cases is not None:
        content.append(identity(settings, directory, now).encode())  # it covers the private cases that count now
    kept = memory / "problems" / f"{directory.name}-{length_prefixed_sha256(*content)[:16]}.json"
    with contextlib.suppress(OSError, ValueError):
        return Statement.model_validate_json(kept.read_bytes())
    statement = _statement(read_problem(settings, directory, now))
    try:
        for older in kept.parent.glob(f"{directory.name}-????????????????.json"):
            older.unlink()
        write_whole(kept, statement.model_dump_json().encode(), replace=True)
    except OSError as error:
        raise HarnessError(f"{kept} cannot be written ({error.strerror})") from error
    return statement


def _statement(problem: Problem) -> Statement:
    readme, reference = problem.directory / "README.md", problem.directory / "reference.py"
    return Statement(
        slug=problem.slug,
        title=problem.title,
        tags=problem.tags,
        sha256=problem.sha256,
        text=outside.text(readme, errors="replace") if readme.is_file() else "",
        entry=problem.entry,
        arguments=tuple(_argument(tensor) for tensor in problem.tensors),
        shapes=tuple(_shapes(problem)),
        tests=len(problem.tests),
        reference=outside.text(reference, errors="replace") if reference.is_file() else "",
        rule=rule(problem),
    )


def _shapes(problem: Problem) -> Iterator[Shapes]:
    for case in problem.benchmarks:
        resolved = problem.resolve(case)
        yield Shapes(
            case=case.name,
            devices=case.devices,
            params=case.params,
            tensors=tuple(_argument(tensor) for tensor in resolved.tensors[:12]),
            minimum_bytes=resolved.minimum_bytes,
            minimum_flops=resolved.minimum_flops,
        )


def _argument(tensor: ResolvedTensor | TensorSpec) -> StatedArgument:
    shape = f"[{', '.join(map(str, tensor.shape))}]"
    if tensor.strides is not None:
        shape += f", strides [{', '.join(map(str, tensor.strides))}]"
    if tensor.layouts:
        shape += f", {' or '.join((ROW_MAJOR, *tensor.layouts))}"
    return StatedArgument(name=tensor.name, role=tensor.role, shape=shape, dtype=tensor.dtype, memory=tensor.memory)


def state(settings: Settings) -> list[tuple[Path, tuple[int, int, int] | None]]:
    """A value that changes when one of the site's input files changes."""
    private = private_folder(settings)
    files = [
        *(private.glob("*.toml") if private else ()),
        *settings.locate("results").glob("*.jsonl"),
        *settings.locate("archive").glob(f"*/*/*{SUFFIX}"),
        *settings.locate("problems").glob("*/*"),
        *settings.locate("reference").glob("*/*"),
        *settings.locate("devices").glob("*.json"),
    ]
    return [(file, outside.stamp(file)) for file in sorted(files)]
