"""`kernelmark import`: writes folders of problems that refer to the problems of other projects."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.errors import SandboxError, UsageError
from kernelmark.commands.help import Group
from kernelmark.commands.options import combined, device_option, load_settings, sandbox_option
from kernelmark.text.terminal import counted, print_lines, say, visible

if TYPE_CHECKING:
    from harness.shared.foreign import ForeignForm
    from kernelmark.interop.importing import Imported


@click.group("import", cls=Group)
def importing() -> None:
    """Problems of other projects, from a checkout on this machine."""


_options = combined(
    click.argument("path", type=click.Path(path_type=Path, file_okay=False)),
    device_option("Whether their code may use the GPU."),
    sandbox_option("What isolates their code, which runs once for each problem."),
    click.option(
        "--jobs", type=click.IntRange(min=1), metavar="N", default=2, help="How many to run at a time. [default: 2]"
    ),
    click.option(
        "--into",
        type=click.Path(path_type=Path, file_okay=False),
        metavar="DIR",
        help="Where the folders are written, without baselines. [default: the project's problems]",
    ),
    click.option("--force", is_flag=True, help="Write problems again that were imported before."),
)


@importing.command("gpu-mode")
@_options
@click.argument("name", nargs=-1)
def import_gpu_mode(path: Path, name: Sequence[str], **flags: Any) -> int:
    """Import problems of gpu-mode from PATH, a checkout of reference-kernels.

    NAME is a problem, such as pmpp_v2/sort_py, or a set of them, such as pmpp_v2; without one, every problem is
    imported. A line for each says that it was imported, or why not.

    Exit status: 0 if at least one was imported, 2 if none was.
    """
    return _import("gpu-mode", path, name, **flags)


@importing.command("kernelbench")
@_options
@click.argument("name", metavar="[LEVEL/ID]...", nargs=-1)
def import_kernelbench(path: Path, name: Sequence[str], **flags: Any) -> int:
    """Import problems of KernelBench from PATH, a checkout of it.

    LEVEL/ID is a problem, such as 1/19, and LEVEL alone a whole level; without one, every problem is imported. A line
    for each says that it was imported, or why not.

    Exit status: 0 if at least one was imported, 2 if none was.
    """
    return _import("kernelbench", path, name, **flags)


def _import(
    form: ForeignForm,
    path: Path,
    names: Sequence[str],
    *,
    into: Path | None,
    force: bool,
    jobs: int,
    sandbox: str | None,
    device: str | None,
) -> int:
    from harness.kinds import isolates
    from kernelmark.interop.importing import Importer
    from kernelmark.interop.importing.folder import name_checkout, project_around, refuse_another_checkout
    from kernelmark.project.choice import choose_device, choose_provider

    settings = load_settings(sandbox=sandbox, device=device)
    provider = choose_provider(settings)
    if not isolates(provider.name):
        if settings.sandbox == "auto":
            what = "neither docker nor bwrap can be used here, and nobody has read the code that is to run"
            raise SandboxError(what, "see `kernelmark doctor`; or read it, and name --sandbox process")
        say("kernelmark: warning: the code of these problems runs without isolation")
    reference = settings.locate("reference") if into is None else None  # baselines need the slugs in `problems`
    home = settings if into is None else project_around(into, settings)
    into = settings.locate("problems") if into is None else into
    refuse_another_checkout(home, form, path, into)
    importer = Importer(provider, choose_device(settings.device, "py"), into, home.root, force, reference)
    imported = left_out = 0
    for found in importer.all(form, path, names, jobs):
        print_lines([_line(found)])
        if found.problem is not None and not imported and (text := name_checkout(home, form, path, into)):
            say(f"kernelmark: {visible(text)}")
        imported += found.problem is not None
        left_out += found.problem is None
    print_lines([f"{imported:,} imported, {left_out:,} left out"])
    return 0 if imported else UsageError.exit_code


def _line(found: Imported) -> str:
    name = f"{found.form} {visible(found.label)}"
    if found.problem is None:
        return f"left out  {name}: {visible(found.reason)}"
    roles = [tensor.role for tensor in found.problem.tensors]
    size = f"{counted(roles.count('input'), 'input')}, {counted(roles.count('output'), 'output')}"
    remarks = "".join(f"; {visible(remark)}" for remark in found.remarks)
    return f"imported  {name}  as {visible(os.path.relpath(found.problem.directory))}  ({size}{remarks})"
