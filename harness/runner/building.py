"""A runner that builds a submission and calls nothing, in a sandbox of its own without a GPU.

The sandbox ends before the first case. The files in its HOME are kept and unpacked for the later runners of the same
submission. Untrusted, as all of the runner. torch is imported only for submissions in Python and to report an error.
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
        """Build; reports `Failed` only if a compiler refused the source. Other errors may be due to the missing GPU, so
        the runner that has one builds again.
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
        """Import a submission in Python, so that it builds what it needs: if that is Triton's kernels only, in helpers,
        which then compile them for the calls that they are told of.
        """
        from harness.runner.ahead import CompileAhead, pretend
        from harness.runner.build import import_python
        from harness.runner.devices import RunnerCpu

        properties = json.loads(os.environ["KERNELMARK_BUILDS"])  # of the GPU, which is not here
        if os.environ["KERNELMARK_DEVICE"] == "cuda":
            self._ahead = CompileAhead()
            self._ahead.begin(command, properties)
            if not self._ahead.ended:
                return
        if properties:
            pretend(properties)
        import_python(compiling.source_path(), command, RunnerCpu())
