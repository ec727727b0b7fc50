"""What a worker may answer: each field that it could forge is compared with its task; the honest answer is taken."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import insert, update

from harness.files.identity import with_private_cases
from harness.submission import Submission
from harness.verdict import CaseResult, Outcome, PrivateId, Verdict
from kernelmark.server.database.tables import gradings, pins, workers
from kernelmark.server.record.answers import accept_answer, read_answer, take_answer
from kernelmark.server.record.recorder import Recorder
from kernelmark.service.refusal import Refusal
from kernelmark.service.submissions import Mode
from kernelmark.service.work import Answer, TaskError
from tests.unit.service.record.conftest import SECOND_NS, Stored
from tests.verdicts import EPOCH, accepted, as_check

RUN = "00000000000000aa"
LEASE = RUN * 2
Forge = Callable[[Verdict], Verdict]


def leased(stored: Stored, mode: Mode = "submit", **values: Any) -> Verdict:
    """A submission that the worker gpu1 has, and its honest verdict."""
    submitted = stored.submission()
    stored.add(RUN, "leased", submitted, mode=mode, **values)
    return stored.verdict(submitted, RUN)


def answer(verdict: str | None = None, *, lease: str = LEASE, **other: Any) -> Answer:
    return Answer(instance="2" * 32, lease=lease, verdict=verdict, answered_at=EPOCH, **other)


def take(stored: Stored, submitted: Answer, worker: str = "gpu1") -> str:
    found = read_answer(stored.service, submitted)
    change = stored.service.database.write(lambda c: accept_answer(c, stored.service, worker, submitted, found))
    return change.result()


def refused(stored: Stored, submitted: Answer, worker: str = "gpu1") -> Refusal:
    before = stored.row(RUN)
    with pytest.raises(Refusal) as raised:
        take(stored, submitted, worker)
    assert stored.row(RUN) == before
    return raised.value


def part(of: str, **values: Any) -> Forge:
    """Forge values of a part of a verdict."""
    return lambda verdict: verdict.model_copy(update={of: getattr(verdict, of).model_copy(update=values)})


def whole(**values: Any) -> Forge:
    return lambda verdict: verdict.model_copy(update=values)


def later(seconds: float) -> Forge:
    return lambda verdict: verdict.model_copy(update={"created_at": verdict.created_at + timedelta(seconds=seconds)})


def with_private(verdict: Verdict, private: str) -> Verdict:
    problem = verdict.problem.model_copy(
        update={
            "private": PrivateId(sha256=private, cases=2),
            "sha256": with_private_cases(verdict.problem.sha256, private),
        }
    )
    return verdict.model_copy(update={"problem": problem})


def test_the_honest_answer_is_taken(stored: Stored) -> None:
    verdict = leased(stored)
    assert take(stored, answer(verdict.to_json())) == RUN
    row = stored.row(RUN)
    assert (row.state, row.answer, row.outcome) == ("graded", verdict.to_json(), "accepted")
    stored.record()
    assert stored.recorded() == [RUN]


def rounds(verdict: Verdict) -> Verdict:
    """The same, timed by rounds, in a table of its own where that ranks."""
    given = verdict.submission
    submitted = Submission(name=given.name, author=given.author, language="py", source=b"# 0\n")
    made = accepted(
        submission=submitted,
        run=RUN,
        problem="vector_add",
        problem_sha256=verdict.problem.sha256,
        protocol=verdict.protocol,
        created_at=verdict.created_at,
        modes=("calls",),
    )
    return made.model_copy(update={"requested_baselines": (), "duration_ns": 1})


FORGED: dict[str, Forge] = {
    "run": whole(run="b" * 16),
    "submission.author": part("submission", author="bob"),
    "submission.name": part("submission", name="other.py"),
    "submission.language": part("submission", language="cu"),
    "submission.sha256": part("submission", sha256="0" * 64),
    "submission.size_bytes": part("submission", size_bytes=1),
    "submission.beside": part("submission", beside=("helper.py",)),
    "problem.slug": part("problem", slug="softmax"),
    "problem.sha256": part("problem", sha256="0" * 64),
    "problem.private.sha256": lambda verdict: with_private(verdict, "0" * 64),
    "protocol": whole(protocol=4),
    "effort": whole(effort="thorough"),
    "environment.device_name": part("environment", device_name="NVIDIA B200"),
    "environment.device_kind": part("environment", device_kind="cpu"),
    "environment.sandbox": part("environment", sandbox="bwrap"),
    "environment.interpreted": part("environment", interpreted=True),
    "created_at before": later(-16),
    "created_at after": later(6),
    "duration_ns": whole(duration_ns=16 * SECOND_NS),
    "ranked_timing": rounds,
    "requested_baselines": whole(requested_baselines=("mine",)),
    "requested_baselines left out": whole(requested_baselines=None),
}


@pytest.mark.parametrize("field", FORGED)
def test_a_forged_field_is_refused_and_named(stored: Stored, field: str) -> None:
    verdict = leased(stored)
    refusal = refused(stored, answer(FORGED[field](verdict).to_json()))
    assert (refusal.status, refusal.code, refusal.where) == (422, "answer-differs", field.partition(" ")[0])
    assert take(stored, answer(verdict.to_json())) == RUN  # the honest twin still counts


def test_a_clock_that_is_wrong_is_said_so(stored: Stored) -> None:
    verdict = leased(stored)
    refusal = refused(stored, answer(later(3600)(verdict).to_json()))
    assert "by the server's clock; set the worker's clock" in str(refusal)
    for seconds in (-14, 4):
        assert later(seconds)(verdict).created_at  # within five seconds of the lease and of now
    assert take(stored, answer(later(4)(verdict).to_json())) == RUN


@pytest.mark.parametrize("sandbox", ["process", "bwrap"])
def test_only_sandboxes_that_the_project_accepts(stored: Stored, sandbox: str) -> None:
    (stored.root / "kernelmark.toml").write_text('[server]\nsandboxes = ["docker"]\n')
    stored.close()
    stored.open()
    verdict = leased(stored)
    stored.put(update(workers).values(sandbox=sandbox))
    assert (
        refused(stored, answer(part("environment", sandbox=sandbox)(verdict).to_json())).where == "environment.sandbox"
    )


def test_a_private_hash_counts_only_if_an_organizer_confirmed_it(stored: Stored) -> None:
    verdict = leased(stored)
    stored.put(insert(pins).values(problem="vector_add", final=False, private_sha256="7" * 64))
    assert refused(stored, answer(with_private(verdict, "8" * 64).to_json())).where == "problem.private.sha256"
    assert refused(stored, answer(verdict.to_json())).where == "problem.private.sha256"
    assert take(stored, answer(with_private(verdict, "7" * 64).to_json())) == RUN


def test_hidden_tests_run_where_something_is_recorded_unless_the_project_says_otherwise(stored: Stored) -> None:
    verdict = leased(stored, "bench")
    hidden = CaseResult(name="secret", hidden=True, outcome=Outcome.ACCEPTED)
    shown = whole(tests=(*verdict.tests, hidden))(verdict).to_json()
    assert refused(stored, answer(shown)).where == "tests"
    (stored.root / "kernelmark.toml").write_text("[server]\nchecks_hidden = true\n")
    stored.close()
    stored.open()
    assert take(stored, answer(shown)) == RUN
    assert stored.row(RUN).state == "done"


def test_a_baseline_of_the_project_may_be_compared_with(stored: Stored) -> None:
    (stored.root / "reference/vector_add").mkdir(parents=True)
    (stored.root / "reference/vector_add/eager.py").write_text("x = 1\n")
    verdict = leased(stored)
    assert take(stored, answer(whole(requested_baselines=("eager",))(verdict).to_json())) == RUN


def test_a_check_is_answered_by_a_check(stored: Stored) -> None:
    verdict = leased(stored, "check")
    check = as_check(verdict).model_dump_json(exclude_none=True)
    assert refused(stored, answer(verdict.to_json())).where == "answer"
    assert refused(stored, answer(verdict.to_json(), check=check)).where == "answer"
    assert refused(stored, answer()).where == "answer"
    assert take(stored, answer(check=check)) == RUN
    row = stored.row(RUN)
    assert (row.state, row.answer, row.outcome, row.score_s) == ("done", check, "accepted", None)


def test_a_verdict_is_not_answered_by_a_check(stored: Stored) -> None:
    verdict = leased(stored)
    assert refused(stored, answer(check=as_check(verdict).model_dump_json(exclude_none=True))).where == "answer"


@pytest.mark.parametrize(
    "change", ["spaces", "unknown key", "schema", "two runs", "nan", "deep", "no object", "version 1"]
)
def test_a_document_is_written_as_this_version_writes_it(stored: Stored, change: str) -> None:
    text = leased(stored).to_json()
    changed = {
        "spaces": json.dumps(json.loads(text)),
        "unknown key": text.replace('{"outcome"', '{"more":1,"outcome"', 1),
        "schema": text.replace('{"outcome"', '{"$schema":"docs/schemas/verdict.json","version":1,"outcome"', 1),
        "two runs": text.replace('{"outcome"', '{"run":"bbbbbbbbbbbbbbbb","outcome"', 1),
        "nan": text.replace('"confidence":0.95', '"confidence":NaN', 1),
        "deep": "[" * 100_000,
        "no object": "7",
        "version 1": text.replace('"schema_version":2', '"schema_version":1'),
    }[change]
    assert changed != text
    refusal = refused(stored, answer(changed))
    assert (refusal.status, refusal.where.split()[0]) == (422, "verdict")


def test_an_answer_has_a_bounded_size(stored: Stored) -> None:
    verdict = leased(stored)
    refusal = refused(stored, answer(whole(log="x" * (2 << 20))(verdict).to_json()))
    assert (refusal.status, refusal.where) == (413, "verdict")


def test_the_same_answer_again_is_acknowledged_and_changes_nothing(stored: Stored) -> None:
    verdict = leased(stored)
    given = answer(verdict.to_json())
    take(stored, given)
    before = stored.row(RUN)
    again = given.model_copy(update={"instance": "3" * 32})  # the worker was started anew, and had it on its disk
    assert take(stored, again) == RUN
    assert stored.row(RUN) == before
    assert refused(stored, answer(whole(log="other")(verdict).to_json())).status == 409
    stored.record()
    assert take(stored, given) == RUN
    assert refused(stored, answer(whole(log="other")(verdict).to_json())).status == 409


def test_an_error_is_acknowledged_twice_and_counted_once(stored: Stored) -> None:
    leased(stored)
    error = TaskError(fault="harness", error_class="SandboxError", what="it ended")
    take(stored, answer(error=error))
    before = stored.row(RUN)
    assert take(stored, answer(error=error)) == RUN
    assert stored.row(RUN) == before


@pytest.mark.parametrize("state", ["queued", "failed"])
def test_the_last_leases_verdict_counts_until_there_is_another(stored: Stored, state: str) -> None:
    verdict = leased(stored)
    stored.put(update(gradings).values(state=state, lease=None, last_lease=LEASE))
    before = stored.row(RUN)
    take(stored, answer(error=TaskError(fault="harness", error_class="SandboxError", what="it ended")))
    assert stored.row(RUN) == before  # it was tried again, or given up, already
    assert take(stored, answer(verdict.to_json())) == RUN
    assert stored.row(RUN).state == "graded"


@pytest.mark.parametrize("state", ["leased", "graded", "recorded", "cancelled", "done"])
def test_a_late_answer_changes_nothing(stored: Stored, state: str) -> None:
    verdict = leased(stored)
    lease = "4" * 32 if state == "leased" else None
    stored.put(update(gradings).values(state=state, lease=lease, last_lease=LEASE))
    assert refused(stored, answer(verdict.to_json())).status == 409


def test_a_lease_is_answered_by_the_worker_that_has_it(stored: Stored) -> None:
    verdict = leased(stored)
    assert refused(stored, answer(verdict.to_json()), "gpu2").status == 409
    assert refused(stored, answer(verdict.to_json(), lease="5" * 32)).status == 409


def test_who_waits_is_told_after_the_commit(stored: Stored, monkeypatch: pytest.MonkeyPatch) -> None:
    verdict, told = leased(stored), list[tuple[str, str]]()
    recorder = Recorder(stored.service)

    def tell(*topics: str) -> None:
        told.extend((topic, stored.row(RUN).state) for topic in topics)

    monkeypatch.setattr(stored.service.changes, "notify", tell)
    assert take_answer(stored.service, recorder.due, "gpu1", answer(verdict.to_json())).result() == RUN
    stored.close()
    assert (f"run:{RUN}", "graded") in told
    assert {state for _, state in told} == {"graded"}
