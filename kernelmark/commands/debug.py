"""`kernelmark debug`: runs one test in this terminal, without a sandbox."""

from __future__ import annotations

from pathlib import Path

import click

from harness.errors import UsageError
from kernelmark.commands import complete
from kernelmark.commands.options import beside_option, device_option, load_settings
from kernelmark.text.terminal import print_lines, say


@click.command()
@click.argument("problem", shell_complete=complete.problems)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--test", metavar="NAME", help="Which test. [default: the first]")
@click.option(
    "--from",
    "dumped",
    type=click.Path(path_type=Path),
    metavar="DUMP",
    help="Repeat a failed test with the same inputs, from a file that `kernelmark check --dump` wrote.",
)
@click.option(
    "-i",
    "--interactive",
    is_flag=True,
    help="Afterwards open a Python prompt with the tensors, or the debugger where an exception was raised.",
)
@beside_option
@device_option("Where to run it; on the CPU, Triton runs in its interpreter.")
def debug(
    problem: str,
    file: Path,
    test: str | None,
    dumped: Path | None,
    interactive: bool,
    beside: tuple[Path, ...],
    device: str | None,
) -> int:
    """Run one test of PROBLEM in this terminal, where prints and `breakpoint()` work in FILE.

    Nothing isolates FILE: it runs with your own privileges. There is no time limit, and nothing is timed or recorded.
    In the debugger, `kernelmark_test.inputs` and `kernelmark_test.expected` hold the tensors by name.

    Exit status: 0 right, 1 wrong answer, 2 usage, 3 compile error, 4 the call raised, crashed or was quit, 7 our fault.
    """
    from harness.verdict import Outcome
    from kernelmark.authoring import debugging
    from kernelmark.project.problems import find_problem, visible_tests
    from kernelmark.text import findings

    if test is not None and dumped is not None:
        raise UsageError("--from", "says which test it is", "leave out --test")
    settings = load_settings(problem, device=device)
    request = debugging.prepare(settings, problem, (file, *beside), test, dumped)
    where = f"in this terminal on the {request.device}"
    say(f"{request.problem.name}, test {request.test}, {where}: nothing isolates {file.name}")
    result = debugging.run(request.model_copy(update={"interactive": interactive}))
    if isinstance(result, int):
        return result
    if result.outcome is Outcome.ACCEPTED:
        tests = len(visible_tests(find_problem(settings, problem), request.device))
        by_default = test is None and dumped is None and tests > 1
        more = f"; --test NAME runs another of the {tests} tests" if by_default else ""
        print_lines([f"{findings.named(result)}: right{more}", *findings.outputs(result)])
    else:
        print_lines([findings.line(result), *findings.outputs(result)])
    return result.outcome.exit_code
