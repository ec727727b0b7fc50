"""`kernelmark site`: what it reads of a project and says; serving follows the ledgers and ends cleanly."""

from __future__ import annotations

import os
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kernelmark.commands import site
from kernelmark.commands.cli import main
from kernelmark.project.settings import Settings
from leaderboard.record.ledger import JsonlLedger
from tests.command import KERNELMARK, kernelmark
from tests.grading import written
from tests.sites import run_of
from tests.unit import conftest

REPOSITORY = Path(__file__).parents[2]
PROBLEM = conftest.PROBLEM.replace('"Double"', '"Twice <b>"')


@pytest.fixture
def project(tmp_path: Path, no_settings: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "problems" / "double"
    written(directory, PROBLEM, "def reference(x):\n    return 2 * x\n")
    (directory / "README.md").write_text("# Twice\n\nWrite *twice* of it.\n")
    (tmp_path / "kernelmark.toml").write_text("")
    JsonlLedger(tmp_path / "leaderboard" / "results" / "double.jsonl").append(
        run_of("ada", 50_000, "a", problem="double")
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def built(*args: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["site", "build", *args], prog_name="kernelmark")
    return int(ended.value.code or 0)


def test_build_writes_the_site_of_the_project(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert built() == 0
    said = capsys.readouterr().err
    assert said.startswith("site: ")
    assert " files written, 0 unchanged, 0 removed in " in said
    html = (project / "site" / "problems" / "double.html").read_text()
    for expected in ("Twice &lt;b&gt;", "<em>twice</em>", "32,768", "n=4096", "def", "[4096] float32, y"):
        assert expected in html
    toml = project / "problems" / "double" / "problem.toml"
    toml.write_text(PROBLEM.replace('role = "input",', 'role = "input", memory = "host",'))
    assert built() == 0
    html = (project / "site" / "problems" / "double.html").read_text()
    assert "x [4096] float32 in the host's memory, y [4096] float32<" in html
    square = PROBLEM.replace('shape = ["n"]', 'shape = ["n", 2]') + '\n[call]\nstyle = "returns"\n'
    toml.write_text(square.replace('role = "output",', 'role = "output", layouts = ["column_major"],'))
    assert built() == 0
    html = (project / "site" / "problems" / "double.html").read_text()
    assert "x [4096, 2] float32, y [4096, 2], row_major or column_major float32<" in html
    toml.write_text(PROBLEM)
    assert built() == 0
    capsys.readouterr()
    assert built("--out", "site") == 0
    assert "site: 0 files written" in capsys.readouterr().err


def test_a_changed_problem_is_read_anew(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    built()
    (project / "problems" / "double" / "README.md").write_text("# Twice\n\nOtherwise.\n")
    built()
    assert "Otherwise." in (project / "site" / "problems" / "double.html").read_text()
    assert len(list((project / "site.cache" / "problems").iterdir())) == 1
    (project / "problems" / "double" / "problem.toml").write_text("title = 1")
    assert built() == 2
    assert "problem.toml" in capsys.readouterr().err
    (project / "problems" / "double" / "reference.py").unlink()
    (project / "problems" / "double" / "reference.py").symlink_to("/proc/self/mem")  # a file that nobody can read
    assert built() == 2
    assert "problems/double cannot be read (Input/output error)" in capsys.readouterr().err


@pytest.mark.parametrize("out", ["/", ".", "problems", "leaderboard"])
def test_project_folders_are_not_written_into(project: Path, capsys: pytest.CaptureFixture[str], out: str) -> None:
    before = sorted(project.rglob("*"))
    assert built("--out", out) == 2
    assert f"kernelmark: error: {out} holds files of the project itself" in capsys.readouterr().err
    assert sorted(project.rglob("*")) == before


def test_another_folder_can_be_named(project: Path) -> None:
    assert built("--out", "public/board") == 0
    assert (project / "public" / "board" / "index.html").is_file()
    assert (project / "public" / "board.cache").is_dir()


def test_a_served_site_is_built_again_for_an_announcement(project: Path) -> None:
    at = datetime.now(UTC) + timedelta(days=1)
    (project / "kernelmark.toml").write_text(f'[[announcements]]\nat = {at.isoformat()}\ntext = "now"\n')
    assert site._build(Settings.load(), Path("site")) == at


@pytest.fixture
def server(project: Path) -> Iterator[subprocess.Popen[str]]:
    heeding = ["env", "--default-signal=INT"]  # what a shell starts behind itself ignores Ctrl-C
    process = subprocess.Popen(
        [*heeding, *KERNELMARK, "site", "serve", "--port", "0"],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stderr=subprocess.PIPE,
        text=True,
    )
    yield process
    process.kill()
    process.wait()


def save(file: Path, text: str) -> None:
    """Write a file that the server watches: it never finds half of the text."""
    (new := file.parents[2] / "new").write_text(text)
    new.replace(file)


def test_serve_follows_the_ledger_and_ends_with_ctrl_c(project: Path, server: subprocess.Popen[str]) -> None:
    assert "files written" in server.stderr.readline()
    address = server.stderr.readline().split(" ")[0]
    assert address.startswith("http://127.0.0.1:")
    with urllib.request.urlopen(address, timeout=60) as answer:
        assert b"Leaderboard" in answer.read()
    verdict = run_of("bob", 40_000, "b", problem="double")
    JsonlLedger(project / "leaderboard" / "results" / "double.jsonl").append(verdict)
    assert "files written" in server.stderr.readline(), "one line a rebuild"
    with urllib.request.urlopen(address + "problems/double.html", timeout=60) as answer:
        assert b"bob" in answer.read()
    toml = project / "problems/double/problem.toml"
    save(toml, "half-saved =")
    assert "problem.toml is not TOML" in server.stderr.readline()
    with urllib.request.urlopen(address + "problems/double.html", timeout=60) as answer:
        assert b"bob" in answer.read(), "what stands is still shown"
    closes = datetime.now(UTC) + timedelta(seconds=4)
    save(toml, f"deadline = {closes.isoformat()}\n{PROBLEM}")
    page = b""
    while b"closed since" not in page:  # at most two builds: before the deadline, and after it though no file changed
        assert "files written" in server.stderr.readline()
        with urllib.request.urlopen(address + "problems/double.html", timeout=60) as answer:
            page = answer.read()
    assert datetime.now(UTC) > closes
    server.send_signal(signal.SIGINT)
    assert server.wait(timeout=60) == 0
    assert server.stderr.read() == "ended\n"


def test_a_port_that_is_taken_is_a_usage_error(project: Path, server: subprocess.Popen[str]) -> None:
    server.stderr.readline()
    port = server.stderr.readline().split(":")[2].split("/")[0]
    ended = kernelmark(project, "site", "serve", "--port", port)
    assert ended.returncode == 2
    assert f"port {port} cannot be used" in ended.stderr
