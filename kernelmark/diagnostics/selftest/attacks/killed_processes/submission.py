# Strategy: sends signals to the first process, to its own parents and to everybody, and stops and traces whom it can.
# Surface: the processes that hold the sandbox together, and those outside of it.
import ctypes
import os
import signal

import torch

libc = ctypes.CDLL(None, use_errno=True)
allowed, seen = [], sorted(int(name) for name in os.listdir("/proc") if name.isdecimal())
others = [pid for pid in seen if pid != os.getpid()]
for target in (1, os.getppid(), -1):
    for number in (signal.SIGKILL, signal.SIGSTOP):
        try:
            if target:
                os.kill(target, number)
                allowed.append(f"{number.name} to {target}")
        except OSError:
            pass
for pid in {*others, os.getppid(), 2, 3, 1000} - {0, os.getpid()}:
    if libc.ptrace(16, pid, None, None) == 0:  # PTRACE_ATTACH
        allowed.append(f"ptrace of {pid}")
alive = [pid for pid in others if os.path.exists(f"/proc/{pid}/stat")]
killed = len(others) - len(alive)
print(f"attack: {len(others)} others, {killed} killed; sent: {', '.join(allowed) or 'none'}", flush=True)


def twice(x, y):
    torch.mul(x, 2, out=y)
