"""Writes KernelBench's form: a class `ModelNew`, whose instance is called with the inputs. Trusted."""

from __future__ import annotations

from harness.problem.signature import forms
from kernelmark.interop.exporting import source
from kernelmark.interop.exporting.adapter import LAID_OUT, Adapter, places
from kernelmark.interop.exporting.library import prelude
from kernelmark.interop.exporting.request import Exported, Form, Request
from kernelmark.interop.exporting.text import assembled

_ENTRY = "ModelNew"
_WRAPPED = """

class ModelNew(torch.nn.Module):
    def __init__(self, *init):
        super().__init__()
        self.model = {entry}(*init)

    def forward(self, *inputs):
        return self.model(*inputs)
"""
_INIT = """\
    def __init__(self, *_init):
        super().__init__()
        self._init = _init

"""


def write(request: Request) -> Exported:
    """The file, as KernelBench evaluates it.

    Raises:
        UsageError: the submission cannot be called there.
    """
    problem = request.problem
    # What gpu-mode puts beside a submission is not there.
    beside = () if problem.foreign is None else problem.foreign.files
    source.check(request, frozenset(each.name.removesuffix(".py") for each in beside if each.shown))
    if problem.call.style == "module" and not request.compiled:
        wrapped = "" if problem.entry == _ENTRY else _WRAPPED.format(entry=problem.entry)
        return Exported(assembled(request.origin, [request.source, wrapped]))
    compiled = request.compiled
    last = "torch.cuda.current_stream().cuda_stream" if request.submission.language == "cu" else ""
    begin = (
        prelude(request, request.source) if compiled else f"{request.source}\n\n_kernelmark_entry = {problem.entry}\n"
    )
    return Exported(assembled(request.origin, [begin, *_class(request, last)]))


FORM = Form(write, has_boards=False)


def _class(request: Request, last: str) -> list[str]:
    problem = request.problem
    if problem.call.style == "module":  # called as it is here; and compiled, or there would be no adapter
        of = forms(problem)
        given = dict(places([*of.init], "self._init")) | dict(places([*of.arguments], "_inputs"))
        head, signature = _INIT, "self, *_inputs"
    else:
        names = [each.name for each in problem.tensors if each.role != "output"]
        given, head, signature = {name: name for name in names}, "", ", ".join(["_self", *names])
    body = Adapter(request, given, last, keeps_inputs=True).lines()
    parts = [LAID_OUT] if any("_kernelmark_laid_out(" in line for line in body) else []
    text = "".join(f"        {line}\n" for line in body)
    return [*parts, f"\n\nclass {_ENTRY}(torch.nn.Module):\n{head}    def forward({signature}):\n{text}"]
