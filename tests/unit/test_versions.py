"""The versions of package, protocol and verdict: each is written in one place, and older verdicts are read."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import get_args

import pytest
from pydantic import ValidationError

from harness.verdict import SCHEMA_VERSION, ReadableVersion, Verdict
from harness.wire.protocol import PROTOCOL
from kernelmark import __version__
from kernelmark.diagnostics.doctor import packages
from tests.unit.conftest import ROOT, Command
from tests.verdicts import accepted

SOURCES = [file for top in ("harness", "leaderboard", "kernelmark") for file in sorted((ROOT / top).rglob("*.py"))]


def test_a_build_takes_its_version_from_the_package() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" not in build["project"]
    assert build["project"]["dynamic"] == ["version"]
    assert build["tool"]["setuptools"]["dynamic"] == {"version": {"attr": "kernelmark.__version__"}}


@pytest.mark.parametrize(
    ("line", "place"),
    [
        (r"__version__ = ", "kernelmark/__init__.py"),
        (r"PROTOCOL = ", "harness/wire/protocol.py"),
        (r"SchemaVersion = ", "harness/verdict/__init__.py"),
    ],
)
def test_each_is_written_once(line: str, place: str) -> None:
    found = [file for file in SOURCES if re.search(rf"^{line}", file.read_text(encoding="utf-8"), re.MULTILINE)]
    assert found == [ROOT / Path(place)]


def test_what_ranks_reads_the_verdicts_that_are_written_and_were_written() -> None:
    assert accepted().schema_version == SCHEMA_VERSION
    assert get_args(ReadableVersion) == tuple(range(1, SCHEMA_VERSION + 1))


def test_the_commands_say_them(run: Command) -> None:
    assert run("--version").out == f"kernelmark, version {__version__}\n"
    assert packages.kernelmark().text == f"{__version__}, protocol {PROTOCOL}, schema {SCHEMA_VERSION}"


@pytest.mark.parametrize("benchmarks", ['["a"]', "3", '[{"baselines": [1]}]', '[{"rounds": 1}]'])
def test_an_earlier_document_whose_parts_are_no_objects_is_not_valid(benchmarks: str) -> None:
    with pytest.raises(ValidationError):
        Verdict.from_json(f'{{"schema_version": 1, "benchmarks": {benchmarks}}}')
