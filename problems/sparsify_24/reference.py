"""The definition of pruning to 2:4."""

import torch

BITS = {2: torch.int16, 4: torch.int32}


def reference(x: torch.Tensor, transposed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """W to [n, k / 2] kept elements and [n, k / 8] bytes of indices; W is x, or its transpose."""
    w = x.T if transposed else x
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


def compare(
    got: dict[str, torch.Tensor], inputs: dict[str, torch.Tensor], truth: dict[str, torch.Tensor]
) -> str | None:
    """Bits, not numbers: values are copies, and the sign of a zero is part of one."""
    del inputs
    values, wanted = got["values"], truth["values"].to(got["values"].dtype)  # exact: wanted holds elements of x
    bits = BITS[values.element_size()]
    for name, one, other in (
        ("indices", got["indices"], truth["indices"]),
        ("values", values.view(bits), wanted.view(bits)),
    ):
        wrong = one != other
        if count := int(wrong.sum()):
            row, column = divmod(int(wrong.flatten().to(torch.uint8).argmax()), one.shape[1])
            found, right = ((got[name], truth[name])[i][row, column].item() for i in (0, 1))
            return f"{name}: {count} of {one.numel()} wrong; {name}[{row}, {column}] is {found}, not {right}"
    return None
