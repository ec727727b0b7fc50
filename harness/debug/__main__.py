"""`python -m harness.debug REQUEST RESULT STACK` runs one test in this terminal.

REQUEST is a `DebugRequest` as JSON. The result is written as JSON to the descriptor RESULT. If a signal ends the
process, Python's stack is written to the descriptor STACK. The exit status is that of the result's outcome. There is no
result if the submission cannot be built (3) or raises (4).
"""

from __future__ import annotations

import bdb
import code
import faulthandler
import importlib.util
import os
import pdb
import sys
import tempfile
import traceback
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import TracebackType
from typing import cast

import torch

from harness.arena.shapes import copied
from harness.debug import DebugRequest
from harness.errors import KernelmarkError
from harness.files.outside import real
from harness.judge.correctness.cases import Correctness
from harness.judge.correctness.graded_case import GradedCase
from harness.judge.correctness.oracle import load_reference
from harness.judge.session import BuildRequest, Session
from harness.judge.session.time_limit import TimeLimit
from harness.languages import LANGUAGES
from harness.problem import load
from harness.runner.build import build, import_python
from harness.runner.compiling import CompileError, add_extra_file, put_source
from harness.runner.device import RunnerDevice
from harness.runner.devices import open_device
from harness.runner.faults import describe
from harness.runner.kernel import BuiltKernel, CallError
from harness.runner.serve import RunnerServer
from harness.sandbox import provider
from harness.submission import Submission
from harness.verdict import Outcome
from harness.wire import commands, replies

Tensors = dict[str, torch.Tensor]

IN_MODULE = "kernelmark_test"
"""The name of the `DebuggedCall` in a Python submission's module, for `breakpoint()`; it is set before the call."""


def main() -> int:
    """Run one test; returns the exit status."""
    request = DebugRequest.model_validate_json(sys.argv[1])
    result, stack = map(int, sys.argv[2:])
    faulthandler.enable(stack, all_threads=False)
    try:
        problem = load(request.problem, checkouts=request.checkouts, schedule=request.schedule)
        test = next(test for test in problem.tests if test.name == request.test)
        case = problem.resolve(test.model_copy(update={"params": request.params, "draw": {}}))
        with closing(load_reference(problem, provider(*request.sandbox or ("process",)), request.device)) as reference:
            graded = GradedCase(problem, reference, request.device, case, seed=request.seed)
            return _run(request, graded, result)
    except KernelmarkError as error:
        print(f"kernelmark: error: {error}", file=sys.stderr)
        return error.exit_code


def _run(request: DebugRequest, graded: GradedCase, descriptor: int) -> int:
    device = open_device(request.device)
    path, *others = map(real, request.files)
    home = tempfile.TemporaryDirectory()  # it contains compiled code, so it must live as long as the process
    try:
        kernel = _built_kernel(path, others, graded, device, home.name)
        session = _LocalSession(graded, RunnerServer(device, kernel))
        result = Correctness().run(cast(Session, session), graded, graded.name)
        session.server.obey(commands.Release(), ())
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
        if isinstance(error, SyntaxError) and own is error.__traceback__:  # no code of the file has run
            failed = describe(error, building=True)
            print(f"compile error: {failed.message}\n{failed.traceback}", end="", file=sys.stderr)
            return Outcome.COMPILE_ERROR.exit_code
        traceback.print_exception(type(error), error, own)
        if request.interactive:
            pdb.post_mortem(own)
        return (Outcome.COMPILE_ERROR if isinstance(error, SyntaxError) else Outcome.RUNTIME_ERROR).exit_code
    with os.fdopen(descriptor, "wb") as out:
        out.write(result.model_dump_json().encode())
    if request.interactive:
        right = result.outcome is Outcome.ACCEPTED
        print("right" if right else f"{result.outcome.value.replace('_', ' ')} {result.message}")
        names = dict(vars(session.call))
        code.interact(f"names: {', '.join(names)} (tensors by name); Ctrl-D ends", local=names, exitmsg="")
    return result.outcome.exit_code


@dataclass
class DebuggedCall:
    """The tensors of the call, by name."""

    inputs: Tensors = field(default_factory=dict)
    """Copies of the inputs and of the initial values of `inout` tensors."""
    outputs: Tensors = field(default_factory=dict)
    """The outputs after the call; empty before it."""
    expected: Tensors = field(default_factory=dict)
    """The results of the reference, in float64 except for integers."""


class _LocalSession:
    """Replaces a session with a runner: commands are executed in this process, without time limits.

    Exceptions of the submission are not caught, and the tensors are kept for a debugger.
    """

    def __init__(self, case: GradedCase, server: RunnerServer) -> None:
        self._case, self.server, self.call = case, server, DebuggedCall()

    def ask(
        self,
        command: commands.Command,
        expect: type[replies.Reply],
        *,
        limit: TimeLimit,
        doing: str,
        descriptors: Sequence[int] = (),
    ) -> replies.Reply:
        """Execute a command like a runner; for a call, also copy its tensors, for a debugger."""
        if not isinstance(command, commands.Call):
            return self.server.obey(command, descriptors)
        tensors = self._tensors()
        read = {slot.tensor.name for slot in self._case.layout.slots if slot.tensor.role != "output"}
        self.call.inputs = {name: copied(tensor) for name, tensor in tensors.items() if name in read}
        stacked = {name: tensor[None] for name, tensor in self.call.inputs.items()}
        self.call.expected = {name: truth[0] for name, truth in self._case.truth(stacked, 1).truth.items()}
        if (module := sys.modules.get("submission")) is not None:
            setattr(module, IN_MODULE, self.call)
        try:
            return self.server.obey(command, ())
        finally:
            written = {slot.tensor.name for slot in self._case.layout.outputs}
            self.call.outputs = {name: copied(tensor) for name, tensor in tensors.items() if name in written}

    def _tensors(self) -> Tensors:
        """The tensors of the next call, by name."""
        [arguments] = self.server.bound.arguments
        present = (argument for argument in arguments if argument is not None)
        flat = [tensor for argument in present for tensor in (argument if isinstance(argument, list) else [argument])]
        return dict(zip((slot.tensor.name for slot in self._case.layout.slots), flat, strict=True))


class _ExtraFilesFinder(MetaPathFinder):
    """Imports a submission's extra files from where they are."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = {path.stem: path for path in paths}

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        """The spec of a module if it is one of the extra files."""
        at = self._paths.get(fullname)
        return importlib.util.spec_from_file_location(fullname, at) if at is not None else None


def _built_kernel(
    path: Path, others: Sequence[Path], graded: GradedCase, device: RunnerDevice, home: str
) -> BuiltKernel:
    """Build the submission. Python is imported from its own path, so that an editor's breakpoints work."""
    submission = Submission.read(path, "me", others)
    request = BuildRequest.of(graded.problem, submission, [graded.resolved], graded.device, line_info=True)
    compiled = LANGUAGES[submission.language].compiler is not None
    if compiled or request.extra_files:
        os.environ["HOME"] = home
    for name, content in request.extra_files.items():
        add_extra_file(name, content)
    if not compiled:
        sys.meta_path.insert(0, _ExtraFilesFinder(others))
        return import_python(path, request.build, device)
    with path.open("rb") as source:
        put_source(request.build, source.fileno())
    return build(request.build, device)[0]


def _quit_debugger(error: BaseException | None) -> bool:
    """Whether the user quit the debugger; Triton's interpreter wraps that exception in its own."""
    return isinstance(error, bdb.BdbQuit) or (
        error is not None and _quit_debugger(error.__cause__ or error.__context__)
    )


def _from_own_file(trace: TracebackType | None, path: Path) -> TracebackType | None:
    """The traceback from the submission's first frame on; the whole traceback if it has none."""
    own = trace
    while own is not None and own.tb_frame.f_code.co_filename != str(path):
        own = own.tb_next
    return own or trace


if __name__ == "__main__":
    sys.exit(main())
