"""Says which file a submission lacks that lies beside it: a module that it imports, or a header that it includes.

The commands that grade a file call it. Trusted: names in a submission's message are looked for, and no file is read.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.languages.extra_files import refused
from kernelmark.text.terminal import say, visible

if TYPE_CHECKING:
    from harness.verdict import Check

_LACKING = re.compile(r"No module named '([A-Za-z_]\w{0,63})|fatal error: ([\w.-]{1,68}): No such file", re.ASCII)


def files_of(given: Mapping[str, Any]) -> list[Path]:
    """The files that a command was given as FILE and --with; none if it reads stdin."""
    return [] if given["file"] == "-" else [Path(given["file"]), *given["beside"]]


def say_left_out(result: Check, files: Sequence[Path]) -> None:
    """Say on stderr what a submission of these files lacks, and has beside it."""
    for line in left_out(result.message, files):
        say(visible(line))


def left_out(message: str, files: Sequence[Path]) -> Iterator[str]:
    """A line for each file beside these that the message of a failure misses, with the option that adds it."""
    for module, header in dict.fromkeys(_LACKING.findall(message)):
        for folder in dict.fromkeys(file.parent for file in files):
            path, inner = folder / (header or f"{module}.py"), folder / module
            if path.is_file() and path not in files and not refused(path.name):
                option = shlex.join(["--with", str(path)])
                yield f"{path.name} lies beside {files[0].name} and was not given: add `{option}`"
            elif module and inner.is_dir():
                what = f"the folder {module} lies beside {files[0].name}, and folders cannot be given"
                yield f"{what}: add its modules (`--with {inner}/OTHER.py`), and import them by their own names"
