"""Replays and times a submission's recorded calls in a process that runs none of its host code.

This process is our own code, in a separate sandbox. Only the device code is untrusted: it can write to all memory that
this process has mapped, and can run forever. So this process has no secrets, the inputs of a call are present only
during that call, and every clock is checked against the two others. It does not import PyTorch, and starts in half a
second.
"""
