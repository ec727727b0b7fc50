"""Runs in a sandbox for `test_ipc_handles`: owns device memory, exports some, opens the IPC handles it is sent."""

import ctypes
import json
import socket
import sys

cuda = ctypes.CDLL("libcuda.so.1")
Pointer, Size = ctypes.c_uint64, ctypes.c_size_t


class Handle(ctypes.Structure):
    _fields_ = [("raw", ctypes.c_ubyte * 64)]


cuda.cuIpcOpenMemHandle_v2.argtypes = [ctypes.POINTER(Pointer), Handle, ctypes.c_uint]
judge = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
judge.connect(sys.argv[1])
device, context = ctypes.c_int(), ctypes.c_void_p()
for status in (
    cuda.cuInit(0),
    cuda.cuDeviceGet(ctypes.byref(device), 0),
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device),
    cuda.cuCtxSetCurrent(context),
):
    assert status == 0, status


def memory(size_bytes, word):
    pointer = Pointer()
    assert cuda.cuMemAlloc_v2(ctypes.byref(pointer), Size(size_bytes)) == 0
    assert cuda.cuMemsetD32_v2(pointer, ctypes.c_uint(word), Size(size_bytes // 4)) == 0
    assert cuda.cuCtxSynchronize() == 0
    return pointer


def own(command):
    shown = memory(command["sizes"][0], command["exported"])
    for size_bytes in command["sizes"] * 3:
        memory(size_bytes, command["private"])
    handle = Handle()
    assert cuda.cuIpcGetMemHandle(ctypes.byref(handle), shown) == 0
    return bytes(handle.raw).hex()


def opened(handles):
    found = {}
    for name, text in handles.items():
        handle, pointer, base, size = Handle(), Pointer(), Pointer(), Size()
        ctypes.memmove(ctypes.byref(handle), bytes.fromhex(text), 64)
        if cuda.cuIpcOpenMemHandle_v2(ctypes.byref(pointer), handle, 1) != 0:
            continue
        words = (ctypes.c_uint32 * 4)()
        cuda.cuMemGetAddressRange_v2(ctypes.byref(base), ctypes.byref(size), pointer)
        if cuda.cuMemcpyDtoH_v2(words, base, Size(16)) != 0:
            words[0] = 0
        found[name] = sorted(set(words))
        cuda.cuIpcCloseMemHandle(pointer)
    return found


while packet := judge.recv(1 << 20):
    command = json.loads(packet)
    answer = own(command) if command["do"] == "own" else opened(command["handles"])
    judge.send(json.dumps(answer).encode())
