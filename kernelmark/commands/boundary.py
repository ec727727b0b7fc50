"""Turns the result or the exception of a command into one line and an exit status. Trusted.

The exit status is that of the outcome or the exception: 0 accepted, 1 wrong answer, 2 usage, 3 compile error, 4 runtime
error or memory limit, 5 timeout, 6 rejected, 7 our fault, 8 unsupported, 9 incomplete, 10 submitted
to a server and not awaited, 130 interrupted.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NoReturn

import click

from harness.errors import HarnessError, KernelmarkError, UsageError
from kernelmark.commands.help import SECTIONS, Group
from kernelmark.project.documents import Printed, failed, failed_by
from kernelmark.text.terminal import print_text, unexpected

INTERRUPTED, TERMINATED = 130, 143
GRADE = ("torch", "triton", "numpy", "filelock", "docker", "yaml")  # the modules of the extra `grade`
UNIX = ("fcntl", "resource", "termios", "pwd", "grp")  # which Windows does not have


class Boundary(click.Command):
    """A command that ends the process, and turns any exception into one line and an exit status."""

    def main(  # type: ignore[override]  # never returns, whatever standalone_mode says
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> NoReturn:
        signal.signal(signal.SIGTERM, _terminate)
        if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # `nohup` ignores it
            # A terminal was closed. The handler of SIGTERM may by then be that of a server.
            signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))
        words = sys.argv[1:] if args is None else [*args]
        form = "json" if "--format=json" in words or ("--format", "json") in pairwise(words) else "table"
        Printed.yet = False
        try:
            if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # until now `scripts` handles it
                signal.signal(signal.SIGINT, signal.default_int_handler)
            status = super().main(args, prog_name, **{**extra, "standalone_mode": False})
        except (click.Abort, KeyboardInterrupt):
            status = failed(form, INTERRUPTED, "interrupted", "interrupted")
        except click.exceptions.NoArgsIsHelpError as error:  # a bare group, such as `kernelmark site`
            print_text(error.format_message())
            status = 0
        except click.UsageError as error:
            see = f" (see `{error.ctx.command_path} --help`)" if error.ctx else ""
            status = failed(form, error.exit_code, "usage", error.format_message() + see)
        except click.ClickException as error:
            status = failed(form, error.exit_code, "usage", error.format_message())
        except KernelmarkError as error:
            status = failed_by(form, error)
        except ModuleNotFoundError as error:
            status = _not_installed(form, error)
        except Exception as error:  # noqa: BLE001 - the process ends here, and the traceback is kept
            status = _unexpected(form, error)
        sys.exit(status if isinstance(status, int) else 0)

    def invoke(self, context: click.Context) -> Any:
        """As in click, except that click exits with 1 on a broken pipe, and 1 means a wrong answer."""
        try:
            return super().invoke(context)
        except BrokenPipeError as error:
            return _unexpected("table", error)


class BoundaryGroup(Boundary, Group):
    """The same for a group."""

    sections = SECTIONS


def _not_installed(form: str, error: ModuleNotFoundError) -> int:
    """Report a missing package. Commands that grade look for torch before they begin; others import it when needed."""
    package = (error.name or "").partition(".")[0]
    if package in UNIX:
        return failed_by(form, UsageError("this command", "needs Linux", "with --to, a server grades your kernel"))
    from kernelmark.project.choice import missing

    if package not in GRADE:
        return _unexpected(form, error)
    return failed_by(form, missing(package))


def _unexpected(form: str, error: Exception) -> int:
    return failed(form, HarnessError.exit_code, "unexpected", unexpected(error))


def _terminate(_signal: int, _frame: object) -> NoReturn:
    """SIGTERM unwinds the stack, so that sandboxes are closed on the way out."""
    sys.exit(TERMINATED)
