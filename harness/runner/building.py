"""A runner that builds, and calls nothing: in a sandbox of its own, without a GPU, which ends before the first case.

What is in HOME afterwards is kept, and unpacked for the runners of the same submission. Untrusted, as all of the
runner. torch is imported for Python, and to report an error.
"""

from __future__ import annotations

import json
import os
import socket
from contextlib import suppress

from harness.languages import LANGUAGES
from harness.runner import compiling
from harness.wire import commands, frame, replies

_REFUSED = "Error building extension"  # as torch begins the message of a compiler's error
_LACKING = "cannot find -l"  # as the linker says of the driver's library, which is where a GPU is


def serve(judge: socket.socket) -> None:
    """Answer the welcome, then commands until the judge closes the connection."""
    token, _, [output] = frame.receive_command(judge)
    for standard in (1, 2):
        os.dup2(output, standard)
    os.close(output)
    frame.send(judge, token, replies.Ready(torch="", triton=""))
    builder = _Builder()
    while True:
        try:
            token, command, descriptors = frame.receive_command(judge)
        except frame.Closed:
            return
        frame.send(judge, token, builder.obey(command, descriptors))
        for descriptor in descriptors:
            os.close(descriptor)


class _Builder:
    def __init__(self) -> None:
        self._packed = b""

    def obey(self, command: commands.Command, descriptors: list[int]) -> replies.Reply:
        match command:
            case commands.Place(name=name):
                compiling.add_extra_file(name, compiling.content_of(descriptors[0]))
            case commands.Build():
                compiling.put_source(command, descriptors[0])
                return _built(command)
            case commands.Pack():
                self._packed = compiling.packed()
                return replies.Profiled(artefacts=(replies.Artefact(name="objects", file_bytes=len(self._packed)),))
            case commands.Fetch():
                with os.fdopen(os.dup(descriptors[0]), "wb") as out:
                    out.write(self._packed)
        return replies.Done()


def _built(command: commands.Build) -> replies.Reply:
    """`Failed` if a compiler refused the source; a runner tries again whatever else fails, maybe for lack of a GPU."""
    compiler = LANGUAGES[command.language].compiler
    try:
        if compiler is None:
            _import(command)
        else:
            compiling.compile_source(command, compiler)
    except BaseException as error:  # noqa: BLE001  # a process boundary: the submission may raise anything
        with suppress(BaseException):
            text = str(error)
            if isinstance(error, compiling.CompileError) or (_REFUSED in text and _LACKING not in text):
                from harness.runner import faults

                return faults.describe(error, building=True)
    return replies.Built(log="", interpreted=False)


def _import(command: commands.Build) -> None:
    """Import a submission in Python, so that it builds what it needs."""
    from harness.runner.ahead import pretend
    from harness.runner.build import import_python
    from harness.runner.devices import RunnerCpu

    if properties := json.loads(os.environ["KERNELMARK_BUILDS"]):  # of the GPU, which is not here
        pretend(properties)
    import_python(compiling.source_path(), command, RunnerCpu())
