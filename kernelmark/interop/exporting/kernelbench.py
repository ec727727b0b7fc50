"""Writes KernelBench's form: a class `ModelNew`, whose instance is called with the inputs. Trusted."""

from __future__ import annotations

from harness.problem.signature import forms
from kernelmark.interop.exporting.adapter import python_of
from kernelmark.interop.exporting.request import Exported, ExportFormat, Request


def write(request: Request) -> Exported:
    """The file, as KernelBench evaluates it.

    Raises:
        UsageError: the submission cannot be called there.
    """
    passed = [*forms(request.problem).arguments]
    text = python_of(request, passed, "_inputs", "torch.cuda.current_stream().cuda_stream")
    return Exported(request.origin + text)


FORMAT = ExportFormat("kernelbench", "module", write, has_boards=False)
