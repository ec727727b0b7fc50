"""Debugs one test of a problem: writes the tensors of a failed test, and runs a test in the user's terminal.

The judge's process never imports a submission, so a separate program, `harness.debug`, makes the call. It has this
terminal's input and output, and runs the submission with the user's rights; everything else here is trusted.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.debug import DebugRequest
from harness.device import DEVICES
from harness.errors import SubmissionError, UsageError
from harness.files.outside import real
from harness.kinds import DeviceKind
from harness.languages import LANGUAGES
from harness.problem import Problem
from harness.problem.schedule import Schedule
from harness.sandbox import Options
from harness.submission import Submission
from harness.verdict import CaseResult, Outcome
from kernelmark.project.choice import choose_device, choose_provider
from kernelmark.project.problems import find_problem, visible_test
from kernelmark.project.settings import Settings
from leaderboard.record.durable import writing

if TYPE_CHECKING:
    from harness.judge.correctness.graded_case import FailedTest

_FRAME = re.compile(r'^  File "(.*)", line (\d+) in (.*)$', re.MULTILINE)
_SHOWN_FRAMES = 3
_KEYS = {"problem", "test", "params", "device", "seed"}


def dump(failed: FailedTest, folder: Path) -> Path:
    """Write the tensors of a failed test to `FOLDER/TEST.pt`, which `torch.load` reads; returns its path.

    Raises:
        UsageError: it cannot be written.
    """
    import torch

    path = folder / (re.sub(r"[^\w.-]+", "_", failed.test) + ".pt")
    try:
        with writing(path.absolute()) as file:
            torch.save(vars(failed), file)
    except OSError as error:
        raise UsageError(
            str(path), f"cannot be written ({error.strerror})", "name another folder with --dump"
        ) from None
    return path


def prepare(
    settings: Settings, problem: str, files: tuple[Path, ...], test: str | None, dumped: Path | None = None
) -> DebugRequest:
    """The test with this name, or the first test, with the smallest sizes that it can draw; or a dumped test.

    Args:
        files: the submission's own, then the others.
        dumped: a file that `dump` wrote for a failed test.

    Raises:
        UsageError: there is no such problem, test or file, the file cannot run on the device, or `dumped` is not a dump
        of a test of this problem on this device.
    """
    found = find_problem(settings, problem)
    language = Submission.read(files[0], "me", files[1:]).language
    device = choose_device(settings.device, language)
    if device not in LANGUAGES[language].devices:
        why = "" if settings.device == "cpu" else ", and there is no GPU here to run it on"
        raise SubmissionError(files[0].name, f"a .{language} kernel does not run on the device {device}{why}")
    if dumped is None:
        chosen = visible_test(found, device, test)
        kept: dict[str, Any] = {"test": chosen.name, "params": next(iter(chosen.extremes())).params}
    else:
        kept = _read(dumped, found, device)
    options = Options(settings.image, settings.docker_binds, settings.docker_python)
    return DebugRequest(
        problem=real(found.directory),
        files=files,
        device=device,
        test=kept["test"],
        params=kept["params"],
        seed=kept.get("seed"),
        sandbox=None if found.foreign is None else (choose_provider(settings).name, options),
        checkouts=settings.checkouts,
        schedule=Schedule(**{key: getattr(found, key) for key in Schedule.model_fields}),
    )


def run(request: DebugRequest) -> CaseResult | int:
    """Make the call in this terminal; returns the test's result, or the exit status if there is no result."""
    command = [sys.executable, "-P", "-m", "harness.debug", request.model_dump_json()]
    reading, writing = os.pipe()
    environment = {**os.environ, **DEVICES[request.device].runner_environment}
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C belongs to the submission
    try:
        with tempfile.TemporaryFile() as file:
            command += [str(writing), str(file.fileno())]
            process = subprocess.Popen(command, env=environment, pass_fds=[writing, file.fileno()])
            os.close(writing)
            with os.fdopen(reading, "rb") as result:
                document = result.read()
            status = process.wait()
            file.seek(0)
            stack = file.read().decode("utf-8", "replace")
    finally:
        signal.signal(signal.SIGINT, before)
    if status < 0:
        ended = f"its process was ended by {signal.Signals(-status).name}{_where(stack, request.files)}"
        why = f"{ended}: did it write to an input or outside a tensor?"
        return CaseResult(name=request.test, params=request.params, outcome=Outcome.RUNTIME_ERROR, message=why)
    return CaseResult.model_validate_json(document) if document else status


def _where(stack: str, files: Sequence[Path]) -> str:
    """The user's own lines of a stack that faulthandler wrote, the innermost first."""
    own = {str(real(path)): "" if path is files[0] else f"{path.name} " for path in files}
    frames = [f"{own[file]}line {line} in {function}" for file, line, function in _FRAME.findall(stack) if file in own][
        :_SHOWN_FRAMES
    ]
    return f" at {', called from '.join(frames)}" if frames else ""


def _read(path: Path, problem: Problem, device: DeviceKind) -> dict[str, Any]:
    """The test, the sizes and the seed of a dump of this problem."""
    import torch

    try:
        kept = torch.load(path, weights_only=True)
    except OSError as error:
        raise UsageError(str(path), f"cannot be read ({error.strerror})") from None
    except Exception as error:  # noqa: BLE001 - of unpickling, which refuses all but tensors, numbers and texts
        raise UsageError(str(path), f"is not a dump of a test ({type(error).__name__})") from None
    if not isinstance(kept, dict) or not kept.keys() >= _KEYS:
        raise UsageError(str(path), "is not a dump of a test", "make one with `kernelmark check --dump DIR`")
    if kept["problem"] != problem.slug:
        raise UsageError(str(path), f"is of the problem {kept['problem']}, not of {problem.slug}")
    if kept["device"] != device:
        what = f"is of the device {kept['device']}, on which the same seed gives other inputs than on {device}"
        raise UsageError(str(path), what, f"use --device {kept['device']}")
    if kept["test"] not in {test.name for test in problem.tests}:
        raise UsageError(str(path), f"is of the test {kept['test']!r}, which {problem.slug} no longer has")
    return kept
