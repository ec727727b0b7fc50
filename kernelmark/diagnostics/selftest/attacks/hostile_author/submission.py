# Strategy: an author whose name leads out of a folder, clears a screen and is a script.
# Surface: ledger, board, archive of sources, and every terminal. Refused before anything runs.
import torch


def twice(x, y):
    torch.mul(x, 2, out=y)
