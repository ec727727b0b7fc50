"""`python -m harness.debug PROBLEM FILE TEST --device DEVICE --params JSON`: runs one test in this terminal.

A result is a JSON document, written to the descriptor `--result`. The exit status is that of its outcome. There is none
if the submission cannot be built (3) or raises (4).
"""

from __future__ import annotations

import argparse
import bdb
import code
import faulthandler
import importlib.util
import json
import os
import pdb
import sys
import tempfile
import traceback
from collections.abc import Sequence
from contextlib import closing
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import TracebackType
from typing import Any

from harness.debug.one_call import OneCall, run_test
from harness.device import DEVICES
from harness.errors import KernelmarkError
from harness.files.outside import real
from harness.judge.correctness.graded_case import GradedCase
from harness.judge.correctness.oracle import load_reference
from harness.judge.session import Handover
from harness.languages import LANGUAGES
from harness.problem import load
from harness.runner.build import CompileError, add_extra_file, build, import_python
from harness.runner.device import RunnerDevice
from harness.runner.devices import open_device
from harness.runner.kernel import BuiltKernel, CallError
from harness.sandbox import Options, Provider, provider
from harness.submission import Submission
from harness.verdict import Outcome

IN_MODULE = "kernelmark_test"
"""The name in a Python submission's module that holds the `OneCall`, for `breakpoint()`."""


def main() -> int:
    """Run one test; returns the exit status."""
    parser = argparse.ArgumentParser(prog="harness.debug")
    parser.add_argument("problem", type=Path)
    parser.add_argument("file", type=Path)
    parser.add_argument("test")
    parser.add_argument("--with", dest="beside", action="append", type=Path, default=[])
    parser.add_argument("--device", choices=tuple(DEVICES), required=True)
    parser.add_argument("--params", type=json.loads, required=True, help="the sizes and dtypes, as JSON")
    parser.add_argument("--seed", type=int, help="of the inputs; by default random")
    parser.add_argument(
        "--sandbox", type=json.loads, help="of a foreign reference: [name, image, binds, python] as JSON"
    )
    parser.add_argument("--checkouts", type=_paths, default={}, help="of foreign problems, by form, as JSON")
    parser.add_argument("--interactive", action="store_true")
    parser.add_argument("--result", type=int, default=1)
    parser.add_argument("--stack", type=int, default=2, help="the descriptor for Python's stack, if a signal ends it")
    given = parser.parse_args()
    faulthandler.enable(given.stack, all_threads=False)
    try:
        return _debugged(given)
    except KernelmarkError as error:
        print(f"kernelmark: error: {error}", file=sys.stderr)
        return error.exit_code


def _debugged(given: argparse.Namespace) -> int:
    problem = load(given.problem, checkouts=given.checkouts)
    test = next(each for each in problem.tests if each.name == given.test)
    case = problem.resolve(test.model_copy(update={"params": given.params, "draw": {}}))
    with closing(load_reference(problem, _provider(given.sandbox), given.device)) as reference:
        return _tested(given, GradedCase(problem, reference, given.device, case, seed=given.seed))


def _paths(text: str) -> dict[str, Path]:
    return {form: Path(path) for form, path in json.loads(text).items()}


def _provider(told: list[Any] | None) -> Provider:
    """Where a foreign reference runs; ours runs here, and asks for none."""
    if told is None:
        return provider("process")
    name, image, binds, python = told
    return provider(name, Options(image, tuple(map(Path, binds)), python))


def _tested(given: argparse.Namespace, graded: GradedCase) -> int:
    device = open_device(given.device)
    path = real(given.file)

    def about_to_call(call: OneCall) -> None:
        module = sys.modules.get("submission")
        if module is not None:
            setattr(module, IN_MODULE, call)

    home = tempfile.TemporaryDirectory()  # as long as the process: what is compiled lies in it
    try:
        kernel = _kernel(path, given.beside, graded, device, home.name)
        result, call = run_test(graded, kernel, device, about_to_call)
    except CompileError as error:
        print(error.log or error.message, file=sys.stderr)
        return Outcome.COMPILE_ERROR.exit_code
    except CallError as error:
        print(error, file=sys.stderr)
        return Outcome.RUNTIME_ERROR.exit_code
    except BaseException as error:  # noqa: BLE001 - whatever the submission raises, SystemExit included
        if _quit_debugger(error):
            return Outcome.RUNTIME_ERROR.exit_code
        own = _from_own_file(error.__traceback__, path)
        traceback.print_exception(type(error), error, own)
        if given.interactive:
            pdb.post_mortem(own)
        return (Outcome.COMPILE_ERROR if isinstance(error, SyntaxError) else Outcome.RUNTIME_ERROR).exit_code
    with os.fdopen(given.result, "wb") as out:
        out.write(result.model_dump_json().encode())
    if given.interactive:
        print(f"{result.outcome.value.replace('_', ' ')} {result.message}")
        names = {"inputs": call.inputs, "outputs": call.outputs, "expected": call.expected}
        code.interact(f"names: {', '.join(names)} (tensors by name); Ctrl-D ends", local=names, exitmsg="")
    return result.outcome.exit_code


class _WhereTheyAre(MetaPathFinder):
    """Finds the modules beside a submission."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = {path.stem: real(path) for path in paths}

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        """The module, if it is one of them."""
        at = self._paths.get(fullname)
        return importlib.util.spec_from_file_location(fullname, at) if at is not None else None


def _kernel(path: Path, beside: Sequence[Path], graded: GradedCase, device: RunnerDevice, home: str) -> BuiltKernel:
    """The submission, built: Python is imported from where it is, so that an editor's breakpoints fit."""
    submission = Submission.read(path, "me", beside)
    handover = Handover.of(graded.problem, submission, [graded.resolved], graded.device, line_info=True)
    compiled = LANGUAGES[submission.language].compiler is not None
    if compiled or handover.beside:
        os.environ["HOME"] = home
    for name, content in handover.beside.items():
        add_extra_file(name, content)
    if not compiled:
        sys.meta_path.insert(0, _WhereTheyAre(beside))
        return import_python(path, handover.build, device)
    with path.open("rb") as source:
        return build(handover.build, source.fileno(), device)[0]


def _quit_debugger(error: BaseException | None) -> bool:
    """Whether the user typed `q`; Triton's interpreter wraps that in an exception of its own."""
    return isinstance(error, bdb.BdbQuit) or (
        error is not None and _quit_debugger(error.__cause__ or error.__context__)
    )


def _from_own_file(trace: TracebackType | None, path: Path) -> TracebackType | None:
    """The traceback from the submission's first line on; all of it if it has none."""
    own = trace
    while own is not None and own.tb_frame.f_code.co_filename != str(path):
        own = own.tb_next
    return own or trace


if __name__ == "__main__":
    sys.exit(main())
