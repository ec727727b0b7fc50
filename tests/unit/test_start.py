"""What `kernelmark start` writes: it builds for every problem, and in PyTorch it is right."""

from __future__ import annotations

import ast
import resource
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.languages import LANGUAGES
from harness.problem import Problem
from harness.verdict import Outcome
from kernelmark.authoring import skeleton, start
from kernelmark.grading.setup import PreparedJob
from kernelmark.project.settings import Settings
from tests.grading import written
from tests.integration.test_foreign import gpu_mode, kernelbench
from tests.unit.conftest import ROOT, Command

SHIPPED = sorted(file.parent.name for file in (ROOT / "problems").glob("*/problem.toml"))
SHORT = "softmax", "topk_ties", "rope_strided", "adam_multi_tensor"
"""Of one output, of several with a scalar, of strides, and of lists."""
DEFINITION = """
SCALE = 2  # of x
UNUSED = 3


def generate(generator, n, dtype):
    return {}


def reference(x, factor):
    return SCALE * factor * x
"""
STYLED = """
title = "Double"
entry = "Double"
parameters = ["n", "dtype"]
tensors = [
    { name = "x", role = "input", shape = ["n"], dtype = "dtype" },
    { name = "y", role = "output", shape = ["n"], dtype = "dtype" },
]
scalars = [{ name = "factor", dtype = "float64", value = 1.5 }]
cost = { bytes = "8 * n", flops = "n" }
tests = [{ name = "small", params = { n = 5, dtype = "float32" }, devices = ["cpu"] }]
benchmarks = [{ name = "large", params = { n = 4096, dtype = "float32" }, devices = ["cpu"] }]
"""
STYLES = {
    "returns": '[call]\nstyle = "returns"\n',
    "returns a dict": '[call]\nstyle = "returns"\nresult = { fields = { out = { tuple = ["y"] }, n = 3 } }\n',
    "module": '[call]\nstyle = "module"\ninit = [{ param = "n" }, "factor"]\narguments = ["x"]\n',
    "tree": '[call]\nstyle = "tree"\ndata = { tuple = ["x", { fields = { f = "factor" } }, "y"] }\n',
    "tree, without the output": '[call]\nstyle = "tree"\ndata = { dict = { "an x" = ["x"], factor = "factor" } }\n',
    "a constant scalar": '[call]\nstyle = "returns"\narguments = ["x", { param = "dtype" }, ["x"]]\n',
}


@pytest.fixture
def settings(tmp_path: Path, no_settings: None, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A project with the shipped problems."""
    (tmp_path / "kernelmark.toml").write_text('author = "ada"\ndevice = "cpu"\nsandbox = "process"\n')
    (tmp_path / "problems").symlink_to(ROOT / "problems")
    monkeypatch.chdir(tmp_path)
    return Settings.load()


def outcome(settings: Settings, problem: str | Path, started: start.Started) -> Outcome:
    result = PreparedJob.prepare(settings, problem, started.path, author="ada").check()
    assert result.outcome in (Outcome.ACCEPTED, Outcome.WRONG_ANSWER), result
    return result.outcome


@pytest.mark.parametrize("slug", SHIPPED)
def test_python_parses_and_defines_the_entry_alone(settings: Settings, slug: str) -> None:
    for lang in ("torch", "triton"):
        text = start.write(settings, slug, lang, Path(f"{lang}.py")).path.read_text()
        defined = [node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
        assert defined[-1] == slug
        assert not {"generate", "compare"}.intersection(defined)
        assert max(map(len, text.splitlines())) <= 120


@pytest.mark.parametrize(
    "slug", [pytest.param(slug, marks=[] if slug == SHORT[0] else [pytest.mark.full]) for slug in SHIPPED]
)
def test_the_definition_in_pytorch_is_right(settings: Settings, slug: str) -> None:
    assert outcome(settings, slug, start.write(settings, slug, "torch")) is Outcome.ACCEPTED


@pytest.mark.full
@pytest.mark.parametrize("slug", SHORT)
@pytest.mark.parametrize("lang", ["triton", "cpp"])
def test_the_others_run_and_are_wrong(settings: Settings, slug: str, lang: start.Start) -> None:
    """In Triton's interpreter, on a CPU."""
    assert outcome(settings, slug, start.write(settings, slug, lang)) is Outcome.WRONG_ANSWER


@pytest.mark.parametrize("lang", ["cpp", pytest.param("cu", marks=pytest.mark.full)])
def test_c_compiles_with_every_symbol(settings: Settings, lang: start.Start) -> None:
    """Those that include the same headers in one piece, since the compiler takes most of its time for headers."""
    compiler = LANGUAGES[lang].compiler
    if shutil.which(compiler.program) is None:
        pytest.skip(f"there is no {compiler.program}")
    flags = ["-fPIC", "-Wall", "-Werror"] if lang == "cpp" else ["-Xcompiler", "-fPIC", "-arch=sm_90"]
    pieces: dict[str, str] = defaultdict(str)
    symbols: dict[str, set[str]] = defaultdict(set)
    for slug in SHIPPED:
        path = start.write(settings, slug, lang).path
        head, _, body = path.read_text().partition("\n\n")
        included = head[head.index("#include") :]
        pieces[included] += f'namespace {slug} {{\n#line {head.count(chr(10)) + 3} "{path.name}"\n{body}\n}}\n'
        problem = PreparedJob.prepare(settings, slug, path, author="ada").problem
        given = (*problem.tests, *problem.benchmarks)
        run = [case for case in given if LANGUAGES[lang].devices[0] in case.devices and not case.draw]
        symbols[included] |= {problem.resolve(case).symbol for case in run}
    for number, (included, piece) in enumerate(pieces.items()):
        source, library = Path(f"{number}.{lang}"), Path(f"{number}.so")
        source.write_text(f"{included}\n{piece}")
        subprocess.run([compiler.program, "-shared", "-std=c++17", *flags, source, "-o", library], check=True)
        assert {symbol for symbol in symbols[included] if symbol.encode() not in library.read_bytes()} == set()


@pytest.mark.parametrize(
    "style", [pytest.param(style, marks=[] if style == "tree" else [pytest.mark.full]) for style in STYLES]
)
def test_every_style_of_call(settings: Settings, style: str) -> None:
    folder = Path("double")
    written(folder, STYLED + STYLES[style], DEFINITION)
    started = start.write(settings, folder, "torch", Path("a.py"))
    text = started.path.read_text()
    assert "SCALE = 2  # of x" in text
    assert "UNUSED" not in text
    assert outcome(settings, folder, started) is Outcome.ACCEPTED
    outline = ast.parse(start.write(settings, folder, "triton", Path("b.py")).path.read_text())
    assert [node.name for node in outline.body if hasattr(node, "name")] == ["compute", "Double"]


@pytest.mark.parametrize(
    ("make", "name", "entry"),
    [(gpu_mode, "ref_kernel", "def custom_kernel(data):"), (kernelbench, "Model", "class ModelNew(Model):")],
)
def test_the_reference_in_a_foreign_form_is_copied(
    settings: Settings, tmp_path: Path, make: Callable[[Path], Problem], name: str, entry: str
) -> None:
    text = start.write(settings, make(tmp_path).directory, "torch").path.read_text()
    defined = [node.name for node in ast.parse(text).body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    assert defined == [name, entry.split()[1].partition("(")[0]]
    assert entry in text


@pytest.mark.parametrize(("make", "lacks"), [(gpu_mode, False), (kernelbench, True)])
def test_that_a_compiled_file_gets_no_weights_is_said(
    settings: Settings, invoke: Command, tmp_path: Path, make: Callable[[Path], Problem], *, lacks: bool
) -> None:
    problem = str(make(tmp_path).directory)
    shown = invoke("problems", "show", problem).out
    assert ("void" in shown, "are Python's alone: where the class draws any, no .cu" in shown) == (True, lacks)
    outlines: tuple[start.Start, ...] = ("cu", "cpp")
    for lang in outlines:
        text = start.write(settings, problem, lang).path.read_text()
        assert ("// The weights of the class are not passed: where it draws any" in text) == lacks


@pytest.mark.full
@pytest.mark.bwrap
@pytest.mark.parametrize("make", [gpu_mode, kernelbench])
def test_it_is_right_as_it_is(settings: Settings, tmp_path: Path, make: Callable[[Path], Problem]) -> None:
    """With a foreign reference in a sandbox of its own."""
    settings = settings.model_copy(update={"sandbox": "bwrap"})
    folder = make(tmp_path).directory
    assert outcome(settings, folder, start.write(settings, folder, "torch")) is Outcome.ACCEPTED


def test_a_name_that_the_definition_has_is_refused(settings: Settings) -> None:
    folder = Path("double")
    written(folder, STYLED.replace("Double", "generate"), DEFINITION)
    start.write(settings, folder, "torch", Path("kept.py"))
    written(folder, STYLED.replace("Double", "SCALE"), DEFINITION)
    with pytest.raises(UsageError, match="uses the name `SCALE`, which is also one of its definition"):
        start.write(settings, folder, "torch")
    assert not Path("double.py").exists()


def test_a_file_of_the_problem_is_copied_and_without_one_there_is_the_signature(settings: Settings) -> None:
    folder = Path("double")
    written(folder, STYLED.replace('"cpu"', '"cpu", "cuda"'), DEFINITION)
    declared = "Double_float32(const float* x, float* y, double factor, int64_t n"
    text = start.write(settings, folder, "cu", Path("a.cu")).path.read_text()
    assert f'\nextern "C" void {declared}, cudaStream_t stream) {{\n    // TODO' in text
    assert "#include <cuda_runtime.h>\n\n// x  [n]  dtype  input\n" in text
    own = folder / "start/kernel.cpp"
    own.parent.mkdir()
    own.write_text("// begin here: µ\n")
    assert start.write(settings, folder, "cpp", Path("a.cpp")).path.read_text() == "// begin here: µ\n"
    own.write_bytes(b"\xff")
    with pytest.raises(UsageError, match=r"start/kernel\.cpp cannot be read \(it is not UTF-8 text\)"):
        start.write(settings, folder, "cpp", Path("b.cpp"))


@pytest.mark.parametrize(
    ("lang", "file", "message"),
    [
        ("torch", "taken.py", "taken.py exists already; name another FILE"),
        ("cu", "a.py", "a.py does not end in .cu, as --lang cu needs"),
        (None, "a.txt", "a.txt does not end in .py, .cu or .cpp; use one of these"),
        ("torch", "none/a.py", "none/a.py cannot be written: there is no folder none; make it first"),
    ],
)
def test_invalid_starts_get_one_line(settings: Settings, lang: start.Start | None, file: str, message: str) -> None:
    Path("taken.py").write_text("mine")
    with pytest.raises(UsageError, match=message):
        start.write(settings, "softmax", lang, Path(file))
    assert Path("taken.py").read_text() == "mine"


def test_a_full_disk_leaves_no_empty_start(settings: Settings) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
    try:
        with pytest.raises(UsageError, match=r"mine\.py cannot be written \(File too large\)"):
            start.write(settings, "softmax", "torch", Path("mine.py"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not Path("mine.py").exists()


def test_a_new_problem_needs_its_definition_first(settings: Settings) -> None:
    Path("problems").unlink()
    skeleton.write(settings, "mine")
    with pytest.raises(
        UsageError, match=r"problems/mine/reference\.py does nothing but raise .*; fill in `reference` there first$"
    ):
        start.write(settings, "mine")
    assert not Path("mine.py").exists()


def test_a_language_without_a_case_is_refused(run: Command) -> None:
    result = run("start", "double", "--lang", "cu")
    assert result.code == 2
    assert "double has no case for cuda, where a .cu file runs; choose another --lang" in result.err


def test_the_command_says_how_to_check(run: Command) -> None:
    result = run("start", "double", "mine.cpp")
    assert result.out == "kernelmark check double mine.cpp\n"
    assert result.err == "wrote mine.cpp: wrong until you fill it in at TODO; this command checks it:\n"
    result = run("start", "double")
    assert result.out == "kernelmark check double double.py\n"
    assert result.err == "wrote double.py: right, and slow; this command checks it:\n"
