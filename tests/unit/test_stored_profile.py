"""The profile of a run in the archive: read back as stored, bounded, and one line if it is damaged or hostile."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.errors import HarnessError
from harness.problem import load
from harness.verdict import SubmissionId
from leaderboard.record.archive import archive
from leaderboard.record.ledger import JsonlLedger
from leaderboard.record.profile import MAX_BYTES, StoredProfile, archive_profile, fitted, location, stored_profile
from tests.sites import SiteProject, run_of
from tests.unit.conftest import Command
from tests.unit.test_inspection import graded

RUN = "a" * 16
TOLD = SubmissionId(sha256="b" * 64, name="kernel.py", author="ada", language="py", size_bytes=9)
SECTIONS: dict[str, Any] = {
    "stacks": {"CPU time, µs": "twice;aten::add 7\n"},
    "rows": {"Resources": (("kernel", "registers"), ("doubling", "16"))},
    "tables": {"By operator": "aten::add  7 µs\n"},
    "files": {"0-doubling.ptx": ".target sm_90\n"},
}


def profile(**changes: Any) -> StoredProfile:
    return StoredProfile(**{"run": RUN, "sha256": TOLD.sha256, "case": "large", **SECTIONS, **changes})


def read(root: Path) -> StoredProfile | None:
    return stored_profile(root, "double", TOLD, RUN)


def test_what_was_stored_is_read_back(tmp_path: Path) -> None:
    assert read(tmp_path) is None
    path = archive_profile(tmp_path, "double", "ada", profile())
    assert path == tmp_path / "double" / "ada" / f"{RUN}.profile.json"
    assert read(tmp_path) == profile()
    other = archive_profile(tmp_path / "again", "double", "ada", profile())
    assert other.read_bytes() == path.read_bytes(), "the same profile has the same bytes"


def test_a_profile_is_never_overwritten(tmp_path: Path) -> None:
    path = archive_profile(tmp_path, "double", "ada", profile())
    before = path.read_bytes()
    with pytest.raises(HarnessError, match=r"the profile cannot be written \(File exists\)"):
        archive_profile(tmp_path, "double", "ada", profile(case="small"))
    assert path.read_bytes() == before


@pytest.mark.parametrize("author", ["..", "a/b", "", "x" * 5000, "\0"])
def test_an_author_that_cannot_be_a_folder_has_none(author: str, tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="cannot be the name of a directory"):
        archive_profile(tmp_path, "double", author, profile())
    assert stored_profile(tmp_path, "double", TOLD.model_copy(update={"author": author}), RUN) is None


def test_one_that_fits_is_left_as_it_is() -> None:
    assert fitted(profile()) is not None
    assert fitted(profile()) == profile()


def test_only_the_longest_parts_are_cut(tmp_path: Path) -> None:
    long = {f"{k}.sass": f"/*{k}*/ MOV R1, c[0x0][0x28]\n" * 40_000 for k in range(8)}
    large = profile(files={**long, **SECTIONS["files"]})
    cut = fitted(large)
    archive_profile(tmp_path, "double", "ada", cut)
    assert read(tmp_path) == cut
    assert MAX_BYTES // 4 < location(tmp_path, "double", "ada", RUN).stat().st_size <= MAX_BYTES
    assert (cut.stacks, cut.rows, cut.tables) == (large.stacks, large.rows, large.tables)
    assert cut.files["0-doubling.ptx"] == ".target sm_90\n"
    for name, text in long.items():
        assert text.startswith(cut.files[name])
        assert cut.files[name].endswith("\n"), "whole lines"
    [line] = [line for line in cut.missing if line.startswith("3.sass: ")]
    assert line.endswith(f" of {len(json.dumps(long['3.sass'])):,} bytes are kept")
    assert len(cut.missing) == 8


@pytest.mark.parametrize(
    "sections",
    [
        {"stacks": {"s, µs": "".join(f"main;f{k} 1\n" for k in range(9000))}},
        {"rows": {"r": (("n",), *((str(k),) for k in range(50_000)))}},
        {"tables": {"t": "\x01" * 100_000}},
        {"files": {"one line": "x" * 200_000}},
        {"files": {f"f{k}": "x" * 3000 for k in range(512)}},
    ],
    ids=["stacks", "rows", "tables", "a long line", "many files"],
)
def test_every_kind_of_part_can_be_cut(sections: dict[str, Any]) -> None:
    limit = 600_000 if len(sections.get("files", ())) > 1 else 60_000
    cut = fitted(profile(**{**SECTIONS, **sections}), limit)
    assert len(cut.model_dump_json().encode()) < limit
    assert StoredProfile.model_validate_json(cut.model_dump_json()) == cut, "it is as valid as before"
    assert cut.missing


def changed(**keys: Any) -> bytes:
    return json.dumps({**json.loads(profile().model_dump_json()), **keys}).encode()


HOSTILE = {
    "empty": b"",
    "not JSON": b"<html>",
    "not UTF-8": changed(case="x").replace(b'"x"', b'"\xff\xfe"'),
    "a lone surrogate": changed(case="\ud800"),
    "a list": b"[]",
    "deep": b"[" * 1_000_000,
    "many keys": json.dumps({str(k): k for k in range(100_000)}).encode(),
    "a number for a name": changed(case=7),
    "a number for a text": changed(files={"a": 7}),
    "a list for a text": changed(tables={"a": ["b"]}),
    "an unknown part": changed(script="alert()"),
    "a later version": changed(schema_version=2),
    "stacks without a count": changed(stacks={"a": "b"}),
    "a negative count": changed(stacks={"a": "b -1\n"}),
    "a huge count": changed(stacks={"a": "b " + "9" * 5000}),
    "rows that differ": changed(rows={"a": [["b"], ["c", "d"]]}),
    "no rows": changed(rows={"a": []}),
    "a number as a cell": changed(rows={"a": [[1]]}),
    "too many files": changed(files={str(k): "" for k in range(600)}),
    "a long name": changed(files={"x" * 5000: ""}),
    "another run": changed(run="c" * 16),
    "another source": changed(sha256="c" * 64),
    "a run with a line break": changed(run=RUN + "\n"),
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_an_invalid_profile_gets_one_line(content: bytes, tmp_path: Path) -> None:
    path = archive_profile(tmp_path, "double", "ada", profile())
    path.write_bytes(content)
    begun = time.monotonic()
    with pytest.raises(HarnessError) as refused:
        read(tmp_path)
    assert time.monotonic() - begun < 60, "not even a hostile one takes long"
    assert str(refused.value).startswith(f"{path} is ")
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < len(str(path)) + 400


def a_hundred_megabytes(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(100 << 20)


def a_link(path: Path) -> None:
    target = path.with_name("target")
    target.write_text(profile().model_dump_json())
    path.symlink_to(target)


@pytest.mark.parametrize("make", [a_hundred_megabytes, a_link, os.mkfifo, Path.mkdir])
def test_only_a_regular_file_of_bounded_size_is_read(make: Callable[[Path], None], tmp_path: Path) -> None:
    path = archive_profile(tmp_path, "double", "ada", profile())
    path.unlink()
    make(path)
    with pytest.raises(HarnessError, match=r"is not a profile|the profile cannot be read"):
        read(tmp_path)


@pytest.mark.parametrize("content", [b"<html>", HOSTILE["another run"]])
def test_a_site_with_a_damaged_profile_is_built_and_says_so(content: bytes, tmp_path: Path, site: SiteProject) -> None:
    site.profile(site.add(run_of("ada", 50_000, "a"))).write_bytes(content)
    site.profile(site.add(run_of("bob", 60_000, "b")))
    site.build()
    page = site.html(f"runs/{'a' * 16}.html")
    assert "a profile of this run that cannot be read" in page
    assert str(tmp_path) not in page
    assert not (site.out / f"profiles/{'a' * 16}.html").exists()
    assert (site.out / f"profiles/{'b' * 16}.html").exists()


def test_verify_checks_the_profiles(competition: Path, command: Command) -> None:
    root, ledger = competition / "leaderboard/archive", JsonlLedger(competition / "leaderboard/results/double.jsonl")
    submission, verdict = graded("ada", sha256=load(competition / "problems/double").sha256)
    archive(root, "double", submission)
    ledger.append(verdict)
    path = archive_profile(root, "double", "ada", profile(run=verdict.run, sha256=verdict.submission.sha256))
    assert command("verify").code == 0
    (root / "double/bob").mkdir()
    stray = [root / "double/ada" / f"{'f' * 16}.profile.json", root / "double/bob" / path.name]
    for each in stray:
        each.write_bytes(path.read_bytes())
    path.write_bytes(b"\x1b[31m")
    result = command("verify")
    assert result.code == 7
    lines = [line for line in result.out.splitlines() if "profile" in line]
    what = "is not a profile (the file: Invalid JSON: expected value at line 1 column 1)"
    assert lines == [
        f"{ledger.path}:1: run {verdict.run}: {path} {what}",
        *(f"{each}:1 is a profile of no run of this author in the ledger" for each in stray),
    ]
