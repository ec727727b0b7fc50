"""Debugs one test of a problem: writes the tensors of a failed one, and runs one in a process of the user's terminal.

The judge's process never imports a submission, so the call is made by a program of its own, `harness.debug`, which has
this terminal's input and output. Trusted, but for that program: it runs the submission as the user who called it.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.device import DEVICES
from harness.errors import SubmissionError, UsageError
from harness.files.outside import real
from harness.kinds import DeviceKind
from harness.languages import LANGUAGES
from harness.problem import Problem
from harness.shared.foreign import ForeignForm
from harness.submission import Submission
from harness.verdict import CaseResult, Outcome
from kernelmark.project.choice import choose_device, choose_provider
from kernelmark.project.problems import find_problem, visible_test
from kernelmark.project.settings import Settings

if TYPE_CHECKING:
    from harness.judge.correctness.failed_test import FailedTest

_FRAME = re.compile(r'^  File "(.*)", line (\d+) in (.*)$', re.MULTILINE)
_SHOWN_FRAMES = 3
_KEYS = {"problem", "test", "params", "device", "seed"}


@dataclass(frozen=True)
class DebugCall:
    """One call to make: which test, with which sizes, and with which inputs, if they are to be those of a dump."""

    problem: Problem
    files: tuple[Path, ...]
    """The submission's own, then those beside it."""
    device: DeviceKind
    test: str
    params: dict[str, int | str]
    seed: int | None = None
    sandbox: tuple[str, str, list[str], str] | None = None
    """Where a foreign reference runs: the provider's name and options."""
    checkouts: Mapping[ForeignForm, Path] = field(default_factory=dict)


def dump(failed: FailedTest, folder: Path) -> Path:
    """Write the tensors of a failed test to `FOLDER/TEST.pt`, which `torch.load` reads; returns its path.

    Raises:
        UsageError: it cannot be written.
    """
    import torch

    path = folder / (re.sub(r"[^\w.-]+", "_", failed.test) + ".pt")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        torch.save(vars(failed), path)
    except (OSError, RuntimeError) as error:
        raise UsageError(str(path), f"cannot be written ({error})", "name another folder with --dump") from None
    return path


def prepare(settings: Settings, problem: str, files: tuple[Path, ...], test: str | None) -> DebugCall:
    """The test of that name, or the first; one with sizes that are drawn gets the least of them.

    Raises:
        UsageError: there is no such problem, test or file, or the file cannot run on the device.
    """
    found = find_problem(settings, problem)
    device = _device(settings, files)
    chosen = visible_test(found, device, test)
    params = next(iter(chosen.extremes())).params
    sandbox = _sandbox(settings, found)
    return DebugCall(found, files, device, chosen.name, params, sandbox=sandbox, checkouts=settings.checkouts)


def prepare_again(settings: Settings, problem: str, files: tuple[Path, ...], dumped: Path) -> DebugCall:
    """The call of a failed test, with the same inputs, from the file that `dump` wrote.

    Raises:
        UsageError: as for `prepare`, or the file is not a dump of a test of this problem on this device.
    """
    found, device, kept = find_problem(settings, problem), _device(settings, files), _read(dumped)
    if kept["problem"] != found.slug:
        raise UsageError(str(dumped), f"is of the problem {kept['problem']}, not of {found.slug}")
    if kept["device"] != device:
        what = f"is of the device {kept['device']}, on which the same seed gives other inputs than on {device}"
        raise UsageError(str(dumped), what, f"use --device {kept['device']}")
    if kept["test"] not in {each.name for each in found.tests}:
        raise UsageError(str(dumped), f"is of the test {kept['test']!r}, which {found.slug} no longer has")
    sandbox = _sandbox(settings, found)
    return DebugCall(found, files, device, kept["test"], kept["params"], kept["seed"], sandbox, settings.checkouts)


def run(call: DebugCall, *, interactive: bool) -> CaseResult | int:
    """Make the call in this terminal; returns the test's result, or the exit status if it did not come so far."""
    command = [sys.executable, "-P", "-m", "harness.debug", str(call.problem.directory), str(call.files[0]), call.test]
    command += ["--device", call.device, "--params", json.dumps(call.params)]
    command += [word for each in call.files[1:] for word in ("--with", str(each))]
    command += ["--seed", str(call.seed)] if call.seed is not None else []
    command += ["--sandbox", json.dumps(call.sandbox)] if call.sandbox is not None else []
    command += ["--checkouts", json.dumps({form: str(path) for form, path in call.checkouts.items()})]
    command += ["--interactive"] if interactive else []
    reading, writing = os.pipe()
    environment = {**os.environ, **DEVICES[call.device].runner_environment}
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C belongs to the submission
    try:
        with tempfile.TemporaryFile() as file:
            command += ["--result", str(writing), "--stack", str(file.fileno())]
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
        ended = f"its process was ended by {signal.Signals(-status).name}{_where(stack, call.files)}"
        why = f"{ended}: did it write to an input or outside a tensor?"
        return CaseResult(name=call.test, params=call.params, outcome=Outcome.RUNTIME_ERROR, message=why)
    return CaseResult.model_validate_json(document) if document else status


def _where(stack: str, files: Sequence[Path]) -> str:
    """The user's own lines of a stack that faulthandler wrote, the innermost first."""
    own = {str(real(path)): "" if path is files[0] else f"{path.name} " for path in files}
    frames = [f"{own[file]}line {line} in {function}" for file, line, function in _FRAME.findall(stack) if file in own][
        :_SHOWN_FRAMES
    ]
    return f" at {', called from '.join(frames)}" if frames else ""


def _device(settings: Settings, files: tuple[Path, ...]) -> DeviceKind:
    """The device to run the files on, which are read once so that a bad one fails here."""
    language = Submission.read(files[0], "me", files[1:]).language
    device = choose_device(settings.device, language)
    if device not in LANGUAGES[language].devices:
        raise SubmissionError(files[0].name, f"a .{language} kernel does not run on the device {device}")
    return device


def _sandbox(settings: Settings, problem: Problem) -> tuple[str, str, list[str], str] | None:
    if problem.foreign is None:
        return None
    name, binds = choose_provider(settings).name, [str(each) for each in settings.docker_binds]
    return name, settings.image, binds, settings.docker_python


def _read(path: Path) -> dict[str, Any]:
    import torch

    try:
        kept = torch.load(path, weights_only=True)
    except OSError as error:
        raise UsageError(str(path), f"cannot be read ({error.strerror})") from None
    except Exception as error:  # noqa: BLE001 - of unpickling, which refuses all but tensors, numbers and texts
        raise UsageError(str(path), f"is not a dump of a test ({type(error).__name__})") from None
    if not isinstance(kept, dict) or not kept.keys() >= _KEYS:
        raise UsageError(str(path), "is not a dump of a test", "make one with `kernelmark check --dump DIR`")
    return kept
