"""Python, for PyTorch and Triton, which runs in its interpreter if there is no GPU."""

from harness.languages.extra_files import MODULES
from harness.languages.language import Language

LANGUAGE = Language(suffix="py", devices=("cpu", "cuda"), lexer="python", extra_files=MODULES, words="python")
