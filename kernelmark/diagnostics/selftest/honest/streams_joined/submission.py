# Two streams of its own; events fork them from the current stream and join them to it.
import torch

SIDES = [torch.cuda.Stream(), torch.cuda.Stream(priority=-1)]


def twice(x, y):
    main = torch.cuda.current_stream()
    forked = torch.cuda.Event()
    forked.record(main)
    for side, source, target in zip(SIDES, x.tensor_split(2), y.tensor_split(2), strict=True):
        side.wait_event(forked)
        with torch.cuda.stream(side):
            scratch = source + source
            target.copy_(scratch)
            joined = torch.cuda.Event()
            joined.record()
        main.wait_event(joined)
        scratch.record_stream(side)
