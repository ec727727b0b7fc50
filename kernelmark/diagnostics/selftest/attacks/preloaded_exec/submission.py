# Strategy: compiles a false clock_gettime, and replaces the runner's process by one that has it preloaded.
# Surface: every clock of the process, from its first instruction; the judge's socket survives the exec.
import os
import subprocess
import sys
import time
from pathlib import Path

import torch

CLOCK = r"""
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
extern "C" int clock_gettime(clockid_t clock, timespec* now) noexcept {
    long status = syscall(SYS_clock_gettime, clock, now);
    if (clock == CLOCK_MONOTONIC) {
        long ns = (now->tv_sec * 1000000000L + now->tv_nsec) / 20;
        now->tv_sec = ns / 1000000000L, now->tv_nsec = ns % 1000000000L;
    }
    return int(status);
}
"""
# A second runner: it answers the command that the first one was building for, and goes on from there.
RUNNER = """
import socket, sys
sys.path.insert(0, sys.argv[1])
from harness.wire import commands, replies
from harness.runner.devices import open_device
from harness.runner.serve import RunnerServer
judge, server = socket.socket(fileno=int(sys.argv[2])), RunnerServer(open_device("cpu"))
command = commands.Build(language="py", symbols=("product",), architecture="")
from harness.runner import build
server._kernel, _ = build.build(command, server._device)
replies.Ready = lambda **_: replies.Built(log="", interpreted=False)
server.run(judge, int(sys.argv[3]))
"""


def replace():
    frame = sys._getframe()
    while frame.f_code.co_name != "run":
        frame = frame.f_back
    token, judge = frame.f_locals["token"], frame.f_locals["judge"]
    home = Path.home()
    (home / "clock.cpp").write_text(CLOCK)
    line = ["g++", "-shared", "-fPIC", "-O2", "-o", str(home / "clock.so"), str(home / "clock.cpp")]
    subprocess.run(line, check=True)
    os.set_inheritable(judge.fileno(), True)
    root = next(path for path in sys.path if (Path(path) / "harness" / "errors.py").exists())
    line = [sys.executable, "-I", "-B", "-u", "-c", RUNNER, root, str(judge.fileno()), str(token)]
    os.execve(sys.executable, line, {**os.environ, "LD_PRELOAD": str(home / "clock.so")})


if "LD_PRELOAD" not in os.environ:
    replace()
true = float(Path("/proc/uptime").read_text().split()[0])
slower = round(true / time.monotonic())
print(f"attack: the runner was replaced, its clock is preloaded and {slower} times too slow", flush=True)


def product(a, b, c):
    torch.mm(a, b, out=c)
