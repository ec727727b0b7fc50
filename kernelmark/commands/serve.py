"""The command `kernelmark serve`. Trusted. What it needs is imported when it runs: the extra `server`."""

from __future__ import annotations

import click

from harness.errors import UsageError
from kernelmark.commands.options import load_settings

EXTRA = ("fastapi", "starlette", "uvicorn", "sqlalchemy", "alembic", "python_multipart", "mako")


@click.command()
@click.option(
    "--listen", default="127.0.0.1:8080", show_default=True, metavar="IP:PORT", help="Where; port 0: any free one."
)
@click.option(
    "--behind-proxy", "proxy", metavar="IP",
    help="The address of a proxy with HTTPS, through which `url` in [server] of kernelmark.toml is reached.",
)  # fmt: skip
@click.option("--no-grading", is_flag=True, help="Grade nothing on this machine: `kernelmark worker` does on others.")
@click.option("--lost-token", "lost", is_flag=True, help="Print a link for an organizer whose token is lost.")
def serve(listen: str, proxy: str | None, no_grading: bool, lost: bool) -> None:
    """Take submissions over the network, queue them, have them graded, and record them in this project.

    Run it in the project's directory. The first time it prints a link by which you become its organizer.
    """
    try:
        from kernelmark.server import process
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in EXTRA:
            raise
        what = f"needs {error.name}, which is not installed"
        raise UsageError("serving", what, "pip install 'kernelmark[server]'") from None
    from kernelmark.project.problems import refuse_without_project
    from kernelmark.project.project import Project

    settings = load_settings()
    refuse_without_project(settings)
    place = process.listening(listen, proxy, settings.server.url)
    process.serve(Project.of(settings), place, grading=not no_grading, lost=lost)
