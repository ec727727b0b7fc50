"""What `problems new` writes: a problem that lacks nothing but its definition, and passes the lint once it has one.

The lint also says where a statement still has the template's words, or contradicts its problem.
"""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.problem import load
from harness.problem_lint.examine import examine
from harness.shared.call import STYLES, Style
from kernelmark.authoring import lint, skeleton
from kernelmark.authoring.lint import contradictions
from kernelmark.project.settings import Settings
from kernelmark.text.progress import BatchReporter
from tests.shipped import ROOT, SLUGS


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.chdir(tmp_path)
    return Settings.load(sandbox="process", device="cpu")


def errors(directory: Path) -> list[str]:
    return [finding.what for finding in examine(load(directory)) if finding.level == "error"]


@pytest.mark.parametrize("style", ["writes", *(pytest.param(other, marks=pytest.mark.full) for other in STYLES[1:])])
def test_a_skeleton_lacks_its_definition_alone(style: Style, settings: Settings) -> None:
    written = skeleton.write(settings, "swish", style)
    directory = settings.locate("problems") / "swish"
    schema = directory / (directory / "problem.toml").read_text().split()[1]
    assert sorted(path.resolve() for path in written) == sorted(
        [schema.resolve(), *(path for path in directory.rglob("*") if path.is_file())]
    )
    assert "tensors" in json.loads(schema.read_text())["properties"]
    assert [what.split("reference.py:8 ")[1] for what in errors(directory)] == [
        "raised NotImplementedError: compute y from x, and return it"
    ]
    reference = directory / "reference.py"
    [bare] = lint.lint(settings, [directory], with_samples=True, reporter=BatchReporter())
    assert [f.level for f in bare.findings if f.level == "error"] == ["error"], "the definition, once"
    left = [f.what for f in bare.findings if f.level == "warning"]
    assert [what.partition(",")[0] for what in left] == ["README.md still says '`y[r", "no sample is accepted"]
    assert bare.samples == 0
    todo = 'raise NotImplementedError("compute y from x, and return it")'
    assert todo in reference.read_text()
    reference.write_text(reference.read_text().replace(todo, "return x * torch.sigmoid(x)"))
    assert errors(directory) == []
    assert load(directory).call.style == style
    [report] = lint.lint(settings, [directory], with_samples=True, reporter=BatchReporter())
    assert [f.what for f in report.findings if f.level == "error"] == []
    assert "swish: passed (2 warnings, 1 sample graded)" in list(lint.lines([report]))


@pytest.mark.parametrize("slug", ["", "Swish", "a b", "../swish", "1st", "é", "a" * 65, "class", "template", "float32"])
def test_an_invalid_slug_is_refused_and_nothing_is_written(settings: Settings, slug: str) -> None:
    with pytest.raises(UsageError, match="is not a valid slug"):
        skeleton.write(settings, slug)
    assert not list(settings.locate("problems").glob("*"))


def test_a_folder_that_cannot_be_looked_into(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(_: Path) -> bool:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(Path, "exists", closed)
    with pytest.raises(UsageError, match="cannot be written \\(Permission denied\\)"):
        skeleton.write(settings, "swish")


def test_a_problem_that_exists_is_left_alone(settings: Settings) -> None:
    skeleton.write(settings, "swish")
    changed = settings.locate("problems") / "swish" / "README.md"
    changed.write_text("mine")
    with pytest.raises(UsageError, match="exists already"):
        skeleton.write(settings, "swish")
    assert changed.read_text() == "mine"


def test_a_deadline_keeps_the_hash_and_a_schema_is_left_alone(settings: Settings) -> None:
    settings.locate("problems").mkdir()
    schema = settings.locate("problems") / "problem.schema.json"
    schema.write_text("mine")
    assert schema not in skeleton.write(settings, "swish")
    assert schema.read_text() == "mine"
    file = settings.locate("problems") / "swish" / "problem.toml"
    before = load(file.parent)
    [line] = [line for line in file.read_text().splitlines() if "deadline = " in line]
    file.write_text(file.read_text().replace(line, f"{line}\n{line[line.index('deadline = ') :]}"))
    after = load(file.parent)
    assert after.deadline is not None
    assert after.sha256 == before.sha256


@pytest.mark.parametrize("slug", SLUGS)
def test_the_statements_of_this_repository_fit_their_problems(slug: str) -> None:
    assert list(contradictions(load(ROOT / "problems" / slug))) == []


C = 'extern "C" void swish({});\n'
_READMES = [
    # What the README declares, and what is said about that.
    (C.format("const float *x,\n float* __restrict__ y, int64_t rows, int64_t cols, cudaStream_t s"), ""),
    (C.format("const float* x, float* y, int64_t rows, int64_t cols"), ""),
    (C.format("const float* x, float* y, int64_t rows, cudaStream_t stream"), "which differs from problem.toml"),
    (C.format("const float* x, int32_t* y, int64_t rows, int64_t cols"), "which differs from problem.toml"),
    (C.format("float* x, float* y, int64_t rows, int64_t cols"), "which differs from problem.toml"),
    (C.replace("swish", "swoosh").format("float* y"), "declares `swoosh`, which no case calls"),
    ("# swish\n\nx times its sigmoid … for every element.\n", ""),
    ("**What is hard.** …\n", "still says '**What is hard.** …', as the template does"),
]


@pytest.mark.parametrize(("slug", "warned"), [("exp", True), ("rsqrt", True), ("exp_rows", False)])
def test_the_name_of_a_function_of_c_is_a_warning(slug: str, warned: bool, settings: Settings) -> None:
    skeleton.write(settings, slug)
    directory = settings.locate("problems") / slug
    (directory / "README.md").unlink()
    what = f"`{slug}` is a function of C or CUDA, which a .cu or .cpp that declares it cannot define again"
    assert [finding.what for finding in contradictions(load(directory))] == [what] * warned


@pytest.mark.parametrize(("readme", "says"), _READMES)
def test_a_readme_that_contradicts_its_problem_is_a_warning(readme: str, says: str, settings: Settings) -> None:
    skeleton.write(settings, "swish")
    problem = load(settings.locate("problems") / "swish")
    [untouched] = contradictions(problem)
    assert "README.md still says" in untouched.what
    (problem.directory / "README.md").write_text(readme)
    found = list(contradictions(problem))
    assert [finding.level for finding in found] == ["warning"] * bool(says)
    assert all(says in finding.what and finding.remedy for finding in found)
    if "differs" in says:
        stream = ", cudaStream_t stream" if "cudaStream_t" in readme else ""
        wanted = f"const float* x, float* y, int64_t rows, int64_t cols{stream}"
        assert found[0].remedy == f"write `{C.format(wanted)[:-2]}`"
