# Strategy: asks NVML and nvidia-smi for the highest clocks and the present power limit of the GPU that it runs on.
# Surface: the device's clocks, which all gradings share.
import ctypes
import shutil
import subprocess

import torch


def asked():
    """What was asked, and the status: 0 is success."""
    found = {}
    gpu, core, memory, watts = ctypes.c_void_p(), ctypes.c_uint(1980), ctypes.c_uint(3201), ctypes.c_uint()
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        found["no NVML"] = -1
    else:
        found["nvmlInit"] = nvml.nvmlInit_v2() or -1  # success here is no grant
        nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(gpu))
        nvml.nvmlDeviceGetMaxClockInfo(gpu, 1, ctypes.byref(core))
        nvml.nvmlDeviceGetMaxClockInfo(gpu, 2, ctypes.byref(memory))
        nvml.nvmlDeviceGetPowerManagementLimit(gpu, ctypes.byref(watts))
        found["nvmlDeviceSetApplicationsClocks"] = nvml.nvmlDeviceSetApplicationsClocks(gpu, memory, core)
        found["nvmlDeviceSetGpuLockedClocks"] = nvml.nvmlDeviceSetGpuLockedClocks(gpu, core, core)
        found["nvmlDeviceSetMemoryLockedClocks"] = nvml.nvmlDeviceSetMemoryLockedClocks(gpu, memory, memory)
        found["nvmlDeviceSetPowerManagementLimit"] = nvml.nvmlDeviceSetPowerManagementLimit(gpu, watts)
    if smi := shutil.which("nvidia-smi"):
        for option in (f"-lgc={core.value},{core.value}", f"-ac={memory.value},{core.value}", "-rgc"):
            found[f"nvidia-smi {option}"] = subprocess.call([smi, option], stdout=subprocess.DEVNULL)
    return found


STATUS = asked()
refused = ", ".join(f"{what} ({status})" for what, status in STATUS.items() if status)
granted = ", ".join(what for what, status in STATUS.items() if not status)
print(f"attack: clocks asked for, refused by: {refused}; granted by: {granted or 'nobody'}", flush=True)


def twice(x, y):
    torch.mul(x, 2, out=y)
