"""`kernelmark site`: builds the site, and serves it on this machine only."""

from __future__ import annotations

import functools
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.errors import KernelmarkError, UsageError
from harness.files.outside import real
from kernelmark.commands.help import Group
from kernelmark.commands.options import load_settings
from kernelmark.text.terminal import say, visible

if TYPE_CHECKING:
    from http.server import ThreadingHTTPServer

    from kernelmark.project.settings import Settings


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
    from kernelmark.record.site import state

    settings = load_settings()
    seen = state(settings)
    due = _build(settings, out)
    server = _begin(out, port)
    say(f"http://127.0.0.1:{server.server_port}/ (end with Ctrl-C)")
    try:
        while True:
            time.sleep(_POLL_S)
            now = state(settings)
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
    """Build once, and say in one line what was written. Returns when the site changes next by itself."""
    from kernelmark.project.problems import refuse_without_project
    from kernelmark.record.site import material, own_file_in
    from leaderboard.publishing.site.build import build as build_site

    started = time.perf_counter()
    refuse_without_project(settings)
    if own := own_file_in(settings, out):
        raise UsageError(str(out), f"holds files of the project itself ({own})", "name another --out")
    folder = real(out)
    memory = folder.with_name(folder.name + ".cache")
    made_from = material(settings, memory)
    written = build_site(made_from, out, memory)
    took = time.perf_counter() - started
    counts = f"{written.written:,} files written, {written.unchanged:,} unchanged, {written.removed:,} removed"
    say(f"{out}: {counts} in {took:.2f} s; open {out / 'index.html'}")
    rules = [statement.rule for statement in made_from.statements]
    changes = [moment for rule in rules for moment in (rule.closes, rule.freezes)]
    changes += [notice.at for notice in settings.announcements]
    return min((moment for moment in changes if moment is not None and moment >= made_from.now), default=None)


def _begin(folder: Path, port: int) -> ThreadingHTTPServer:
    """Serve a folder on 127.0.0.1 in threads of this process, until the server is shut down.

    Raises:
        UsageError: the port cannot be used.
    """
    from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

    class Quiet(SimpleHTTPRequestHandler):
        """Serves files without logging requests, and keeps browsers from caching old pages."""

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name that http.server gives it
            pass

        def end_headers(self) -> None:
            self.send_header("Cache-Control", "no-cache")
            super().end_headers()

    handler = functools.partial(Quiet, directory=str(folder))
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError as error:
        raise UsageError(f"port {port}", f"cannot be used ({error.strerror})", "name another with --port") from error
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
