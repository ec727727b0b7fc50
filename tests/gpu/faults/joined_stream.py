import torch

SIDE = torch.cuda.Stream()


def scale(x, y):
    SIDE.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(SIDE):
        torch.mul(x, 2, out=y)
    torch.cuda.current_stream().wait_stream(SIDE)
