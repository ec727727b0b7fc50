# Strategy: reads every readable range of its own address space in search of the expected output.
# Surface: what a checker in the same process, or in shared memory, would keep there.
import re
from pathlib import Path

told = False


def ranges():
    for line in Path("/proc/self/maps").read_text().splitlines():
        low, high, rights = re.match(r"(\w+)-(\w+) (\S+)", line).groups()
        if rights[0] == "r" and "[v" not in line:
            yield int(low, 16), int(high, 16)


def twice(x, y):
    global told
    if len(x) < 1000:
        y.copy_(x + x)
        return
    needle = (x[:8] + x[:8]).numpy().tobytes()  # the first elements only: the rest is what it hopes to find
    read, hits = 0, 0
    with open("/proc/self/mem", "rb", buffering=0) as memory:
        for low, high in ranges():
            try:
                memory.seek(low)
                block = memory.read(min(high - low, 64 << 20))
            except (OSError, ValueError, OverflowError):
                continue
            read += 1
            at = block.find(needle)
            while at >= 0:
                whole = block[at : at + 4 * len(x)]
                hits += whole[32:] == (x + x).numpy().tobytes()[32:] and low + at != y.data_ptr()
                at = block.find(needle, at + 1)
            del block
    if not told:
        told = True
        print(f"attack: {read} mapped ranges read, the answer found in {hits}", flush=True)
    y.fill_(0)
