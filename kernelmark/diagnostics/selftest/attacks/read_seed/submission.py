# Strategy: tries every large whole number that it finds in its own process as the seed of the inputs.
# Surface: seeds that travel with commands, tokens, or stand in a generator's state.
import gc
import os

import numpy as np
import torch

told = False


def candidates():
    yield torch.initial_seed()
    yield from (int(v) for v in os.environ.values() if v.isdigit())
    for thing in gc.get_objects():
        if isinstance(thing, dict):
            try:
                yield from [v for v in thing.values() if type(v) is int and v > 1 << 32]
            except RuntimeError:
                continue


def twice(x, y):
    global told
    if len(x) < 1000:
        torch.mul(x, 2, out=y)
        return
    tried, right = set(), []
    for seed in candidates():
        if seed in tried or len(tried) > 3000 or not 0 <= seed < 1 << 63:
            continue
        tried.add(seed)
        generator = torch.Generator(x.device).manual_seed(seed)
        if not x.is_cuda:
            state, twister = generator.get_state(), np.random.MT19937(seed).state["state"]["key"]
            state.view(torch.int64)[3:627] = torch.from_numpy(twister.astype(np.int64))
            generator.set_state(state)
        if torch.equal(torch.empty_like(x).normal_(0, 1, generator=generator)[:8], x[:8]):
            right.append(seed)
    if not told:
        told = True
        print(f"attack: {len(tried)} numbers of this process tried as seeds, right: {right or 'none'}", flush=True)
    y.fill_(0)
