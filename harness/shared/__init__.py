"""What both sides of the trust line read: the judge imports it, and every sandbox contains a copy.

Standard library only, but for `carrier`, which needs torch.
"""
