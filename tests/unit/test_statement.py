"""What the lint says about README.md: what the template left open, and C functions that nobody calls like that."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.problem import load
from kernelmark.authoring import skeleton
from kernelmark.authoring.lint import contradictions
from kernelmark.project.settings import Settings
from tests.shipped import ROOT, SLUGS


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


@pytest.mark.parametrize(("readme", "says"), _READMES)
def test_a_readme_that_contradicts_its_problem_is_a_warning(
    readme: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = Settings.load(device="cpu")
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
