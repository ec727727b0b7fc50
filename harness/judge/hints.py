"""What a participant should look at after a memory fault. `Grading` appends it to the outcome's message. Trusted."""

from __future__ import annotations

import shlex

from harness.device import DEVICES
from harness.judge.setup import Setup
from harness.languages import LANGUAGES
from harness.problem import ResolvedCase
from harness.problem.signature import prototypes


def debug(setup: Setup, case: ResolvedCase) -> str:
    """The command that finds the line that caused the fault; empty where Python cannot print it: on a GPU."""
    submission = setup.submission
    if submission.language != "py" or not DEVICES[setup.device].on_host:
        return ""
    words = ["kernelmark", "debug", setup.problem.slug, submission.name]
    for name, _ in submission.beside:
        words += ["--with", name]
    return f"; `{shlex.join([*words, '--device', setup.device, '--test', case.name])}` shows the line"


def declaration(setup: Setup, case: ResolvedCase) -> str:
    """What a compiled file should define, since arguments in another order are read as wrong pointers; else empty."""
    language = setup.submission.language
    if LANGUAGES[language].compiler is None:
        return ""
    return f"; is it declared as {prototypes(setup.problem, language)[case.symbol]}?"
