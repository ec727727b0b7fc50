"""`submit`, `check` and `bench` on a server, and the commands that look at it, from the command line."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from harness.kinds import DeviceKind
from harness.verdict import Outcome, Stage, Verdict
from kernelmark.client import connection, following, servers
from kernelmark.service.refusal import Refusal
from kernelmark.service.submissions import PoolStatus, QueueStatus, StageProgress, Submissions, SubmissionStatus
from kernelmark.text import show as text
from leaderboard.record.fields import TableKey
from leaderboard.record.moderation import Moderation
from leaderboard.standings.ranking import Row, Table
from tests.documents import items, valid
from tests.unit.conftest import Answering, Command, Said, recorded
from tests.unit.service.client.conftest import TOKEN
from tests.unit.service.client.fake import Answered, Asked, Fake
from tests.verdicts import accepted, as_check, failed

RUN = "81def7c3a90b4412"
EVENT = f"submissions/{RUN}"
SUBMIT = ("submit", "double", "kernel.py", "--to", "bench")
GPU: DeviceKind = "cuda"
HOSTILE = "\x1b[31mowned\r\u202e"


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is repeated, unless a test wants it, and nobody waits."""
    monkeypatch.setattr(following, "_PAUSE_S", 0.01)
    monkeypatch.setattr(connection, "_PATIENCE_S", 0.0)


def status(state: str = "queued", version: int = 1, **more: Any) -> SubmissionStatus:
    fields = {
        "run": RUN, "problem": "double", "mode": "submit", "pool": "NVIDIA H200", "author": "ada",
        "received_at": datetime(2026, 1, 2, 13, 2, 11, tzinfo=UTC), "on_time": True,
        "state": state, "version": version, **more,
    }  # fmt: skip
    return SubmissionStatus.model_validate(fields)


def board(verdict: Verdict) -> dict[str, Any]:
    """The board on which this verdict alone stands."""
    assert verdict.score is not None
    submission = verdict.submission
    row = Row(
        rank=1, author=submission.author, submission=submission.name, language="py", sha256=submission.sha256,
        run=verdict.run, score=verdict.score, sandbox="docker", modes=("calls",), cases=4, effort="default",
        created_at=verdict.created_at, seq=1,
    )  # fmt: skip
    return {"version": 1, "items": [Table(key=TableKey.of(verdict), rows=(row,)).model_dump(mode="json")]}


def ends_as(fake: Fake, verdict: Verdict, *, mode: str = "submit", state: str = "recorded") -> None:
    """A submission that waits, is graded, and ends with this verdict."""
    fake.answers("POST submissions", status(mode=mode, before=3, expected_s=40.2, left="7 of 20 gradings"), status=202)
    step = StageProgress(stage=Stage.TEST, done=11, total=20, label="rows=256")
    ended = status(state, 4, mode=mode, outcome=verdict.outcome, left="6 of 20 gradings")
    fake.answers(f"GET {EVENT}", status("leased", 2, mode=mode), status("leased", 3, mode=mode, progress=step), ended)
    document = as_check(verdict).model_dump_json(exclude_none=True) if mode == "check" else verdict.to_json()
    fake.answers(f"GET {EVENT}/verdict", document.encode())
    if verdict.score is not None:
        fake.answers("GET boards/double", board(verdict))


def test_a_submission_is_sent_followed_and_shown(signed_in: Fake, run: Command, project: Path) -> None:
    (project / "tile.py").write_text("N = 1\n")
    ends_as(signed_in, accepted(run=RUN, problem="double"))
    result = run(*SUBMIT, "--with", "tile.py", "--quick", "--device-name", "NVIDIA H200")
    assert result.code == 0, result.err
    sent = signed_in.of("POST submissions")[0]
    assert {key: value for key, value in sent.document.items() if key not in ("source", "beside")} == {
        "problem": "double", "language": "py", "effort": "quick", "pool": "NVIDIA H200",
    }, "an earlier server may not know what is not used"  # fmt: skip
    assert [each["name"] for each in sent.document["beside"]] == ["tile.py"]
    assert sent.headers["authorization"] == f"Bearer {TOKEN}"
    assert f"on time; run {RUN}; left today: 7 of 20 gradings\n" in result.err
    assert "waiting: 3 before yours on NVIDIA H200, about 40 s\n" in result.err
    assert "test: 20 cases\n" in result.err
    assert result.out.startswith("accepted: 57.3 µs")
    assert "rank 1 of 1 on NVIDIA H200" in result.out
    assert "left today  6 of 20 gradings" in result.out
    assert [asked.parameters for asked in signed_in.of(f"GET {EVENT}")] == [
        {"after": str(version), "wait_s": "20.0"} for version in (1, 2, 3)
    ]
    assert recorded(project) == [], "nothing was graded or recorded here"


@pytest.mark.parametrize("outcome", [each for each in Outcome if each is not Outcome.INCOMPLETE])
@pytest.mark.parametrize("mode", ["submit", "bench", "check"])
def test_the_exit_status_is_that_of_a_local_grading(mode: str, outcome: Outcome, signed_in: Fake, run: Command) -> None:
    verdict = accepted(run=RUN) if outcome is Outcome.ACCEPTED else failed(outcome, run=RUN)
    ends_as(signed_in, verdict, mode=mode, state="recorded" if mode == "submit" else "done")
    result = run(mode, *SUBMIT[1:])
    assert result.code == outcome.exit_code
    assert result.out.startswith(outcome.value.replace("_", " "))
    assert signed_in.of("POST submissions")[0].document.get("mode", "submit") == mode
    assert ("run " in result.out) == (mode == "submit")


@pytest.mark.parametrize("mode", ["submit", "bench", "check"])
def test_a_module_that_was_not_sent_is_named(mode: str, signed_in: Fake, run: Command, project: Path) -> None:
    (project / "tile.py").touch()
    verdict = failed(Outcome.RUNTIME_ERROR, run=RUN, message="line 1: ModuleNotFoundError: No module named 'tile'")
    ends_as(signed_in, verdict, mode=mode, state="recorded" if mode == "submit" else "done")
    assert "tile.py lies beside kernel.py and was not given: add `--with tile.py`\n" in run(mode, *SUBMIT[1:]).err


@pytest.mark.parametrize(("mode", "document"), [("submit", "verdict"), ("check", "check")])
def test_the_document_is_that_of_a_local_grading(mode: str, document: str, signed_in: Fake, run: Command) -> None:
    verdict = accepted(run=RUN)
    ends_as(signed_in, verdict, mode=mode)
    printed = valid(run(mode, *SUBMIT[1:], "--format", "json").out)
    assert printed["$schema"].endswith(f"/{document}.json")
    if mode == "submit":
        assert Verdict.from_json(json.dumps(printed)) == verdict


def test_it_may_not_be_awaited(signed_in: Fake, run: Command) -> None:
    signed_in.answers("POST submissions", status(), status=202)
    result = run(*SUBMIT, "--no-wait")
    assert (result.code, result.out) == (10, f"{RUN}\n")
    printed = valid(run(*SUBMIT, "--no-wait", "--format", "json").out)
    assert (printed["run"], printed["state"]) == (RUN, "queued")
    assert signed_in.of(f"GET {EVENT}") == []


def test_ctrl_c_ends_the_waiting_and_not_the_grading(
    signed_in: Fake, run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = signed_in._next

    def interrupting(asked: Asked) -> Answered | None:
        if asked.path == EVENT:
            os.kill(os.getpid(), signal.SIGINT)
        return answer(asked)

    monkeypatch.setattr(signed_in, "_next", interrupting)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        signed_in.answers("POST submissions", status(), status=202)
        signed_in.answers(f"GET {EVENT}", status())
        result = run(*SUBMIT)
    finally:
        signal.signal(signal.SIGINT, before)
    assert (result.code, result.out) == (10, "")
    assert result.err.endswith(f"it is submitted, and goes on: `kernelmark watch {RUN} --server {signed_in.origin}`\n")
    assert signed_in.of(f"DELETE {EVENT}") == []


def test_without_a_network_it_goes_on_there(signed_in: Fake, run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "_GIVE_UP_S", 0.0)
    signed_in.answers("POST submissions", status(), status=202)
    signed_in.answers(f"GET {EVENT}", None)
    result = run(*SUBMIT)
    assert result.code == 10
    assert "no answer from" in result.err


def test_a_server_that_comes_back_is_followed_on(
    signed_in: Fake, run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    signed_in.answers("POST submissions", status(), status=202)
    verdict = accepted(run=RUN)
    signed_in.answers(f"GET {EVENT}", None, Answered(502, b""), status("recorded", 2))
    signed_in.answers(f"GET {EVENT}/verdict", verdict.to_json().encode())
    result = run(*SUBMIT)
    assert result.code == 0, result.err
    assert result.err.count("no answer from the server; trying again\n") == 1


def test_a_lost_answer_is_asked_for_again_with_the_same_key(signed_in: Fake, run: Command, project: Path) -> None:
    signed_in.answers("POST submissions", None)
    lost = run(*SUBMIT, "--no-wait")
    assert lost.code == 7
    assert "the same command again does not submit it twice" in lost.err
    signed_in._answers["POST submissions"].clear()
    signed_in.answers("POST submissions", status(), status=202)
    assert run(*SUBMIT, "--no-wait").code == 10
    keys = {asked.headers["idempotency-key"] for asked in signed_in.of("POST submissions")}
    assert len(keys) == 1
    assert run(*SUBMIT, "--no-wait").code == 10, "which is another submission: the first has its answer"
    (project / "kernel.py").write_text("def twice(x, y): y.copy_(x + x)\n")
    assert run(*SUBMIT, "--no-wait").code == 10
    assert len({asked.headers["idempotency-key"] for asked in signed_in.of("POST submissions")}) == 3


def test_a_key_is_kept_for_a_day_and_not_after_a_refusal(
    signed_in: Fake, run: Command, own_configuration: Path
) -> None:
    kept = own_configuration / "unanswered"

    def key() -> str:
        run(*SUBMIT)
        return signed_in.asked[-1].headers["idempotency-key"]

    signed_in.answers("POST submissions", None, Refusal(422, "x", "problem", "is unknown", "name another"), None)
    first = key()
    assert (key(), list(kept.iterdir())) == (first, [])
    second = key()
    [file] = kept.iterdir()
    os.utime(file, (0, 0))
    third = key()
    [file] = kept.iterdir()
    file.write_text("\x1b not a key")
    last = key()
    assert len({first, second, third, last}) == 4
    assert len(last) == 32
    assert set(last) <= set("0123456789abcdef")


def test_where_nothing_can_be_kept_it_is_submitted_all_the_same(
    signed_in: Fake, run: Command, own_configuration: Path
) -> None:
    (own_configuration / "unanswered").write_text("a file, where the folder should be")
    signed_in.answers("POST submissions", status(), status=202)
    assert run(*SUBMIT, "--no-wait").code == 10


def test_what_was_graded_before_is_said(signed_in: Fake, run: Command) -> None:
    signed_in.answers("POST submissions", status(), status=200)
    result = run(*SUBMIT, "--no-wait")
    assert "the same was submitted before, at 2026-01-02 " in result.err
    assert f"run {RUN}; --again grades it once more\n" in result.err
    run(*SUBMIT, "--no-wait", "--again")
    assert [asked.document.get("again", False) for asked in signed_in.asked] == [False, True]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"state": "cancelled"}, (2, "was cancelled; submit it again")),
        (
            {"state": "failed", "error": f"no sandbox {HOSTILE}"},
            (7, r"no sandbox \x1b[31mowned \u202e; this is not your"),
        ),
    ],
)
def test_what_ends_without_a_result(more: dict[str, Any], said: tuple[int, str], signed_in: Fake, run: Command) -> None:
    signed_in.answers("POST submissions", status(), status=202)
    signed_in.answers(f"GET {EVENT}", status(version=2, **more))
    done = run(*SUBMIT)
    assert (done.code, said[1] in done.err, done.out) == (said[0], True, "")


def test_a_servers_text_is_printed_without_its_controls(signed_in: Fake, run: Command) -> None:
    verdict = failed(Outcome.RUNTIME_ERROR, run=RUN, message=f"bad {HOSTILE}", name="kernel.py")
    texts = {"pool": f"GPU {HOSTILE}", "waits_for": f"no worker {HOSTILE}", "left": f"none {HOSTILE}"}
    step = StageProgress(stage=Stage.TEST, done=0, total=1, label=f"rows {HOSTILE}")
    signed_in.answers("POST submissions", status(**texts), status=202)
    ended = status("recorded", 5, error=HOSTILE, **texts)
    waits = status(version=2, before=1, pool=texts["pool"])
    leased = status("leased", 3, **texts), status("leased", 4, progress=step, **texts)
    signed_in.answers(f"GET {EVENT}", waits, *leased, ended)
    signed_in.answers(f"GET {EVENT}/verdict", verdict.to_json().encode())
    overview = QueueStatus(
        pools=(PoolStatus(pool=f"GPU {HOSTILE}", workers=1, devices=2, leased=1, queued=3, expected_s=70),),
        paused=HOSTILE,
    )
    signed_in.answers("GET queue", overview)
    signed_in.answers("GET submissions", Submissions(items=(status(**texts),)))
    for said in (run(*SUBMIT), run("queue", "--server", "bench"), run("runs", "--from", "bench")):
        assert said.code in (0, 4)
        assert not {"\x1b", "\r", "\u202e"} & {*said.out, *said.err}


def test_a_server_that_a_project_names_gets_nothing_before_one_signs_in(
    fake: Fake, run: Command, project: Path, judge: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (project / "kernelmark.toml").open("a") as settings:
        settings.write(f'[server]\nurl = "{fake.origin}"\n')
    result = run(*SUBMIT[:3])
    assert result.code == 2
    assert f"server {fake.origin} is named by this project, and you are not signed in there; if you trust" in result.err
    verdict = accepted(run=RUN)
    judge(verdict, verdict)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("click.confirm", lambda text, **_: f"{fake.origin} is named" in text)
    assert run(*SUBMIT[:3]).code == 0, "it was graded here, as answered"
    assert run("bench", *SUBMIT[1:3], "--here").code == 0
    assert fake.asked == []


def test_the_projects_server_is_where_it_is_graded_unless_here(
    signed_in: Fake, run: Command, project: Path, judge: Answering
) -> None:
    with (project / "kernelmark.toml").open("a") as settings:
        settings.write(f'[server]\nurl = "{signed_in.origin}"\n')
    signed_in.answers("POST submissions", status(), status=202)
    assert run(*SUBMIT[:3], "--no-wait").code == 10
    judge(accepted(run=RUN))
    assert run("check", *SUBMIT[1:3], "--here").code == 0
    assert len(signed_in.asked) == 1


@pytest.mark.parametrize(
    ("command", "flags"),
    [
        ("submit", ("--no-record",)), ("submit", ("--late", "grace")), ("submit", ("--profile",)),
        ("submit", ("--author", "eve")), ("bench", ("--baseline", "eager")), ("bench", ("--case", "large")),
        ("bench", ("--device", "cpu")), ("bench", ("--sandbox", "process")), ("check", ("--dump", "x")),
        ("check", ("--only", "small")), ("check", ("--fail-fast",)), ("check", ("--watch",)), ("submit", ("--here",)),
    ],
)  # fmt: skip
def test_what_is_for_this_machine_is_refused_with_a_server(
    command: str, flags: tuple[str, ...], signed_in: Fake, run: Command
) -> None:
    result = run(command, *SUBMIT[1:], *flags)
    assert (result.code, flags[0] in result.err, signed_in.asked) == (2, True, [])


@pytest.mark.parametrize("flags", [("--again",), ("--no-wait",), ("--device-name", "NVIDIA H200")])
def test_what_is_for_a_server_is_refused_without(flags: tuple[str, ...], run: Command) -> None:
    result = run(*SUBMIT[:3], *flags)
    assert (result.code, f"{flags[0]} is for a server" in result.err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("double", "none.py"), "No such file"),
        (("Not A Slug", "kernel.py"), "problem: 'Not A Slug' is not valid"),
        (("double", "kernel.py", "--device-name", "x" * 129), "pool: "),
    ],
)
def test_what_cannot_be_submitted_is_not_sent(
    arguments: tuple[str, ...], message: str, signed_in: Fake, run: Command
) -> None:
    done = run("submit", *arguments, "--to", "bench")
    assert (done.code, message in done.err, signed_in.asked) == (2, True, [])


def test_no_project_is_needed(
    signed_in: Fake, invoke: Command, tmp_path: Path, no_settings: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder := tmp_path / "empty").mkdir()
    (folder / "mine.cu").write_text("// a kernel\n")
    monkeypatch.chdir(folder)
    signed_in.answers("POST submissions", status(), status=202)
    assert invoke("submit", "softmax", "mine.cu", "--to", signed_in.origin, "--no-wait").code == 10
    assert (signed_in.asked[0].document["problem"], signed_in.asked[0].document["language"]) == ("softmax", "cu")
    assert [path.name for path in folder.iterdir()] == ["mine.cu"]


def test_watch_goes_on_where_submit_ended(signed_in: Fake, run: Command) -> None:
    verdict = accepted(run=RUN)
    signed_in.answers("GET submissions", Submissions(items=(status(),)))
    signed_in.answers(f"GET {EVENT}", status(), status("recorded", 2))
    signed_in.answers(f"GET {EVENT}/verdict", verdict.to_json().encode())
    for arguments in ((), (RUN,), (RUN[:5], "--server", "bench")):
        result = run("watch", *arguments)
        assert (result.code, result.out.startswith("accepted: ")) == (0, True), result.err
    for wrong in ("", "xyz", RUN + "0", "ffff"):
        assert run("watch", wrong).code == 2


def test_a_submission_is_cancelled(signed_in: Fake, run: Command) -> None:
    signed_in.answers(f"DELETE {EVENT}", b"")
    signed_in.answers(f"GET {EVENT}", status("cancelled", 2))
    assert run("cancel", RUN).out == f"run {RUN}: cancelled\n"
    assert valid(run("cancel", RUN, "--format", "json").out)["state"] == "cancelled"


def test_the_end_of_what_is_cancelled_under_way_may_be_shown_later(signed_in: Fake, run: Command) -> None:
    signed_in.answers(f"DELETE {EVENT}", b"")
    signed_in.answers(f"GET {EVENT}", status("leased", 2))
    assert run("cancel", RUN).out == f"run {RUN}: ends in a few seconds; `kernelmark watch {RUN}` shows how\n"


def test_the_queue_says_what_waits_and_where_ones_own_is(signed_in: Fake, run: Command) -> None:
    pools = (
        PoolStatus(
            pool="NVIDIA H200", workers=2, devices=8, leased=8, queued=31, expected_s=95, waits_for=("2 for one",)
        ),
        PoolStatus(pool="NVIDIA L4", workers=0, devices=0, leased=0, queued=1),
    )
    signed_in.answers("GET queue", QueueStatus(pools=pools, problems=("recording of double has stopped: why",)))
    signed_in.answers("GET submissions", Submissions(items=(status(before=0, expected_s=30),)))
    result = run("queue")
    assert result.out.splitlines() == [
        "  problem     recording of double has stopped: why",
        "NVIDIA H200",
        "  devices     8 devices of 2 workers",
        "  queue       8 being graded, 31 waiting",
        "  waiting     2 for one",
        "  a new one   ends in about 2 min",
        "NVIDIA L4",
        "  devices     no worker is connected",
        "  queue       0 being graded, 1 waiting",
        f"  yours       run {RUN}, double, submit: waiting: yours is next on NVIDIA H200, about 30 s",
    ]
    assert signed_in.of("GET submissions")[0].parameters["open"] == "true"
    document = valid(run("queue", "--from", "bench", "--format", "json").out)
    assert (len(document["pools"]), [own["run"] for own in document["yours"]]) == (2, [RUN])


@pytest.fixture(params=["UTC", "Etc/GMT-14", "Etc/GMT+12"])
def local_zone(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", request.param)
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("local_zone")
@pytest.mark.parametrize("zone", ["+00:00", "-14:00", "+14:00"])
@pytest.mark.parametrize("at", ["9999-12-31T23:59:59", "0001-01-01T00:00:00"])
def test_the_ends_of_the_calendar_are_shown(signed_in: Fake, run: Command, project: Path, at: str, zone: str) -> None:
    moment, days = datetime.fromisoformat(at + zone), ("9999-12-31", "9999-12-30", "0001-01-01", "0001-01-02")
    token = {"id": 1, "label": "", "scopes": ["read"], "current": True}
    token |= dict.fromkeys(("created", "ends", "last_used"), at + zone)
    signed_in.answers("GET me/tokens", {"items": [token]})
    signed_in.answers("GET submissions", Submissions(items=(status(received_at=moment),)))
    signed_in.answers("POST submissions", status(received_at=moment), status=202)
    listed, mine, sent = run("tokens", "list"), run("runs", "--from", "bench"), run(*SUBMIT, "--no-wait")
    assert [listed.code, mine.code, sent.code] == [0, 0, 10]
    assert any(listed.out.count(day) == 3 and day in mine.out for day in days), listed.out + mine.out


def test_own_submissions_are_listed(signed_in: Fake, run: Command) -> None:
    ended: dict[str, Any] = {"outcome": Outcome.ACCEPTED, "score_s": 28e-6}
    found = (
        status("recorded", **ended, standing="rank 1 of 1"), status("recorded", **ended, standing="disqualified"),
        status("leased", run="3" * 16), status("recorded", outcome=Outcome.WRONG_ANSWER, run="2" * 16),
    )  # fmt: skip
    signed_in.answers("GET submissions", Submissions(items=found))
    result = run("runs", "double", "--last", "4", "--from", "bench")
    assert [line.split()[3:] for line in result.out.splitlines()[2:]] == [
        ["double", "submit", "accepted", "28.0", "µs", "rank", "1", "of", "1"],
        ["double", "submit", "accepted", "28.0", "µs", "disqualified"],
        ["double", "submit", "being", "graded"],
        ["double", "submit", "wrong", "answer"],
    ]
    [asked] = signed_in.asked
    assert asked.parameters == {"last": "4", "problem": "double", "standings": "true"}
    listed = items(run("runs", "--from", "bench", "--format", "json").out)
    assert [one["standing"] for one in listed] == ["rank 1 of 1", "disqualified", "", ""]
    assert run("runs", "--from", "bench", "--author", "eve").code == 2


def test_runs_are_selected_on_a_server(signed_in: Fake, run: Command, caplog: pytest.LogCaptureFixture) -> None:
    signed_in.answers("GET submissions", Submissions(items=(status("recorded"),)))
    nowhere = f"run {RUN} is not accepted (wrong answer), and ranks nowhere"
    signed_in.answers("PUT selection", {"author": "ada", "runs": [RUN], "sources": 1, "warnings": [nowhere]})
    result = run("select", RUN[:5], "--to", "bench")
    assert (result.code, result.out, "selected for ada: 1 source\n" in result.err) == (0, f"{RUN}\n", True), result.err
    assert nowhere in caplog.text
    [sent] = signed_in.of("PUT selection")
    assert sent.document == {"runs": [RUN]}
    assert run("select", RUN, "--to", "bench", "--author", "eve").code == 2


def test_a_board_and_a_run_are_read_by_anybody(fake: Fake, run: Command) -> None:
    verdict = accepted(run=RUN, problem="double")
    fake.answers("GET boards/double", board(verdict))
    fake.answers("GET boards", board(verdict))
    fake.answers(f"GET runs/{RUN}", verdict.to_json().encode())
    assert "ada" in run("board", "double", "--from", fake.origin).out
    assert len(items(run("board", "--from", fake.origin, "--format", "json").out)) == 1
    assert RUN in run("show", RUN, "--from", fake.origin).out
    assert valid(run("show", RUN, "--from", fake.origin, "--format", "json").out)["run"] == RUN
    assert [asked.headers.get("authorization") for asked in fake.asked] == [None] * 5
    for wrong in (("board", "--write"), ("show", RUN, "--diff"), ("show", RUN, RUN)):
        assert run(*wrong, "--from", fake.origin).code == 2
    assert run("show", RUN, "--from", "unknown").code == 2


def test_what_moderation_said_of_a_run_is_shown_as_in_its_project(fake: Fake, run: Command) -> None:
    verdict, shown = accepted(run=RUN, problem="double"), board(accepted(run="1" * 16, problem="double"))
    at = [datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2, 3)]
    of_source: Any = {"scope": "source", "sha256": verdict.submission.sha256}
    first, note = (
        Moderation(run="2" * 16, action="disqualify", actor="grace", reason="looked up", created_at=at[0], **of_source),
        Moderation(run=RUN, action="annotate", actor="grace", reason="asked", created_at=at[1]),
    )
    other = Moderation(run="1" * 16, action="annotate", actor="grace", reason="another", created_at=at[2])
    [row] = shown["items"][0]["rows"]
    said = [[event.model_dump(mode="json") for event in events] for events in ((note, other), (first, note))]
    shown["items"][0]["rows"] = [{**row, "moderation": said[0]}]
    shown["items"][0]["set_aside"] = [{**row, "run": RUN, "state": "disqualified", "moderation": said[1]}]
    fake.answers("GET boards/double", shown)
    fake.answers(f"GET runs/{RUN}", verdict.to_json().encode())
    assert [*text.run(verdict, (first, note))] == run("show", RUN, "--from", fake.origin).out.splitlines()


def test_ones_own_run_is_shown_before_everybody_may_see_it(signed_in: Fake, run: Command) -> None:
    signed_in.answers(f"GET {EVENT}/verdict", accepted(run=RUN).to_json().encode())
    assert RUN in run("show", RUN, "--from", "bench").out
    result: Said = run("show", "0" * 16, "--from", "bench")
    assert (result.code, "there is no such page" in result.err) == (2, True)


def test_a_server_without_a_token_is_said(run: Command) -> None:
    for command in (SUBMIT, ("queue",), ("watch",), ("cancel", RUN), ("runs", "--from", "bench")):
        result = run(*command)
        assert (result.code, "kernelmark login" in result.err) == (2, True), result.err
    assert servers.known() == {}
