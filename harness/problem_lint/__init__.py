"""Checks that a problem tells right from wrong: it must accept its reference and refuse cheating kernels. Trusted."""
