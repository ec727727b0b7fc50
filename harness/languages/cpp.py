"""C++ for a CPU, with OpenMP."""

from harness.languages.beside import HEADERS
from harness.languages.language import Compiler, Language

LANGUAGE = Language(
    suffix="cpp",
    devices=("cpu",),
    lexer="cpp",
    beside=HEADERS,
    words="c",
    compiler=Compiler("g++", ("-shared", "-fPIC", "-O3", "-march=native", "-std=c++17", "-fopenmp"), line_info=("-g",)),
)
