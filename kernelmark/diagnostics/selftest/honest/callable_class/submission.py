# The entry is an object: a dataclass that is called, and remembers what it has seen.
from dataclasses import dataclass, field

import torch


@dataclass
class Scale:
    factor: float
    sizes: dict[int, torch.Size] = field(default_factory=dict)

    def __call__(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        self.sizes.setdefault(x.numel(), x.shape)
        return torch.mul(x, self.factor, out=y)


twice = Scale(factor=2.0)
