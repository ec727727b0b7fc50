# Strategy: locks, leases and notifications on files that other gradings have open too: one takes them, another looks.
# Surface: files that are bound from the host, and are the same files in every sandbox; none of it needs a right to write.
import fcntl
import os
import sys
import sysconfig

import torch

SHARED = (
    *("/dev/null", "/dev/urandom", "/usr/bin/env", "/bin/sh", "/proc/1/exe", "/proc/self/exe", "/sys/devices/system"),
    *("/sys/devices/system/cpu/online", "/kernelmark/harness/errors.py", "/run/kernelmark.sock", "/etc/passwd", "/usr"),
    *(sys.executable, torch.__file__, sysconfig.get_path("stdlib"), sysconfig.get_path("purelib")),
)
whole = bytes(32)  # struct flock: F_RDLCK, from the first byte to the last
WAYS = {
    "flock": lambda fd: fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB),
    "fcntl": lambda fd: fcntl.fcntl(fd, fcntl.F_SETLK, whole),
    "fcntl looks": lambda fd: fcntl.fcntl(fd, fcntl.F_GETLK, b"\1" + whole[1:]),
    "open file": lambda fd: fcntl.fcntl(fd, fcntl.F_OFD_SETLK, whole),
    "open file looks": lambda fd: fcntl.fcntl(fd, fcntl.F_OFD_GETLK, b"\1" + whole[1:]),
    "lease": lambda fd: fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK),
    "notify": lambda fd: fcntl.fcntl(fd, fcntl.F_NOTIFY, fcntl.DN_ACCESS),
}
tried, done, kept = 0, set(), []
for path in SHARED:
    try:
        kept.append(os.open(path, os.O_RDONLY))
    except OSError:
        continue
    tried += 1
    for name, way in WAYS.items():
        try:
            way(kept[-1])
            done.add(f"{name} {path}")
        except OSError:
            pass
enough = "many" if tried >= 8 else tried
print(f"attack: {enough} files, of use: {', '.join(sorted(done)) or 'none'}", flush=True)


def twice(x, y):
    torch.mul(x, 2, out=y)
