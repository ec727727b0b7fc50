"""Proves the clock: kernels whose time is known or can be had otherwise, and the protocols of others beside ours."""
