"""The problems of a kernelmark project as tasks for reinforcement learning.

`dataset` has the prompts, `grading` what an answer earns and what its author is told; neither needs a library for
training. The classes in `__all__` are what `verifiers` looks for; they are imported on first use.
"""

from __future__ import annotations

import importlib

__all__ = ["KernelEnv", "KernelTaskset", "SeveralTurns"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'kernel_tasks' has no attribute {name!r}")
    return getattr(importlib.import_module("kernel_tasks.environment"), name)
