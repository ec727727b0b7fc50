"""The lecture's first C++ extension, which says hello; the square beside it."""

import torch
from torch.utils.cpp_extension import load_inline

built = load_inline(
    "hello",
    cpp_sources='#include <torch/extension.h>\nstd::string hello_world() { return "Hello World!"; }',
    functions=["hello_world"],
)


def square(x: torch.Tensor, y: torch.Tensor) -> None:
    print(built.hello_world())
    torch.mul(x, x, out=y)
