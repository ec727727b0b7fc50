# Two threads share the work and are done when the call returns. The current stream is a thread's own: it is passed on.
import contextlib
from concurrent.futures import ThreadPoolExecutor

import torch

torch.set_num_threads(1)
_pool = ThreadPoolExecutor(max_workers=2)


def _part(x, y, stream):
    with torch.cuda.stream(stream) if stream else contextlib.nullcontext():
        torch.mul(x, 2, out=y)


def twice(x, y):
    stream = torch.cuda.current_stream() if x.is_cuda else None
    middle = len(x) // 2
    parts = [slice(0, middle), slice(middle, len(x))]
    for done in [_pool.submit(_part, x[part], y[part], stream) for part in parts]:
        done.result()
