"""C++ for a CPU, with OpenMP."""

from harness.languages.extra_files import HEADERS
from harness.languages.language import Compiler, Language

LANGUAGE = Language(
    suffix="cpp",
    devices=("cpu",),
    lexer="cpp",
    extra_files=HEADERS,
    words="c",
    compiler=Compiler("g++", ("-shared", "-fPIC", "-O3", "-march=native", "-std=c++17", "-fopenmp"), line_info=("-g",)),
)
