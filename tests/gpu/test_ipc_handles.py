"""What a forged CUDA IPC handle reaches: nothing that its owner has not exported itself.

A legacy handle (`cuIpcGetMemHandle`) is 64 bytes, and nothing in them is secret: the exporter's process id, which the
library compares with its own to refuse a handle of the same process, the size, and the driver's numbers of the client
and of the object, which count upwards. So a sandbox can write the handle of any memory on its GPU. Whether it opens is
for the kernel driver to say: it opens what its owner has exported, across users and namespaces, and refuses the rest.
The judge exports nothing in this way; a forged handle of its memory is refused, as the test shows with a forger that is
told a true handle of the owner's, from which it need only count on.
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

from harness.arena import make_arena
from harness.sandbox import Launch, Sandbox, choose, gpu
from kernelmark.project.choice import providers
from kernelmark.project.settings import Settings

pytestmark = pytest.mark.gpu

EXPORTED, PRIVATE = 0x51515101, 0x52525202
MIB = 1 << 20
SIZES_BYTES = (8 * MIB, 2 * MIB)
OBJECTS = range(-400, 600)  # numbers around that of the exported memory
PID_AT, SIZE_AT, OBJECT_AT = 8, 16, 52

FORGER = Path(__file__).parent / "forger.py"


class Forger(NamedTuple):
    """A program in a sandbox of its own that has memory, and opens the handles that it is sent."""

    sandbox: Sandbox
    connection: socket.socket

    def ask(self, **command: Any) -> Any:
        self.connection.send(json.dumps(command).encode())
        return json.loads(self.connection.recv(MIB))


@contextlib.contextmanager
def forger(directory: Path, name: str) -> Iterator[Forger]:
    settings = Settings.load()
    directory = directory / name  # the provider puts the runner's files beside the socket
    directory.mkdir()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        path = directory / "socket"
        listener.bind(str(path))
        path.chmod(0o666)
        listener.listen(1)
        listener.settimeout(60)
        launch = Launch(
            socket=path,
            device="cuda",
            gpu_index=gpu.index_in_use(),
            memory_bytes=8 << 30,
            processes=256,
            disk_bytes=64 * MIB,
            program=FORGER,
        )
        launched = choose(settings.sandbox, providers(settings)).launch(launch)
        try:
            connection, _ = listener.accept()
            connection.settimeout(120)
            yield Forger(launched, connection)
        except TimeoutError:
            pytest.fail(f"it did not come up: {launched.startup_log()}")
        finally:
            launched.close()


def handles_near(exported: bytes) -> dict[str, str]:
    """Handles of what lies around an exported allocation: of every object of its client, for two sizes."""
    found = {}
    [object_number] = struct.unpack_from("<I", exported, OBJECT_AT)
    for size_bytes in SIZES_BYTES:
        for step in OBJECTS:
            forged = bytearray(exported)
            forged[PID_AT] ^= 0x40  # so that the library does not take it for a handle of its own process
            struct.pack_into("<Q", forged, SIZE_AT, size_bytes)
            struct.pack_into("<I", forged, OBJECT_AT, object_number + step)
            found[f"{step:+} {size_bytes}"] = bytes(forged).hex()
    return found


def opened(by: Forger, exported: bytes) -> dict[str, list[int]]:
    """Which of the handles near an exported one open, and the first word of what they reach."""
    cases = list(handles_near(exported).items())
    found: dict[str, list[int]] = {}
    for first in range(0, len(cases), 200):
        found |= by.ask(do="open", handles=dict(cases[first : first + 200]))
    return found


def test_a_forged_handle_does_not_reach_the_memory_of_the_judge(tmp_path: Path) -> None:
    from cuda.bindings import driver

    from harness.arena.vmm import check

    private = [torch.full((size // 4,), PRIVATE, dtype=torch.int32, device="cuda") for size in SIZES_BYTES]
    arena = make_arena("cuda", SIZES_BYTES[0], read_only=True)
    arena.bytes.view(torch.int32).fill_(PRIVATE)
    shown = check(driver.cuMemAlloc(SIZES_BYTES[0]))
    hidden = [check(driver.cuMemAlloc(size)) for size in SIZES_BYTES]
    try:
        for pointer, marker in ((shown, EXPORTED), *((pointer, PRIVATE) for pointer in hidden)):
            check(driver.cuMemsetD32(pointer, marker, SIZES_BYTES[1] // 4))
        torch.cuda.synchronize()
        handle = bytes(check(driver.cuIpcGetMemHandle(shown)).reserved)
        with forger(tmp_path, "one") as stranger:
            found = opened(stranger, handle)
    finally:
        for pointer in (shown, *hidden):
            check(driver.cuMemFree(pointer))
        arena.close()
        del private
    print(f"{len(handles_near(handle))} handles, opened: {found}")
    assert EXPORTED in {word for words in found.values() for word in words}, "what was exported opens: forging works"
    assert PRIVATE not in {word for words in found.values() for word in words}


def test_a_forged_handle_does_not_reach_what_another_sandbox_keeps_to_itself(tmp_path: Path) -> None:
    with forger(tmp_path, "one") as owner, forger(tmp_path, "two") as stranger:
        handle = bytes.fromhex(owner.ask(do="own", exported=EXPORTED, private=PRIVATE, sizes=list(SIZES_BYTES)))
        found = opened(stranger, handle)
    print(f"{len(handles_near(handle))} handles, opened: {found}")
    assert PRIVATE not in {word for words in found.values() for word in words}
