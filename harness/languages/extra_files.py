"""The rules for a submission's extra files: headers that it includes, and Python modules that it imports.

They are put into the submission's folder in the sandbox, so a module with the name of an installed package would be
imported instead of the package, even by PyTorch. That would harm only the submission; the rule gives a clear message.
"""

from __future__ import annotations

import re
import sys

HEADERS = ("h", "hpp", "cuh", "inl")
MODULES = ("py",)
_HEADER = re.compile(rf"[A-Za-z0-9_][A-Za-z0-9_.-]{{0,63}}\.({'|'.join(HEADERS)})")
_MODULE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}\.py")
_TAKEN = {
    "submission.py": "is the name of the submission's own file",
    "cuda_runtime.h": "is CUDA's own header, which nvcc looks for in the submission's folder first",
}
# Modules that are imported in the sandbox: PyTorch, Triton, NumPy and their dependencies, CUDA's bindings, the runner.
_PACKAGES = frozenset(
    """
    __main__ _distutils_hack cuda filelock fsspec functorch harness isympy jinja2 kernelmark markupsafe mpmath networkx
    ninja numpy nvidia packaging pkg_resources pybind11 setuptools sitecustomize sympy torch torchgen triton
    typing_extensions usercustomize
    """.split()  # noqa: SIM905 - a list literal would be one word a line
)


def malformed(name: object) -> str:
    """Why an extra file cannot have this name, or "" if it can. The runner checks this, too."""
    if not isinstance(name, str) or not (_HEADER.fullmatch(name) or _MODULE.fullmatch(name)):
        return "is not a plain name of a header or a Python module"
    return _TAKEN.get(name, "")


def refused(name: str) -> str:
    """Why an extra file must not have this name, or "" if it may."""
    module = name.removesuffix(".py")
    if module != name and (module in sys.stdlib_module_names or module in _PACKAGES):
        return f"would be imported in place of the module `{module}` that is already there"
    return malformed(name)
