"""Makes a submission's recorded calls in a process that holds none of its host code, and times them.

Our own code, in a separate sandbox: only the device code is untrusted, which can write to whatever this process has
mapped, and can run for ever. So nothing secret is here, a call's inputs are present for that call alone, and every
clock is checked against the two others. It has no PyTorch, and starts in half a second.
"""
