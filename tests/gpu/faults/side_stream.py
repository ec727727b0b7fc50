# Launches on a stream of its own and does not join it: whoever waits for the given stream alone sees nothing yet.
import torch

SIDE = torch.cuda.Stream()


def scale(x, y):
    with torch.cuda.stream(SIDE):
        torch.mul(x, 2, out=y)
