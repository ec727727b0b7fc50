"""What the references of this set share."""

import torch


def matches(reference, **tolerance):
    def check(data, output):
        expected = reference(data)
        if torch.allclose(output, expected, **tolerance):
            return True, ""
        return False, "the result is wrong"

    return check
