"""What a runner says under the profiler may be anything: each lie ends in one line. The runners are scripted."""

from __future__ import annotations

import json
import os
import pickle
import pickletools
import time
from pathlib import Path
from typing import Any

import pytest

from harness.judge.correctness.graded_case import GradedCase
from harness.judge.session import SubmissionFault
from harness.problem import load
from harness.problem.reference import Reference
from harness.profiling import watch as module
from harness.profiling.code import CompiledCode, compiled_code
from harness.profiling.torch_profile import TorchProfile, torch_profile
from harness.sandbox import Launch
from harness.submission import Submission
from kernelmark.diagnostics.selftest import PROBLEMS
from tests.runners import Script, Scripted, answering, but, doubling

SUBMISSION = Submission.of("def twice(x, y): ...", "py", author="tester")
SNAPSHOT = b'{"segments": [{"address": 1}], "device_traces": [[{"frames": [{"filename": "a.py"}]}]]}'
DEEP = b'{"segments": %b1%b, "device_traces": []}' % (b"[" * 900, b"]" * 900)
TRACE = json.dumps({"traceEvents": [{"name": "aten::mul"}]}).encode()


def profiled(artefacts: dict[str, bytes], sizes: dict[str, int] | None = None, **special: Any) -> TorchProfile:
    """What the judge reads from a runner that tells these sizes, and writes these bytes."""
    return torch_profile(SUBMISSION, a_case(), runner(artefacts, sizes, **special))


def code(document: bytes) -> CompiledCode:
    return compiled_code(SUBMISSION, a_case(), runner({"code": document}))


def a_case() -> GradedCase:
    problem = load(PROBLEMS / "double")
    [case, *_] = problem.tests
    return GradedCase(problem, Reference.load(problem), "cpu", problem.resolve(case))


def runner(artefacts: dict[str, bytes], sizes: dict[str, int] | None = None, **special: Any) -> Scripted:
    offered = sizes or {name: len(content) for name, content in artefacts.items()}
    names = [{"name": name, "file_bytes": nbytes} for name, nbytes in offered.items()]
    offer = answering("Profiled", artefacts=special.get("names", names))

    def fetch(script: Script, token: int, body: dict[str, Any]) -> None:
        os.write(script.descriptors[0], artefacts.get(body["name"], b""))
        script.reply(token, "Done")

    return Scripted(but(doubling(), Profile=offer, Inspect=offer, Fetch=special.get("fetch", fetch)))


def test_an_honest_one_is_read_whole() -> None:
    got = profiled({"trace 0": TRACE, "operators": b"a table", "cpu stacks": b"a;b 3\n", "memory snapshot": SNAPSHOT})
    assert json.loads(got.traces[0]) == json.loads(TRACE)
    assert (got.tables, got.unreadable) == ({"operators": "a table"}, [])
    assert pickle.loads(got.memory_snapshot) == json.loads(SNAPSHOT)  # noqa: S301 - we made it, of plain values
    assert [frame.name for frame in got.stacks["cpu stacks"].children] == ["a"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("trace 0", b"\xff\xfe{}", "trace 0: not JSON"),
        ("trace 0", b"[" * 100_000, "trace 0: nested more than 100 deep"),
        ("trace 1", b"[]", "trace 1: not a Chrome trace"),
        ("trace 0", b'{"traceEvents": 7}', "trace 0: not a Chrome trace"),
        ("trace 0", b'{"traceEvents": 1e999}', "trace 0: 1e999 is not a finite number"),
        ("trace 0", b'{"traceEvents": [%b]}' % (b"9" * 400), "trace 0: a number of more than 20 digits"),
        ("cpu stacks", b"a;b -3\n", "cpu stacks: "),
        ("cpu stacks", b"a " + b"9" * 5000, "cpu stacks: "),
        ("memory snapshot", b'{"segments": [], "segments": []}', "memory snapshot: a field stands twice"),
        ("memory snapshot", b'{"segments": [], "device_traces": {}}', "memory snapshot: not a memory snapshot"),
        ("memory snapshot", b"\x80\x04K\x07.", "memory snapshot: not JSON"),
        ("memory snapshot", DEEP, "memory snapshot: nested more than 100 deep"),
        ("tool output", b"forged", "tool output: was not asked for"),
    ],
)
def test_what_cannot_be_read_is_one_line(name: str, content: bytes, message: str) -> None:
    got = profiled({name: content, "shapes": b"right"})
    [line] = got.unreadable
    assert line.startswith(message)
    assert line.isprintable()
    assert got.tables == {"shapes": "right"}, "the rest is read"


def test_a_hundred_megabytes_are_not_fetched() -> None:
    got = profiled({"trace 0": TRACE}, sizes={"trace 0": 100 << 20})
    assert got.unreadable == ["trace 0: 104,857,600 bytes, more than 33,554,432"]


def test_a_profiler_has_room_besides_what_a_grading_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    scripted, launches, limits = runner({"trace 0": TRACE}), list[Launch](), load(PROBLEMS / "double").limits
    launch = scripted.launch

    def noted(given: Launch) -> Any:
        launches.append(given)
        return launch(given)

    monkeypatch.setattr(scripted, "launch", noted)
    assert torch_profile(SUBMISSION, a_case(), scripted).traces
    [given] = launches
    assert given.memory_bytes == 4 * limits.memory_bytes
    assert (given.processes, given.disk_bytes) == (4 * limits.processes, 4 * limits.disk_bytes)


def test_no_more_is_read_than_was_told_and_nothing_is_waited_for() -> None:
    longer = profiled({"operators": b"x" * 5000}, sizes={"operators": 10})
    assert longer.tables == {"operators": "x" * 10}
    nothing = profiled({}, sizes={"operators": 10, "trace 0": 10})
    assert nothing.tables == {"operators": "\\x00" * 10}, "the file has that size, whatever is written"
    assert nothing.unreadable == ["trace 0: not JSON (Expecting value at column 1)"]


def test_names_and_texts_are_printable() -> None:
    got = profiled({"operators": b"\x1b[31mred\xff\xe2\x80\xae", "cpu stacks": "a\x1b[2J\u202e;<script> 3\n".encode()})
    assert "\x1b" not in got.tables["operators"]
    assert "\u202e" not in got.tables["operators"]
    [frame] = got.stacks["cpu stacks"].children
    assert frame.name.isprintable()


def test_a_snapshot_is_made_of_plain_values_alone() -> None:
    got = profiled({"memory snapshot": SNAPSHOT.replace(b"a.py", b"\\u001b[31m")})
    names = {opcode.name for opcode, *_ in pickletools.genops(got.memory_snapshot)}
    assert not names & {"GLOBAL", "STACK_GLOBAL", "REDUCE", "BUILD", "INST", "OBJ", "NEWOBJ", "NEWOBJ_EX"}
    assert b"\x1b" not in got.memory_snapshot


@pytest.mark.parametrize("nbytes", [b"true", b'"7"', b"1.5", b"1e30", b"[]"])
def test_allocations_of_no_size_are_left_out(nbytes: bytes) -> None:
    allocated = b'{"name": "[memory]", "ts": 1, "args": {"Device Type": 0, "Bytes": %b}}'
    trace = b'{"traceEvents": [%b, %b, 3, {"name": "[memory]"}]}' % (allocated % nbytes, allocated % b"7")
    assert [timeline.points for timeline in profiled({"trace 0": trace}).memory] == [((0.0, 7),)]


@pytest.mark.parametrize(
    "names",
    [
        [{"name": "../../etc/passwd", "file_bytes": 1}],
        [{"name": "trace 0", "file_bytes": -1}],
        [{"name": "trace 0", "file_bytes": 1}] * 17,
        "trace 0",
    ],
    ids=["another name", "a negative size", "too many", "not a list"],
)
def test_what_the_protocol_does_not_know_ends_the_conversation(names: Any) -> None:
    with pytest.raises(SubmissionFault, match="broke the protocol while profiling"):
        profiled({}, names=names)


def test_one_that_never_delivers_runs_into_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "limit_s", lambda limits: 1.0)
    begun = time.monotonic()
    with pytest.raises(SubmissionFault, match="gave no answer within 1 s, while profiling one"):
        profiled({"trace 0": TRACE}, fetch=lambda script, *_: script.socket.recv(1))
    assert time.monotonic() - begun < 20


def test_honest_code_is_read_whole() -> None:
    got = code(json.dumps({"files": {"0 row_kernel.ptx": ".target sm_90\n", "submission.sass": "MOV"}}).encode())
    assert got.files == {"0-row_kernel.ptx": ".target sm_90\n", "submission.sass": "MOV"}
    assert got.unreadable == []


@pytest.mark.parametrize(
    "name", ["../../etc/cron.d/x", "/etc/passwd", "..", "", ".bashrc", "a\x00b", "x" * 5000, "\u202egnp.exe"]
)
def test_a_name_cannot_leave_the_folder(name: str) -> None:
    [kept] = code(json.dumps({"files": {name: "text"}}).encode()).files
    assert Path(kept).name == kept
    assert kept.isascii()
    assert not kept.startswith(".")
    assert 0 < len(kept) <= 80


@pytest.mark.parametrize(
    "document", [b"", b"[]", b'{"files": []}', b'{"files": 7}', b"{" * 9999, b'{"files": {"a": NaN}}']
)
def test_what_is_no_code_is_one_line(document: bytes) -> None:
    got = code(document)
    assert got.files == {}
    [line] = got.unreadable
    assert line.startswith("code: ")


def test_the_number_and_the_size_of_files_have_bounds() -> None:
    got = code(json.dumps({"files": {f"f{number}": "x" for number in range(1000)}}).encode())
    assert len(got.files) == 200
    assert got.unreadable == ["code: 1,000 files, of which 200 are kept"]
    large = code(json.dumps({"files": {"large": "x" * (3 << 20), "list": ["x"], "esc": "\x1b[2J"}}).encode())
    assert (len(large.files["large"]), "list" in large.files) == (2 << 20, False)
    assert "\x1b" not in large.files["esc"]


def test_the_resources_of_kernels_are_a_bounded_table() -> None:
    printed = "Fatbin elf code:\n Function a<b>:\n  REG:168 STACK:8 SHARED:{k} LOCAL:0 CONSTANT[0]:556\n"
    text = "".join(printed.replace("{k}", str(k)) for k in range(500)) + " Function c:\n  REG:many STACK:0\n"
    rows = code(json.dumps({"files": {"0.resources.txt": text, "sass": printed}}).encode()).resources
    assert rows[:2] == [("kernel", "registers", "stack (B)", "shared (B)", "local (B)"), ("a<b>", "168", "8", "0", "0")]
    assert len(rows) == 101
    assert code(b'{"files": {"0.resources.txt": "nothing"}}').resources == []
