"""The runner of a separate build: it builds a submission in a sandbox without a GPU, and makes no calls.

The sandbox ends before the first case. The files in its HOME are packed, and unpacked for later runners of the same
submission. torch is imported only for submissions in Python, and to report an error. Untrusted, like all of the runner.
"""

from __future__ import annotations

import json
import os
import socket
from contextlib import suppress
from typing import TYPE_CHECKING

from harness.languages import LANGUAGES
from harness.runner import compiling
from harness.wire import commands, frame, replies

if TYPE_CHECKING:
    from harness.runner.ahead import CompileAhead

_REFUSED = "Error building extension"  # torch's message when a compiler refuses the source
_LACKING = "cannot find -l"  # the linker's message; the driver's library exists only where a GPU is


def serve(judge: socket.socket) -> None:
    """Reply to the judge's welcome, then execute commands until it closes the connection."""
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
        self._ahead: CompileAhead | None = None

    def obey(self, command: commands.Command, descriptors: list[int]) -> replies.Reply:
        match command:
            case commands.Place(name=name):
                compiling.add_extra_file(name, compiling.content_of(descriptors[0]))
            case commands.Build():
                compiling.put_source(command, descriptors[0])
                return self._built(command)
            case commands.Declare() | commands.Ahead():
                if self._ahead is not None:
                    self._ahead.tell(command)
            case commands.Pack():
                if self._ahead is not None:
                    self._ahead.finish()
                self._packed = compiling.packed()
                return replies.Profiled(artefacts=(replies.Artefact(name="objects", file_bytes=len(self._packed)),))
            case commands.Fetch():
                with os.fdopen(os.dup(descriptors[0]), "wb") as out:
                    out.write(self._packed)
        return replies.Done()

    def _built(self, command: commands.Build) -> replies.Reply:
        """Build the submission; reports `Failed` only if a compiler refused the source.

        Other errors may be due to the missing GPU, so the runner that has a GPU builds again.
        """
        compiler = LANGUAGES[command.language].compiler
        if compiling.compiles_cuda(command.language):
            compiling.compile_for_thread_stream()
        try:
            if compiler is None:
                self._import(command)
            else:
                compiling.compile_source(command, compiler)
        except BaseException as error:  # noqa: BLE001  # a process boundary: the submission may raise anything
            with suppress(BaseException):
                text = str(error)
                if isinstance(error, compiling.CompileError) or (_REFUSED in text and _LACKING not in text):
                    from harness.runner import faults

                    return faults.describe(error, building=True)
        return replies.Built(log="", interpreted=False)

    def _import(self, command: commands.Build) -> None:
        """Import a submission in Python, which makes it build its extensions.

        If it has only Triton kernels, it is imported in helpers, which compile them for the calls that follow.
        """
        from harness.runner.ahead import CompileAhead, pretend
        from harness.runner.build import import_python
        from harness.runner.devices import RunnerCpu

        properties = json.loads(os.environ["KERNELMARK_BUILDS"])  # of the GPU to build for
        if os.environ["KERNELMARK_DEVICE"] == "cuda":
            self._ahead = CompileAhead()
            self._ahead.begin(command, properties)
            if not self._ahead.ended:
                return
        if properties:
            pretend(properties)
        import_python(compiling.source_path(), command, RunnerCpu())
