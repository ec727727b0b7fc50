"""Writes KernelBench's form: a class `ModelNew`, whose instance is called with the inputs. Trusted."""

from __future__ import annotations

from harness.problem.signature import forms, lacks_weights
from kernelmark.interop.exporting.adapter import python_of
from kernelmark.interop.exporting.request import Exported, ExportFormat, Request

_WITHOUT_WEIGHTS = "a .cu or .cpp does not get the model's weights: where Model draws any, it cannot be right"


def write(request: Request) -> Exported:
    """The file, as KernelBench evaluates it.

    Raises:
        UsageError: the submission cannot be called there.
    """
    passed = [*forms(request.problem).arguments]
    text = python_of(request, passed, "_inputs", "torch.cuda.current_stream().cuda_stream")
    lacks = request.compiled and lacks_weights(request.problem)
    return Exported(request.origin + text, (_WITHOUT_WEIGHTS,) if lacks else ())


FORMAT = ExportFormat("kernelbench", "module", write, has_boards=False)
