"""Modules for both the judge, which imports them, and the sandboxes, which contain copies.

They use only the standard library, except `carrier`, which needs torch.
"""
