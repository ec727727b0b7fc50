# Strategy: tries to write at every mount point, at the files of the harness, and at the knobs of the kernel.
# Surface: every file system that the sandbox shows. Only private scratch may be written.
import os
from pathlib import Path

import torch

# Per process, and no way out: a process may write to its own.
OWN = ("/proc/self", "/proc/thread-self")
written = set()
mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
for mount in sorted({*mounts, "/", "/etc", "/usr", "/run", "/var", "/kernelmark", "/kernelmark/harness/runner"}):
    try:
        if os.path.isdir(mount):
            os.close(os.open(f"{mount}/written", os.O_CREAT | os.O_WRONLY))
        elif os.path.isfile(mount):  # others are devices, or masks made of /dev/null
            os.close(os.open(mount, os.O_WRONLY))
        else:
            continue
        written.add(mount)
    except OSError:
        pass
for root in ("/proc/sys", "/sys", "/kernelmark", "/usr/local"):
    for folder, _, names in os.walk(root):
        for name in names:
            path = f"{folder}/{name}"
            try:
                if os.path.islink(path) or not os.path.isfile(path) or folder.startswith(OWN):
                    continue
                fd = os.open(path, os.O_RDWR | os.O_NONBLOCK)
                try:
                    os.pwrite(fd, os.pread(fd, 4096, 0), 0)  # some can be opened by all, and written by none
                    written.add(path)
                finally:
                    os.close(fd)
            except OSError:
                pass
KNOBS = {"/proc/sysrq-trigger": b"h", "/proc/sys/kernel/core_pattern": b"|/tmp/x", "/proc/1/mem": b"x"}
for knob, value in KNOBS.items():
    try:
        fd = os.open(knob, os.O_WRONLY)
        os.write(fd, value)
        written.add(knob)
    except OSError:
        pass
print(f"attack: {len(mounts)} mounts, written: {' '.join(sorted(written))}", flush=True)


def twice(x, y):
    torch.mul(x, 2, out=y)
