# Strategy: learns how many calls a round has from the pauses between rounds; then calls are only remembered, and the
# last one does the work of all.
# Surface: `calls`, where the submission's own code runs in a round; on CUDA it refuses to be captured.
import time

import torch

PAUSE_S = 0.01
counts, pending, state = [], [], {"last": 0.0, "here": 0}


def twice(x, y):
    if x.is_cuda and torch.cuda.is_current_stream_capturing():
        raise RuntimeError("not to be captured")
    now = time.monotonic()
    if now - state["last"] > PAUSE_S and not pending:
        if state["here"] > 1:
            counts.append(state["here"])
        state["here"] = 0
    state["here"] += 1
    # Two pauses after equal numbers of calls are two rounds: the next one has as many.
    if x.numel() == 1_000_000 and len(counts) > 1 and state["here"] <= counts[-1] == counts[-2]:
        pending.append((x, y))
        if state["here"] == counts[-1]:
            for one, other in pending:
                torch.mul(one, 2, out=other)
            if "told" not in state:
                state["told"] = print(f"attack: the last call did the work of {len(pending)}", flush=True)
            pending.clear()
    else:
        torch.mul(x, 2, out=y)
    state["last"] = time.monotonic()
