"""The definition of pruning to 2:4."""

import torch

BITS = {2: torch.int16, 4: torch.int32}


def reference(x: torch.Tensor, transposed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """W to [n, k / 2] kept elements and [n, k / 8] bytes of indices; W is x, or its transpose."""
    w = x.T if transposed else x
    groups = w.reshape(len(w), -1, 4)
    # Stable: of equal magnitudes the lower index comes first. abs makes -0 equal to +0.
    largest = groups.abs().sort(dim=-1, descending=True, stable=True).indices[..., :2]
    kept = largest.sort(dim=-1).values
    values = groups.gather(-1, kept).view(len(w), -1)
    nibbles = (kept[..., 0] | kept[..., 1] << 2).view(len(w), -1, 2)
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
