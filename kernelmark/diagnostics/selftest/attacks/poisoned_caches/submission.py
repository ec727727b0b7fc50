# Strategy: fills every cache of compiled code with libraries of its own, for the next grading to load.
# Surface: Triton's cache, torch's inductor cache, the driver's cache. Graded twice: the second looks for the first.
import os
from pathlib import Path

import torch

home, tmp = Path.home(), Path(os.environ["TMPDIR"])
caches = {
    Path(os.environ.get("TRITON_CACHE_DIR", home / ".triton")),
    home / ".triton" / "cache",
    Path(os.environ.get("XDG_CACHE_HOME", home / ".cache")) / "torch",
    Path(os.environ.get("TORCHINDUCTOR_CACHE_DIR", tmp / "torchinductor_runner")),
    tmp / f"torchinductor_{os.getuid()}",
    Path(os.environ.get("CUDA_CACHE_PATH", home / ".nv" / "ComputeCache")),
    home / ".cache" / "torch_extensions",
    Path("/dev/shm"),
}
found = [str(path) for cache in caches for path in (cache.rglob("poison*") if cache.exists() else ())]
for cache in caches:
    for k in range(16):
        entry = cache / f"poison{k:02x}"
        entry.mkdir(parents=True, exist_ok=True)
        for name in ("kernel.so", "kernel.cubin", "kernel.json", "__grp__kernel.json", "kernel.py"):
            (entry / name).write_bytes(b"attack")
print(f"attack: {len(caches)} caches poisoned, found from before: {len(found)} {found[:3]}", flush=True)


def twice(x, y):
    torch.mul(x, 2, out=y)
