"""`kernelmark grade-many`: each line gets one result, whatever it holds and even after a kill."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from harness.errors import HarnessError, SandboxError
from kernelmark.grading.fleet import judges, lines
from kernelmark.grading.fleet.messages import JobAnswer, JobRequest
from tests.documents import ROOT, valid
from tests.unit.conftest import Said
from tests.workers import Act, FakeWorker, answered

pytestmark = pytest.mark.usefixtures("competition", "no_thread_stays")
Run = Callable[..., tuple[Said, list[dict[str, Any]]]]


@pytest.fixture
def run(invoke: Callable[..., Said], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Writes the jobs, runs the command with one worker, and reads the results."""
    usable = SimpleNamespace(name="bwrap", unavailable=lambda: None)
    monkeypatch.setattr(judges, "providers", lambda _: [usable])

    def run(*jobs: Any, act: Act = answered, out: Path | None = None, options: tuple[str, ...] = ()) -> Any:
        worker = FakeWorker(act)
        run.worker = worker  # type: ignore[attr-defined]
        monkeypatch.setattr(judges, "local_workers", lambda *_, **__: [worker])
        file = tmp_path / "jobs.jsonl"
        file.write_text("".join(f"{job if isinstance(job, str) else json.dumps(job)}\n" for job in jobs))
        more = () if out is None else ("--out", str(out))
        result = invoke("grade-many", str(file), "--sandbox", "bwrap", *more, *options)
        printed = result.out if out is None else out.read_text()
        return result, [valid(line) for line in printed.splitlines()]

    return run  # type: ignore[return-value]


def job(number: int, **more: Any) -> dict[str, Any]:
    return {"problem": "double", "source": f"# {number}\n", "key": number, **more}


def test_each_line_has_one_result(run: Run, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("# own\n")
    mine = {"problem": "double", "file": str(tmp_path / "own.py"), "author": "ada", "run": "a" * 16, "key": "own"}
    bad = {
        "not json": "line 4 cannot be read (not JSON (Expecting value at column 1))",
        '{"problem": "double"}': "has not one of `source` and `file`",
        json.dumps(job(1, language="rb", key="bad")): "unknown language",
        json.dumps(job(1, hurry=True, key=[7])): "has an unknown key `hurry`",
        "[]": "is not a JSON object",
        json.dumps(job(1, timeout=-1)): "-1.0 is not a time",
        json.dumps({**job(1), "problem": "trebble"}): "no such problem",
        json.dumps(job(1, source="\ud800", key="\ud800")): "is not utf-8 text",
        json.dumps(job(1, run="a" * 16)): f"line 12 has the run {'a' * 16} of line 3",
        "\0" * 70_000: "cannot be read (not JSON",
    }
    outcome, results = run(job(1), "", mine, *bad, job(1))
    assert (outcome.code, outcome.err.splitlines()[-1]) == (
        2,
        "10 jobs could not be graded; each has a result with its error",
    )
    by_line = {result["line"]: result for result in results}
    assert sorted(by_line) == [1, *range(3, 5 + len(bad))], "a blank line has none"
    first, own, again = by_line[1], by_line[3], by_line[4 + len(bad)]
    assert (first["key"], first["outcome"], first["tries"], first["duplicate"]) == (1, "accepted", 1, False)
    assert first["verdict"]["run"] == first["run"]
    assert first["reward"] == 1
    assert (own["run"], own["verdict"]["submission"]["author"], own["key"]) == ("a" * 16, "ada", "own")
    assert (again["duplicate"], again["tries"], again["run"] != first["run"]) == (True, 0, True)
    for number, (line, what) in enumerate(bad.items(), 4):
        assert what in by_line[number]["error"]["message"].lower() or what in by_line[number]["error"]["message"], line
        assert "verdict" not in by_line[number]
    assert (by_line[6]["key"], by_line[7]["key"]) == ("bad", [7])


def test_a_check_has_no_verdict(run: Run) -> None:
    _, [result] = run(job(1), options=("--check",))
    assert ("verdict" in result, result["check"]["outcome"]) == (False, "accepted")


@pytest.mark.parametrize("timed", [("--effort", "quick"), ("--baseline", "eager")])
def test_a_check_takes_no_options_of_times(run: Run, timed: tuple[str, str]) -> None:
    outcome, results = run(job(1), options=("--check", *timed))
    assert (outcome.code, results, "--check times nothing" in outcome.err) == (2, [], True)


def test_after_a_full_disk_the_same_command_goes_on(tmp_path: Path) -> None:
    results = lines.ResultFile(tmp_path / "results.jsonl")
    results._file = open("/dev/full", "ab")  # noqa: PTH123, SIM115 - the device that is always full
    with pytest.raises(HarnessError, match=r"a result could not be written \(No space left on device\)"):
        results.write(b"{}\n")


def test_options_reach_the_workers(run: Run) -> None:
    run(job(1), options=("--effort", "screen", "--baseline", "eager", "--baseline", "other"))
    [request] = run.worker.handed  # type: ignore[attr-defined]
    assert (request.effort, request.baselines) == ("screen", ("eager", "other"))


def test_the_same_command_goes_on_after_a_kill(run: Run, tmp_path: Path) -> None:
    """A line that was cut off, and one that we failed to grade, are graded again; others are not."""
    out, jobs = tmp_path / "results.jsonl", [job(number) for number in range(6)]

    def fails(request: JobRequest) -> JobAnswer:
        broken = JobAnswer.failed(request.run, SandboxError("no sandbox", "look"))
        return broken if request.submission.source == b"# 1\n" else answered(request)

    outcome, results = run(*jobs[:4], "rubbish", act=fails, out=out)
    assert (outcome.code, outcome.err.splitlines()[-1][:28]) == (7, "2 jobs could not be graded; ")
    [error] = [result["error"] for result in results if result["key"] == 1 and "error" in result]
    assert error == {"code": "sandbox", "message": "no sandbox", "remedy": "look"}
    kept = [line for line in out.read_text().splitlines(keepends=True) if json.loads(line)["key"] != 3]
    out.write_text("".join(kept) + '{"line": 4, "run": "00')
    outcome, results = run(*jobs[:4], "rubbish", *jobs[4:], out=out)
    assert outcome.code == 2, "one line is still no job"
    assert {request.submission.source for request in run.worker.handed} == {b"# %d\n" % n for n in (1, 3, 4, 5)}  # type: ignore[attr-defined]
    last = {result["line"]: result for result in results}
    assert sorted(last) == list(range(1, 8))
    assert [line for line, result in last.items() if "error" in result] == [5]
    assert len(results) == 9, "earlier errors are still there, before the results"
    assert run(*jobs[:4], "rubbish", *jobs[4:], out=out)[0].code == 2
    assert run.worker.handed == []  # type: ignore[attr-defined]


def test_a_job_whose_file_was_missing_is_graded_by_the_same_command(run: Run, tmp_path: Path) -> None:
    out, file = tmp_path / "results.jsonl", tmp_path / "late.py"
    fields = {"problem": "double", "file": str(file), "run": "a" * 16}
    assert run(fields, out=out)[0].code == 2
    file.write_text("# late\n")
    outcome, results = run(fields, out=out)
    assert (outcome.code, ["error" in result for result in results]) == (0, [True, False])


def test_the_schema_of_jobs_takes_what_the_command_takes() -> None:
    schema = Draft202012Validator(json.loads((ROOT / "docs/schemas/job.json").read_text()))
    good = job(1, language="cu", author="ada", timeout=2.5, run="a" * 16, beside={"a.h": ""})
    assert [error.message for error in schema.iter_errors(good)] == []
    for bad in ([], {}, job(1, hurry=True), job(1, timeout="soon"), job(1, beside=7)):
        assert not schema.is_valid(bad)
        [read] = lines.read_jobs([json.dumps(bad).encode()], set())
        assert isinstance(read.key, lines.LineId)
        assert read.key.error is not None


def test_a_file_of_something_else_and_one_in_use_are_refused(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "notes.txt"
    out.write_text("my notes\nmore")
    with pytest.raises(json.JSONDecodeError):
        run(job(1), out=out)
    assert out.read_text() == "my notes\nmore"
    out.unlink()
    first = lines.ResultFile(out)
    outcome, _ = run(job(1), out=out)
    assert (outcome.code, "another program writes it" in outcome.err) == (2, True)
    first.write(b'{"run": "a"}\n')
    assert out.read_text() == '{"run": "a"}\n'
