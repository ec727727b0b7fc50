"""The runner's own call, which rounds make before there is a submission."""

from __future__ import annotations

import torch

from harness.runner.kernel import Practice
from harness.shared.call import Forms
from harness.wire import commands


def declared(shape: tuple[int, ...], *, writable: bool, group: str = "") -> commands.TensorArgument:
    return commands.TensorArgument(name="t", offset=0, shape=shape, dtype="float32", writable=writable, group=group)


def test_it_writes_every_output_and_no_input() -> None:
    arguments = [
        declared((), writable=False),
        declared((0,), writable=False),
        declared((3,), writable=False, group="xs"),
        declared((5,), writable=False, group="xs"),
        declared((4,), writable=True),
    ]
    scalar, empty, xs, y = torch.tensor(1.5), torch.ones(0), [torch.ones(3), torch.ones(5)], torch.ones(4)
    bind = commands.Bind("any", (), (), 1, 0, 0, 0, 0, inputs_writable=False, forms=Forms(), seed=0)
    Practice().bind(bind, arguments)([scalar, empty, None, xs, y])()
    assert not y.any()
    assert scalar == 1.5
    assert all(x.all() for x in xs)
