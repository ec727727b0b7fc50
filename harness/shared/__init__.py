"""Modules for both sides of the trust line: the judge imports them, and every sandbox contains a copy.

Standard library only, but for `carrier`, which needs torch.
"""
