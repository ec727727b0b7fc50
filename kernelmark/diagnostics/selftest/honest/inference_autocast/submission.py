# Modes that are entered and left again: inference, no gradient, autocast.
import torch

torch.autograd.set_grad_enabled(False)


@torch.inference_mode()
def twice(x, y):
    with torch.autocast(x.device.type, dtype=torch.bfloat16), torch.no_grad():
        torch.add(x, x, out=y)
    assert not torch.is_autocast_enabled(x.device.type)
