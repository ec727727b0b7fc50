"""Whether a problem tells right from wrong: its reference is accepted, and kernels that cheat are not. Trusted."""
