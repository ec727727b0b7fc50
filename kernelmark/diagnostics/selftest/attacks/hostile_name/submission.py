# Strategy: a file name that leads out of a folder, clears a screen, is markup, and commands for a shell.
# Surface: the path at which the source is laid down, command lines, and whatever shows the name.
import torch

print(f"attack: called {__file__}", flush=True)


def twice(x, y):
    torch.mul(x, 2, out=y)
