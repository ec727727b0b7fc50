"""The square as a module in a module: a profile has the time of each."""

import torch


class Inner(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * x


class Outer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x)


model = Outer()


def square(x: torch.Tensor, y: torch.Tensor) -> None:
    y.copy_(model(x))
