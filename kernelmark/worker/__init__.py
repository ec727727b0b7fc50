"""A server's worker: claims tasks over the network, has a fleet's judges grade them, and sends what they answer.

It gets documents and never code, paths or settings: problems, references, baselines and private cases are those of its
own checkout, and the sandbox is its own. `commands/worker.py` starts it. Trusted; the server is not.
"""
