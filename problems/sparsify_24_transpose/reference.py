"""The definition of pruning to 2:4 along the rows of W, and along those of its transpose."""

import torch

BITS = {2: torch.int16, 4: torch.int32}


def pruned(w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """[n, k] to [n, k / 2] kept elements and [n, k / 8] bytes of indices."""
    groups = w.reshape(len(w), -1, 4)
    size, place = groups.abs(), torch.arange(4, device=w.device)  # abs makes -0 equal to +0
    # Larger elements go before an element, and those of its size that have a lower index.
    one, other = size[..., :, None], size[..., None, :]
    before = (other > one) | (other == one) & (place[None, :] < place[:, None])
    kept = before.sum(dim=-1) < 2  # two of each four
    values = groups[kept].view(len(w), -1)
    low, high = place.expand_as(groups)[kept].view(len(w), -1, 2, 2).unbind(-1)
    nibbles = low | high << 2
    return values, (nibbles[..., 0] | nibbles[..., 1] << 4).to(torch.uint8)


def reference(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """x, [rows, cols], is pruned twice, and independently: the second time as its transpose."""
    return *pruned(x), *pruned(x.T)


def compare(
    got: dict[str, torch.Tensor], inputs: dict[str, torch.Tensor], truth: dict[str, torch.Tensor]
) -> str | None:
    """Bits, not numbers: values are copies, and the sign of a zero is part of one."""
    del inputs
    for name in ("indices", "values", "indices_t", "values_t"):
        one, other = got[name], truth[name].to(got[name].dtype)  # exact: the truth holds elements of x
        if one.is_floating_point():
            bits = BITS[one.element_size()]
            one, other = one.view(bits), other.view(bits)
        wrong = one != other
        if count := int(wrong.sum()):
            row, column = divmod(int(wrong.flatten().to(torch.uint8).argmax()), one.shape[1])
            found, right = (each[name][row, column].item() for each in (got, truth))
            return f"{name}: {count} of {one.numel()} wrong; {name}[{row}, {column}] is {found}, not {right}"
    return None
