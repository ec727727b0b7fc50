# TorchScript.
import torch


@torch.jit.script
def twice(x: torch.Tensor, y: torch.Tensor) -> None:
    pieces = torch.chunk(x, 3)
    y.copy_(torch.cat([piece + piece for piece in pieces]))
