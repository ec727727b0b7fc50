"""`kernelmark init`: what it makes, and that it replaces nothing and leaves nothing half done."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
import yaml

from harness.errors import HarnessError, UsageError
from kernelmark import Project, __version__
from kernelmark.authoring import init
from kernelmark.project import problems as projects
from tests.unit.conftest import ROOT, Command

pytestmark = pytest.mark.usefixtures("no_settings")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_project_has_what_grading_and_its_workflow_need(here: Path, invoke: Command) -> None:
    result = invoke("init", "mine")
    assert (result.code, result.out.splitlines()[:2]) == (0, ["cd mine", "kernelmark start vector_add my_kernel.py"])
    assert list(here.iterdir()) == [here / "mine"]
    made = Project("mine")
    assert made.problems() == ["softmax", "vector_add"]
    assert made.problem("softmax") == Project(ROOT).problem("softmax").model_copy(
        update={"directory": made.root / "problems/softmax"}
    )
    assert (made.locate("reference") / "softmax/eager.py").is_file()
    readme = (made.root / "README.md").read_text()
    assert re.findall(r"^    (\S+ \S+ \S+)", readme, re.MULTILINE) == [
        "kernelmark start vector_add", "kernelmark check vector_add", "submit vector_add my_kernel.py",
        "kernelmark init --problem", "kernelmark problems new",
    ]  # fmt: skip
    assert not [name for name in below(made.root) if "__pycache__" in name]


def test_a_project_gets_more_problems_and_keeps_what_it_has(here: Path, invoke: Command) -> None:
    invoke("init", "mine")
    (here / "mine/README.md").write_text("my own\n")
    before = below(here / "mine")
    result = invoke("init", "mine", "--problem", "square")
    assert (result.code, result.out.splitlines()[1]) == (0, "kernelmark start square my_kernel.py")
    assert Project("mine").problems() == ["softmax", "square", "vector_add"]
    assert {name.split("/")[1] for name in set(below(here / "mine")) - set(before)} == {"square"}
    assert (here / "mine/README.md").read_text() == "my own\n"
    again = invoke("init", "mine", "--problem", "matmul", "--problem", "square")
    assert (again.code, "exists already; --problem adds what a project lacks" in again.err) == (2, True)
    assert "matmul" not in Project("mine").problems(), "all of them, or none"


def test_the_workflow_calls_only_what_is_there(here: Path, invoke: Command) -> None:
    invoke("init", "--problem", "square", "--problem", "square")
    made = Project(here)
    assert made.problems() == ["square"]
    workflow = (here / ".github/workflows/grade.yml").read_text()
    ours = (ROOT / ".github/workflows/grade.yml").read_text()
    assert yaml.safe_load(workflow)["jobs"].keys() == yaml.safe_load(ours)["jobs"].keys()
    assert "constraints.txt" not in workflow
    for tool in set(re.findall(r"tools/[\w-]+", workflow)):
        assert os.access(here / tool, os.X_OK)
    assert f"./wheels/kernelmark-{__version__}-py3-none-any.whl" in (here / "requirements.txt").read_text()


def test_a_course_is_the_example(here: Path, invoke: Command) -> None:
    assert invoke("init", "--course", "course").code == 0
    assert Project("course").problems() == ["row_sum"]
    example = ROOT / "examples/course"
    for name in below(here / "course"):
        assert (here / "course" / name).read_bytes() == (example / name).read_bytes()
    assert {".gitignore", ".github/CODEOWNERS", "README.md"} <= set(below(here / "course"))


@pytest.mark.parametrize("there", ["README.md", "tools", "problems/softmax/README.md"])
def test_an_existing_project_is_left_alone(here: Path, invoke: Command, there: str) -> None:
    file = here / there
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("mine\n")
    result = invoke("init")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert f"kernelmark: error: {here / there} exists already; name an empty folder" in result.err
    assert below(here) == [there]
    assert file.read_text() == "mine\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("a-file",), "a-file is not a folder; name another"),
        (("a-file/below",), "below: no project can be written there (File exists)"),
        (("new", "--problem", "sofmax"), "no such problem comes with kernelmark; did you mean `softmax`?"),
        (("new", "--course", "--problem", "softmax"), "--problem: a course has its own"),
    ],
)
def test_a_failed_init_gets_one_line(here: Path, invoke: Command, arguments: tuple[str, ...], says: str) -> None:
    (here / "a-file").touch()
    result = invoke("init", *arguments)
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert says in result.err
    assert list(here.iterdir()) == [here / "a-file"]


@pytest.mark.parametrize("name", ["kept", "new"])
def test_a_project_that_fails_half_way_leaves_nothing(here: Path, name: str) -> None:
    """The last of its files has a name that is too long."""
    (here / "kept/.git").mkdir(parents=True)
    files = {**init.competition(["square"]), f"a/{'b' * 300}": init.File(b"")}
    with pytest.raises(UsageError, match=rf"{name}: no project can be written there \(File name too long\)"):
        init.write(here / name, files)
    assert [str(path.relative_to(here)) for path in here.rglob("*")] == ["kept", "kept/.git"]


def test_a_copy_without_problems_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projects, "_PACKAGE", tmp_path / "kernelmark")
    with pytest.raises(HarnessError, match="has no problems to copy"):
        projects.shipped()
