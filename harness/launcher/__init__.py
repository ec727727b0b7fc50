"""Makes a submission's recorded calls in a process that holds none of its host code, and times them.

Ours, in a sandbox of its own: what is strange in it is device code alone, which can write to whatever this process has
mapped, and can run for ever. So nothing secret is here, a call's inputs are there for that call alone, and what this
process says of time is held against two other clocks. It has no PyTorch, and starts in half a second.
"""
