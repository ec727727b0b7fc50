"""What commands print for programs: each follows its schema, fields are only added, errors are documents, too."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args
from unittest.mock import Mock

import pytest

from harness import errors
from harness.verdict import DoubtCode, Outcome, Verdict
from kernelmark.diagnostics import selftest
from kernelmark.project.documents import VERSION, ErrorCode, print_document, written
from kernelmark.text import words
from tests.documents import ROOT, items, valid
from tests.unit.conftest import Answering, Command
from tests.verdicts import accepted
from tools.schemas import DOCUMENTS, FOLDER, INPUTS, faults, lost, refused, schema, text

KERNELMARK = "\n".join(file.read_text(encoding="utf-8") for file in (ROOT / "kernelmark").rglob("*.py"))


@pytest.mark.parametrize("name", [*DOCUMENTS, *INPUTS])
def test_fields_are_only_added_to_a_document(name: str) -> None:
    assert faults(name) == [], "the promise of docs/cli.md"
    assert (FOLDER / f"{name}.json").read_text(encoding="utf-8") == text(name), "`make schemas` writes it anew"


def test_every_document_has_a_type_and_every_type_a_document() -> None:
    printed = set(re.findall(r'(?:print_(?:as\(\s*form,|document\()|\bwritten\()\s*"([\w-]+)"', KERNELMARK))
    assert printed == DOCUMENTS.keys()
    assert {file.stem for file in FOLDER.iterdir()} == {*DOCUMENTS, *INPUTS}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_no_field_of_a_type_replaces_the_version_of_its_document(name: str) -> None:
    head = schema(name)
    assert head["properties"]["version"] == {"const": VERSION, "type": "integer"}
    assert len(head["required"]) == len(set(head["required"])), "JSON Schema forbids to require a field twice"
    assert json.loads(written(name, {"version": 20}))["version"] == VERSION


@pytest.mark.parametrize(
    ("change", "messages"),
    [
        (lambda made: made["properties"].pop("items"), [".items: was array, now gone"]),
        (lambda made: made["required"].remove("items"), [".items: was array, now absent or array"]),
        (lambda made: _of(made, "DueDocument")["properties"].pop("run"), [".items[].run: was string, now gone"]),
        (
            lambda made: _of(made, "DueDocument")["properties"].update(run={"type": "integer"}),
            [".items[].run: was string, now integer"],
        ),
        (lambda made: _of(made, "DueDocument")["properties"].update(late={"type": "integer"}), []),
    ],
)
def test_a_field_that_is_gone_or_another_is_found(change: Callable[[dict[str, Any]], Any], messages: list[str]) -> None:
    changed = copy.deepcopy(schema("due"))
    change(changed)
    found = lost(schema("due"), changed)
    assert [fault for fault in messages if fault not in found] == []
    assert bool(found) == bool(messages)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda made: made["properties"].pop("beside"), ".beside: was "),
        (lambda made: made["required"].append("author"), ".author: is now required"),
        (
            lambda made: made["properties"].update(author={"type": "integer"}),
            ".author: was absent or string, now absent or",
        ),
        (lambda made: made["properties"].update(more={"type": "array", "items": {"type": "string"}}), ""),
    ],
)
def test_an_input_that_is_refused_from_now_on_is_found(change: Callable[[dict[str, Any]], Any], message: str) -> None:
    changed = copy.deepcopy(schema("job"))
    change(changed)
    found = refused(schema("job"), changed)
    assert any(fault.startswith(message) for fault in found) if message else found == []


def _of(made: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = made["$defs"][name]
    return found


@pytest.mark.parametrize(
    ("arguments", "status", "code", "message", "remedy"),
    [
        (("show", "ff"), 2, "usage", "run ff was never recorded here", "`kernelmark runs` lists all runs"),
        (("check", "doubel", "kernel.py"), 2, "usage", "doubel: no such problem", "did you mean `double`?"),
        (("check", "broken", "kernel.py"), 2, "problem", "problems/broken/problem.toml is not TOML", ""),
        (("check", "double", "none.py"), 2, "submission", "none.py", ""),
        (("board", "--wrong"), 2, "usage", "No such option", ""),
        (("doctor",), 2, "settings", "kernelmark.toml: unknown key `autor`", "did you mean `author`?"),
        (("export",), 2, "usage", "the record is written to a folder", "name one with --out"),
    ],
)  # fmt: skip
def test_an_error_is_a_document_with_the_same_status(
    arguments: tuple[str, ...], status: int, code: str, message: str, remedy: str, run: Command, project: Path
) -> None:
    (project / "problems/broken").mkdir()
    (project / "problems/broken/problem.toml").write_text("x =")
    if code == "settings":
        (project / "kernelmark.toml").write_text('autor = "ada"')
    result, plain = run(*arguments, "--format", "json"), run(*arguments)
    error = valid(result.out)["error"]
    assert (result.code, error["code"]) == (status, code)
    assert error["message"].startswith(message)
    assert remedy in error["remedy"]
    assert (plain.code, plain.err, plain.out) == (result.code, result.err, ""), "people read the same"


def test_an_unrecorded_result_is_one_document(run: Command, judge: Answering, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise errors.LedgerError("the disk is full")

    judge(accepted())
    monkeypatch.setattr("kernelmark.grading.recorder.record", fails)
    result = run("submit", "double", "kernel.py", "--format", "json")
    assert (result.code, valid(result.out)["outcome"]) == (7, "accepted")
    assert result.err.endswith("kernelmark: error: the disk is full\n")


def test_errors_and_interrupts_are_documents(run: Command, judge: Answering, monkeypatch: pytest.MonkeyPatch) -> None:
    judge(RuntimeError("oh"), KeyboardInterrupt())
    for status, code in ((7, "unexpected"), (130, "interrupted")):
        result = run("bench", "double", "kernel.py", "--format=json")
        assert (result.code, json.loads(result.out)["error"]["code"]) == (status, code)


def test_every_class_of_error_has_a_code() -> None:
    classes = [
        found for found in vars(errors).values() if isinstance(found, type) and found.__module__ == errors.__name__
    ]
    names = {re.sub("(?<=[a-z])(?=[A-Z])", "_", found.__name__.removesuffix("Error")).lower() for found in classes}
    assert names - {"kernelmark"} | {"unexpected", "interrupted"} == {*get_args(ErrorCode)}


def test_the_commands_of_a_record_follow_their_schemas(run: Command, judge: Answering, project: Path) -> None:
    """`run` checks each of them; here is only that each says something."""
    first, second = accepted(run="abc0000000000000"), accepted(run="abd0000000000000")
    judge(first, second)
    run("submit", "double", "kernel.py")
    (project / "kernel.py").write_text("def twice(x, y): y.copy_(x + x)\n")
    printed = run("submit", "double", "kernel.py", "--format", "json").out
    assert Verdict.from_json(printed).run == second.run, "it reads what a command printed"
    assert valid(run("show", "abd", "--format", "json").out)["run"] == second.run
    moderated = run("moderate", "annotate", "abc", "--actor", "grace", "--reason", "see", "--format", "json")
    assert valid(moderated.out)["action"] == "annotate"
    assert [item["directory"] for item in items(run("problems", "list", "--format", "json").out)] == [
        "problems/closed", "problems/double",
    ]  # fmt: skip
    assert [item["path"] for item in items(run("verify", "--format", "json").out)] == [
        "leaderboard/results/double.jsonl"
    ]
    assert valid(run("export", "--out", "record", "--format", "json").out)["verdicts"] == 2
    assert valid(run("cache", "--format", "json").out)["files"] >= 0


def test_audit_documents_follow_their_schemas(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    finding = {"tool": "memcheck", "state": "found", "text": "out of bounds"}
    made = {"run": "abc", "problem": "double", "findings": [finding]}
    monkeypatch.setattr("kernelmark.diagnostics.audits.audits", lambda *_, **__: iter([made]))
    result = run("audit", "abc", "--format", "json")
    assert (result.code, items(result.out)) == (4, [made])
    honest = selftest.KnownSubmission(folder=Path("honest"), devices=("cpu",))
    attack = honest.model_copy(update={"folder": Path("attack"), "surface": "work"})
    trials = [
        selftest.Trial(honest, "cpu", "process", "accepted", "", 1, None, None),
        selftest.Trial(attack, "cpu", "process", "rejected", "it cheats", None, None, "it did not run"),
    ]
    monkeypatch.setattr(selftest, "choose", lambda *_: [])
    monkeypatch.setattr(selftest, "attempt_all", lambda *_: trials)
    result = run("audit", "--self-test", "--format", "json")
    assert (result.code, [trial["ending"] for trial in valid(result.out)["trials"]]) == (7, ["accepted", "rejected"])


def test_every_outcome_doubt_and_term_is_explained(run: Command) -> None:
    entries = items(run("explain", "--format", "json").out)
    by_kind = {kind: {entry["word"] for entry in entries if entry["kind"] == kind} for kind in get_args(words.TermKind)}
    assert by_kind["outcome"] == {*Outcome, "usage", "our fault"}
    assert by_kind["doubt"] == {*DoubtCode, "few_rounds"}
    assert "red zone" in by_kind["term"]
    shown = run("explain").out
    assert [entry["word"] for entry in entries if f"\n{entry['word']} (" not in f"\n{shown}"] == []


@pytest.mark.parametrize(
    ("asked", "status", "message"),
    [
        (["Wrong answer"], 0, "wrong_answer (outcome): "),
        (["busy-machine"], 0, "  organizers  grade again on a quiet machine"),
        (["plain", "calls"], 0, "plain calls (term): "),
        (["drfit"], 2, "drfit is not explained here; did you mean `drift`?"),
        (["zebra"], 2, "zebra is not explained here; `kernelmark explain` lists all words"),
    ],
)
def test_a_word_is_found_however_it_is_spelled(asked: list[str], status: int, message: str, run: Command) -> None:
    answer = run("explain", *asked)
    assert answer.code == status
    assert message in (answer.err if status else answer.out)


def test_paths_are_those_of_the_project_or_of_the_home(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/runner")
    message = f"{project}/a.py {project} {project}2/a /home/runner/.cache /home/runners x{project}/a"
    print_document("error", {"said": message})
    assert json.loads(capsys.readouterr().out)["said"] == f"a.py . {project}2/a ~/.cache /home/runners x{project}/a"


def test_an_error_is_reported_without_cwd_or_home(run: Command, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = project / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    monkeypatch.setattr(Path, "home", Mock(side_effect=RuntimeError))
    result = run("board", "--format=json")
    assert (result.code, json.loads(result.out)["error"]["code"]) == (2, "settings")
