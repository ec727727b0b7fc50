"""The commands `kernelmark site build` and `kernelmark site serve`.

They read the project's problems and calibrations, and pass them to `leaderboard.publishing.site`. Trusted.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from harness.errors import HarnessError, KernelmarkError, ProblemError, UsageError
from harness.files import outside
from harness.files.outside import real
from kernelmark.commands.help import Group
from kernelmark.commands.options import load_settings
from kernelmark.text.printing import say
from kernelmark.text.terminal import visible

if TYPE_CHECKING:
    from harness.problem import Problem
    from harness.problem.foreign_files import Checkouts
    from harness.problem.resolve import ResolvedTensor
    from harness.problem.spec import TensorSpec
    from kernelmark.project.settings import Settings
    from leaderboard.publishing.site.inputs import SiteInputs
    from leaderboard.publishing.site.statement import Shapes, StatedArgument, Statement

_POLL_S = 0.5

_out = click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), default=Path("site"), show_default=True,
    help="The folder to write to.",
)  # fmt: skip


@click.group(cls=Group)
def site() -> None:
    """The board as a static site."""


@site.command()
@_out
def build(out: Path) -> None:
    """Write the site; files that have not changed since the last build are left alone.

    A cache that makes builds fast is kept next to the folder, in OUT.cache; it can be removed at any time.
    """
    _build(load_settings(), out)


@site.command()
@_out
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0: any free port.")
def serve(out: Path, port: int) -> None:
    """Serve the site on this machine only; rebuild it when a ledger or a problem changes, and when a problem closes."""
    from kernelmark.commands.serving import begin

    settings = load_settings()
    seen = _state(settings)
    due = _build(settings, out)
    server = begin(out, port)
    say(f"http://127.0.0.1:{server.server_port}/ (end with Ctrl-C)")
    try:
        while True:
            time.sleep(_POLL_S)
            now = _state(settings)
            if now != seen or (due is not None and datetime.now(UTC) > due):
                seen, due = now, None
                try:
                    due = _build(settings, out)
                except KernelmarkError as error:  # somebody is editing: keep serving the last build
                    say(f"kernelmark: error: {visible(str(error))}")
    except KeyboardInterrupt:
        say("ended")
    finally:
        server.shutdown()
        server.server_close()


def _build(settings: Settings, out: Path) -> datetime | None:
    """Build once, and say in one line what was written. Returns when the next problem closes, if one will.

    Raises:
        UsageError: `out` contains the project or a part of it.
    """
    from kernelmark.project.problems import private_folder
    from kernelmark.project.settings import Place
    from leaderboard.publishing.site.build import build as build_site

    started, folder = time.perf_counter(), real(out)
    private = private_folder(settings)
    for own in (settings.root, *map(settings.locate, get_args(Place)), *([private] if private else [])):
        if real(own).is_relative_to(folder):
            raise UsageError(str(out), f"holds files of the project itself ({own})", "name another --out")
    memory = folder.with_name(folder.name + ".cache")
    made_from = material(settings, memory)
    written = build_site(made_from, out, memory)
    took = time.perf_counter() - started
    counts = f"{written.written:,} files written, {written.unchanged:,} unchanged, {written.removed:,} removed"
    say(f"{out}: {counts} in {took:.2f} s; open {out / 'index.html'}")
    closings = (each.rule.closes for each in made_from.statements)
    return min((each for each in closings if each is not None and each >= made_from.now), default=None)


def material(settings: Settings, memory: Path) -> SiteInputs:
    """The site's inputs from the project; unchanged problems come from the cache in `memory`.

    Raises:
        UsageError: a problem or a calibration cannot be read.
    """
    from harness.files.identity import length_prefixed_sha256
    from kernelmark.project.calibrations import stored
    from kernelmark.project.problems import private_folder, problem_directories
    from kernelmark.record.records import current, index
    from leaderboard.publishing.site.inputs import SiteInputs

    private, now = private_folder(settings), datetime.now(UTC)
    code = [Path(__file__), *sorted((Path(__file__).parents[2] / "harness" / "problem").glob("*.py"))]
    read_by = length_prefixed_sha256(*(file.read_bytes() for file in code))
    kept = [
        _kept_statement(each, memory, private, settings.checkouts, now, read_by)
        for each in problem_directories(settings)
    ]
    return SiteInputs(
        ledgers=tuple(sorted(settings.locate("results").glob("*.jsonl"))),
        archive=settings.locate("archive"),
        archive_name=settings.archive.as_posix(),
        now=now,
        current=current(settings, {each.slug: each.sha256 for each in kept}),
        statements=tuple(kept),
        calibrations=tuple(stored(settings)),
        reference=settings.locate("reference"),
        reference_name=settings.reference.as_posix(),
        url=settings.site_url or "",
        teams=settings.teams,
        title=settings.title or "",
        how_to_submit=settings.how_to_submit or "",
        index=index(settings),
    )


def _kept_statement(
    directory: Path, memory: Path, private: Path | None, checkouts: Checkouts, now: datetime, read_by: str
) -> Statement:
    """A problem's statement, from the cache unless one of its files or its hash has changed, or the code, whose hash is
    `read_by`.
    """
    from harness.files.identity import length_prefixed_sha256
    from harness.problem import load
    from harness.problem.load import identify
    from leaderboard.publishing.site.statement import Statement
    from leaderboard.record.durable import write_whole

    parts = [directory / name for name in ("problem.toml", "reference.py", "README.md")]
    try:
        content = [outside.read(file, outside.TEXT_BYTES, follow=True) if file.is_file() else b"" for file in parts]
    except OSError as error:
        raise ProblemError(str(directory), f"cannot be read ({error.strerror})") from error
    content.append(read_by.encode())
    if private is not None:
        content.append(identify(directory, private, now).encode())  # it covers the private cases that count now
    kept = memory / "problems" / f"{directory.name}-{length_prefixed_sha256(*content)[:16]}.json"
    with contextlib.suppress(OSError, ValueError):
        return Statement.model_validate_json(kept.read_bytes())
    statement = _statement(load(directory, private, now, checkouts))
    try:
        for older in kept.parent.glob(f"{directory.name}-????????????????.json"):
            older.unlink()
        write_whole(kept, statement.model_dump_json().encode(), replace=True)
    except OSError as error:
        raise HarnessError(f"{kept}: cannot be written ({error.strerror})") from error
    return statement


def _statement(problem: Problem) -> Statement:
    from kernelmark.record.publishing import rule
    from leaderboard.publishing.site.statement import Statement

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
    from leaderboard.publishing.site.statement import Shapes

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


def _state(settings: Settings) -> list[tuple[str, int, int]]:
    """A value that changes when a file does that the site is made from."""
    from kernelmark.project.problems import private_folder
    from leaderboard.record.profile import SUFFIX

    private = private_folder(settings)
    files = [
        *(private.glob("*.toml") if private else ()),
        *settings.locate("results").glob("*.jsonl"),
        *settings.locate("archive").glob(f"*/*/*{SUFFIX}"),
        *settings.locate("problems").glob("*/*"),
        *settings.locate("reference").glob("*/*"),
        *settings.locate("devices").glob("*.json"),
    ]
    state = []
    for file in sorted(files):
        try:
            status = file.stat()
        except FileNotFoundError:
            continue
        state.append((str(file), status.st_mtime_ns, status.st_size))
    return state


def _argument(tensor: ResolvedTensor | TensorSpec) -> StatedArgument:
    from leaderboard.publishing.site.statement import StatedArgument

    shape = f"[{', '.join(map(str, tensor.shape))}]"
    if tensor.strides is not None:
        shape += f", strides [{', '.join(map(str, tensor.strides))}]"
    return StatedArgument(name=tensor.name, role=tensor.role, shape=shape, dtype=tensor.dtype, memory=tensor.memory)
