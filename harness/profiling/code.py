"""Collects the code that a submission was compiled to, as its own process reports it.

Trusted; the reports are not, so they are bounded and made printable.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from harness.device import DEVICES
from harness.judge.correctness.graded_case import GradedCase
from harness.profiling.watch import artefacts
from harness.sandbox import Provider
from harness.submission import Submission
from harness.wire import checks, commands
from harness.wire.checks import printable, strict_json

_PLACE = re.compile(r'File "[^"\n]*/([\w.-]+)", line (\d{1,6})(?=\n|,)')
_FILES, _NAME, _TEXT = 200, 80, 2 << 20
_RESOURCES = 100  # kernels
_USED = re.compile(r"(?am)^ Function (.{1,200}):\n +REG:(\d{1,9}) STACK:(\d{1,9}) SHARED:(\d{1,9}) LOCAL:(\d{1,9})")


@dataclass
class CompiledCode:
    """Compiled code by file name: Triton's stages, PTX, SASS, the kernels' resources, and torch.compile's output."""

    files: dict[str, str] = field(default_factory=dict)
    unreadable: list[str] = field(default_factory=list)
    """One line for each document that arrived but could not be read."""

    @property
    def resources(self) -> list[tuple[str, ...]]:
        """A table of the resources of each kernel, as cuobjdump prints them: first a row of headings; empty if none."""
        texts = (text for name, text in self.files.items() if name.endswith("resources.txt"))
        rows = islice((match.groups() for text in texts for match in _USED.finditer(text)), _RESOURCES)
        head = ("kernel", "registers", "stack (B)", "shared (B)", "local (B)")
        return [head, *found] if (found := list(rows)) else []


def compiled_code(submission: Submission, case: GradedCase, provider: Provider) -> CompiledCode:
    """Build the submission and call it once in its own sandbox, then collect the compiled code.

    Without a GPU, Triton's kernels are compiled for the architecture of the published boards, sm_90a, and not launched.

    Raises:
        SubmissionFault: it cannot be built or called, or its process broke the protocol.
        HarnessError: the sandbox or the device failed.
    """
    device = DEVICES[case.device]
    only = commands.CompileOnly(architecture=device.architecture()) if device.on_host else None
    found = artefacts(submission, case, provider, commands.Inspect(), doing="collecting its code", sets=1, first=only)
    code = CompiledCode(unreadable=found.too_large)
    for name, content in found.documents.items():
        _read(code, name, content)
    named = ((f"submission.{submission.language}", submission.source), *submission.beside)
    sources = {name: content.decode("utf-8", "replace").splitlines() for name, content in named}
    code.files = {
        name: _with_sources(text, sources) if name.endswith(".sass") else text for name, text in code.files.items()
    }
    return code


def _with_sources(sass: str, sources: Mapping[str, Sequence[str]]) -> str:
    """Append the submission's source line to each line of the disassembly that refers to one."""

    def named(place: re.Match[str]) -> str:
        lines, number = sources.get(place[1], ()), int(place[2])
        return f"{place[0]}  {printable(lines[number - 1].strip())}" if 0 < number <= len(lines) else place[0]

    return _PLACE.sub(named, sass)


def _read(code: CompiledCode, name: str, content: bytes) -> None:
    try:
        document = strict_json(content)
        files = document.get("files") if isinstance(document, Mapping) else None
        if not isinstance(files, Mapping):
            raise checks.WireError("not a list of files")
    except checks.WireError as error:
        code.unreadable.append(f"{name}: {error}")
        return
    for number, (path, text) in enumerate(files.items()):
        if number == _FILES:
            code.unreadable.append(f"{name}: {len(files):,} files, of which {_FILES} are kept")
            return
        if isinstance(text, str) and text:
            code.files.setdefault(_file_name(path), printable(text[:_TEXT]))


def _file_name(text: str) -> str:
    """Turn a text into a file name that is safe in every file system, without folders or a leading dot."""
    return re.sub(r"[^\w.-]+", "-", text, flags=re.ASCII).lstrip(".-")[:_NAME] or "unnamed"
