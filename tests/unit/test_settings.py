"""Settings: which source wins, what is refused, and where the message points."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import SettingsError
from kernelmark.project import settings as module
from kernelmark.project.settings import KEYS, Settings, default_author
from tests.repository import init

ROOT = Path(__file__).parents[2]


pytestmark = pytest.mark.usefixtures("no_settings")


def test_commands_in_tests_leave_no_resident_worker() -> None:
    assert os.environ["KERNELMARK_RESIDENT"] == "false"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    return tmp_path


def write(project: Path, text: str) -> Path:
    file = project / "kernelmark.toml"
    file.write_text(text)
    return file


def test_without_settings_the_defaults_apply_in_the_working_directory(project: Path) -> None:
    found = Settings.load(project / "deep")
    assert found.root == (project / "deep").resolve()
    assert (found.device, found.sandbox, found.author, found.docker_binds) == ("auto", "auto", None, ())
    assert found.locate("board") == found.root / "leaderboard/BOARD.md"


def test_each_source_stands_above_the_next(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(project, 'author = "file"\ndevice = "cpu"\nsandbox = "bwrap"\n')
    monkeypatch.setenv("KERNELMARK_AUTHOR", "environment")
    monkeypatch.setenv("KERNELMARK_DEVICE", "cuda")
    found = Settings.load(project, author="flag", device=None)
    assert (found.author, found.device, found.sandbox) == ("flag", "cuda", "bwrap")


def test_the_nearest_file_upward_is_the_root_of_relative_paths(project: Path) -> None:
    write(project, 'results = "elsewhere"\nproblems = "/shared/problems"\n')
    found = Settings.load(project / "deep" / "er")
    assert found.root == project.resolve()
    assert found.locate("results") == project.resolve() / "elsewhere"
    assert found.locate("problems") == Path("/shared/problems")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("autor = 'x'", r"kernelmark\.toml: unknown key `autor`; did you mean `author`\?"),
        ("root = '/'", r"kernelmark\.toml: unknown key `root`"),
        ("device = 'tpu'", r"toml: key `device`: 'tpu' is not valid; Input should be 'auto', 'cpu' or 'cuda'"),
        ("docker_binds = ['usr']", r"key `docker_binds`: .*'usr' is not an absolute path"),
        ("site_url = 'ftp://x/'", r"key `site_url`: 'ftp://x/' is not valid; give the address of a folder"),
        ("title = ' '", r"key `title`: ' ' is not valid; give one line of text, of at most 100 characters"),
        ('how_to_submit = "a\\nb"', r"key `how_to_submit`: .* is not valid; give one line of text, of at most 400"),
        ("site_url = 'https://x/?a'", r"key `site_url`: .* is not valid; give the address of a folder"),
        ("image = 3", r"key `image`: 3 is not valid"),
        ("a b", r"kernelmark\.toml cannot be read as TOML"),
        ("teams = 3", r"key `teams`: 3 is not valid; give a table"),
        ("teams.x = 'ada'", r"key `teams\.x`: 'ada' is not valid; give a list"),
        ("teams.x = []", r"key `teams`: x has no members"),
        ("teams.x = ['ada', 'ada']", r"key `teams`: ada is in x twice; an author is in one team, once"),
        ("teams = {x = ['ada'], y = ['ada']}", r"key `teams`: ada is in x and y; an author is in one team, once"),
        ("teams = {ada = ['bob'], y = ['ada']}", r"the team ada is named like a member of y; choose another name"),
        ("teams.x = ['Ada L']", r"'Ada L', a member of x, cannot be an author's name; use letters"),
        ("teams.'x y' = ['ada']", r"the team's name 'x y' cannot be an author's name; use letters"),
        ("limits = 20", r"key `limits`: 20 is not valid; give a table"),
        ("limits.gradings_per_day = 3", r"key `limits\.gradings_per_day`: unknown key; did you mean `gradings_a_day`"),
        (
            "limits.selection = 2",
            r"key `limits\.selection`: unknown key; `selection` belongs above the first table: move",
        ),
        (
            "phases = [{name = 'b', deadline = 2027-02-01T00:00:00Z}, {name = 'a', deadline = 2027-01-01T00:00:00Z}]",
            r"key `phases`: the phase a ends before b closes; give them in order",
        ),
        ("limits.gradings_a_day = 0", r"key `limits\.gradings_a_day`: 0 is not valid"),
    ],
)
def test_a_bad_file_is_refused_where_it_is_wrong(project: Path, text: str, expected: str) -> None:
    write(project, text)
    with pytest.raises(SettingsError, match=expected) as raised:
        Settings.load(project / "deep")
    assert raised.value.exit_code == 2


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda file: file.mkdir(), "Is a directory"),
        (lambda file: file.symlink_to("gone.toml"), "No such file or directory"),
        (os.mkfifo, "it is a named pipe"),
        (lambda file: file.symlink_to("/dev/zero"), "it is a device"),
        (lambda file: file.symlink_to(file.name), "its links lead in a circle"),
        (lambda file: file.write_text("a" + ".a" * 500 + " = 1"), "it is not TOML: values are nested too deeply"),
        (lambda file: file.write_text("a = " + "[" * 5000), "it is not TOML: values are nested too deeply"),
        (lambda file: file.write_text("a = " + "9" * 5000), "it is not TOML: a number has too many digits"),
    ],
)
def test_a_settings_file_that_cannot_be_read_is_an_error(project: Path, make: Callable[[Path], None], why: str) -> None:
    make(project / "kernelmark.toml")
    with pytest.raises(SettingsError, match=rf"kernelmark\.toml cannot be read as TOML \(.*{why}"):
        Settings.load(project / "deep")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("KERNELMARK_DEVCE", "cpu", r"unknown variable `KERNELMARK_DEVCE`; did you mean `KERNELMARK_DEVICE`"),
        ("kernelmark_device", "cpu", r"unknown variable `kernelmark_device`; did you mean `KERNELMARK_DEVICE`"),
        ("KERNELMARK_ROOT", "/", r"unknown variable `KERNELMARK_ROOT`"),
        ("KERNELMARK_SANDBOX", "jail", r"KERNELMARK_SANDBOX: 'jail' is not valid"),
        ("KERNELMARK_TEAMS", "ada,bob", r"KERNELMARK_TEAMS: 'ada,bob' is not valid; give it as JSON"),
        (
            "KERNELMARK_TEAMS",
            "[" * 5000,
            r"KERNELMARK_TEAMS: '\[+\.\.\.\[+' is not valid; give it as JSON \(nested more",
        ),
        ("KERNELMARK_LIMITS", '{"a":' * 500 + "1" + "}" * 500, r"KERNELMARK_LIMITS: .* \(nested more than 100 deep\)"),
        ("KERNELMARK_LIMITS", '{"gradings_a_day": 1e999}', r"KERNELMARK_LIMITS: .* \(1e999 is not a finite number\)"),
    ],
)
def test_a_bad_variable_is_refused_by_name(
    project: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, expected: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=expected):
        Settings.load(project)


@pytest.mark.parametrize("given", ["https://example.org/board", "https://example.org/board/"])
def test_the_address_of_the_site_is_a_folder(project: Path, given: str) -> None:
    write(project, f"site_url = '{given}'")
    assert Settings.load(project).site_url == "https://example.org/board/"


def test_a_bad_flag_is_blamed_on_the_flag_although_the_file_is_bad_too(project: Path) -> None:
    write(project, "device = 'tpu'")
    with pytest.raises(SettingsError, match=r"^device: 'gpu' is not valid"):
        Settings.load(project, device="gpu")


def test_values_of_environment_variables(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELMARK_DEBUG", "1")
    monkeypatch.setenv("KERNELMARK_DEVICE", "")
    monkeypatch.setenv("KERNELMARK_DOCKER_BINDS", "/usr:/opt/cuda")
    monkeypatch.setenv("KERNELMARK_LIMITS", '{"gradings_a_day": 3}')
    found = Settings.load(project)
    assert found.device == "auto"
    assert found.docker_binds == (Path("/usr"), Path("/opt/cuda"))
    assert found.limits.gradings_a_day == 3


@pytest.mark.parametrize(
    ("git", "login", "author"),
    [
        ("Ada Lovelace", "root", "Ada-Lovelace"),
        ("Émile Borel <e@b>", "root", "Emile-Borel-e-b"),
        ("../../etc", "root", "etc"),
        ("李", "li", "li"),
        ("", "", "anonymous"),
        ("x" * 99, "root", "x" * 64),
    ],
)
def test_a_default_author_fits_into_a_path(monkeypatch: pytest.MonkeyPatch, git: str, login: str, author: str) -> None:
    monkeypatch.setattr(module, "_git_user", lambda _: git)
    monkeypatch.setattr(module, "_login", lambda: login)
    assert default_author(ROOT) == author


def test_a_name_in_git_that_is_not_utf_8_is_still_a_name(tmp_path: Path) -> None:
    init(tmp_path)
    with (tmp_path / ".git/config").open("ab") as config:
        config.write(b"[user]\n\tname = J\xf6rg\n")
    assert default_author(tmp_path) == "Jrg"


@pytest.mark.parametrize(
    ("folder", "author"), [("ada", "ada"), ("ada-", "ada-"), ("a.b_", "a.b_"), ("-ada", "root"), ("a b", "root")]
)
def test_a_folder_of_submissions_names_the_author(tmp_path: Path, folder: str, author: str) -> None:
    settings = Settings(root=tmp_path, author="root")
    assert settings.author_of(tmp_path / "submissions/softmax" / folder / "kernel.py") == author


def test_the_shipped_file_documents_every_key_with_its_default(tmp_path: Path) -> None:
    text = (ROOT / "kernelmark.toml").read_text(encoding="utf-8")
    assert tomllib.loads(text) == {}, "`kernelmark init` copies it"
    assert tuple(re.findall(r"^# (\w+) = ", text, flags=re.M)) == KEYS
    write(tmp_path, re.sub(r"^# (\w+ = )", r"\1", text, flags=re.M))
    without_default = {"root", "author", "resident", "site_url", "title", "how_to_submit", "private_cases"}
    without_default |= {"gpu_mode_checkout", "kernelbench_checkout", "marks", "selection"}
    shipped = Settings.load(tmp_path).model_dump(exclude=without_default)
    assert shipped == Settings.load(tmp_path.parent).model_dump(exclude=without_default)


def test_a_working_directory_that_is_gone_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder := tmp_path / "gone").mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    with pytest.raises(SettingsError, match=r"^the working directory does not exist any more; change to another$"):
        Settings.load()
