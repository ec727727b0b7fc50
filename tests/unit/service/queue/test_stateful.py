"""Queue, leases, limits and cancellation together, in any order of events: what must hold after each of them.

Submissions, claims, progress, answers, errors, workers that are silent or start again, cancellations, and a server that
starts again; the time passes in steps of up to some minutes.
"""

from __future__ import annotations

import json
import tempfile
from contextlib import suppress
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from sqlalchemy import select

from kernelmark.server.accounts.principal import Principal
from kernelmark.server.database.tables import gradings
from kernelmark.server.queue import endings
from kernelmark.server.queue.leases import restart_timers
from kernelmark.server.queue.sweeper import Sweeper
from kernelmark.service.refusal import Refusal
from kernelmark.service.submissions import ENDED
from kernelmark.service.work import Lease
from tests.service_fixtures import FakeClock, make_principal, make_project, make_service
from tests.unit.service.queue.queueing import Worker, change, read, request, secret, status_of, submit

_NAMES = st.sampled_from(["ada", "bob", "eve"])
_WORKERS = st.sampled_from([0, 1])
_LIMITS = "[limits]\ngradings_a_day = 9\ndevice_seconds_a_day = 4000\nqueued_at_once = 4\n"


class Queue(RuleBasedStateMachine):
    """The server's queue, and what it has promised."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.clock = FakeClock()
        self.service = make_service(make_project(Path(self.folder.name) / "project", _LIMITS), self.clock)
        self.sweeper = Sweeper(self.service)
        self.people: dict[str, Principal] = {
            name: make_principal(self.service, name, team="quick" if name != "eve" else None)
            for name in ("ada", "bob", "eve")
        }
        self.promised: dict[str, str] = {}
        """Every run that was acknowledged, and who submitted it."""
        self.graded: set[str] = set()
        self.given: list[tuple[Worker, Lease]] = []
        self.workers = [Worker(self.service, "gpu0", slots=1), Worker(self.service, "gpu1", slots=2, devices=2)]
        for worker in self.workers:
            worker.hello()

    def teardown(self) -> None:
        if hasattr(self, "service"):
            self.service.database.close()
            self.folder.cleanup()

    @rule(name=_NAMES, batch=st.booleans())
    def submits(self, name: str, batch: bool) -> None:
        with suppress(Refusal):
            run = submit(self.service, self.people[name], request(batch="rl" if batch else None))
            assert run not in self.promised
            self.promised[run] = name

    @rule(number=_WORKERS, free=st.integers(1, 3), repeated=st.booleans())
    def claims(self, number: int, free: int, repeated: bool) -> None:
        worker, claim = self.workers[number], secret("claim", len(self.given))
        with suppress(Refusal):
            got = worker.claim(free, claim)
            if repeated and got:
                assert worker.claim(free, claim) == got
            self.given += [(worker, lease) for lease in got]

    @rule(number=_WORKERS, done=st.integers(0, 3), lists=st.booleans())
    def beats(self, number: int, done: int, lists: bool) -> None:
        worker = self.workers[number]
        with suppress(Refusal):
            for _, lease in self.given:
                if lists and lease.lease in worker.held:
                    worker.progress(lease, done)
            worker.beat(forget=not lists)

    @rule(seconds=st.integers(1, 60), which=st.integers(0, 100))
    def answers(self, seconds: int, which: int) -> None:
        """Any lease that was ever given, also late and twice."""
        if self.given:
            worker, lease = self.given[which % len(self.given)]
            with suppress(Refusal):
                row = change(self.service, lambda c: endings.find_answered(c, worker.name, lease.lease))
                if row.state not in ("queued", "leased", "failed"):
                    assert row.run in self.graded
                    return
                assert worker.accept(lease, seconds) not in self.graded
                self.graded.add(row.run)

    @rule(fault=st.sampled_from(["harness", "worker", "judge-lost", "usage"]), which=st.integers(0, 100))
    def errs(self, fault: str, which: int) -> None:
        if self.given:
            worker, lease = self.given[which % len(self.given)]
            with suppress(Refusal):
                worker.error(lease, fault)

    @rule(which=st.integers(0, 100))
    def cancels(self, which: int) -> None:
        if self.promised:
            run = list(self.promised)[which % len(self.promised)]
            with suppress(Refusal):
                change(self.service, lambda c: endings.cancel(c, self.service, run, self.people[self.promised[run]]))

    @rule(seconds=st.sampled_from([1, 6, 20, 91, 400, 90_000]))
    def passes(self, seconds: int) -> None:
        self.clock.pass_s(seconds)
        self.sweeper.sweep()

    @rule(number=_WORKERS)
    def restarts_a_worker(self, number: int) -> None:
        old = self.workers[number]
        new = Worker(self.service, old.name, slots=old.slots, devices=old.devices)
        with suppress(Refusal):
            new.hello()
            self.workers[number] = new

    @rule(jump=st.integers(0, 10**18))
    def restarts_the_server(self, jump: int) -> None:
        self.clock.monotonic = jump
        change(self.service, lambda c: restart_timers(c, self.service))

    @invariant()
    def nothing_is_lost_and_nothing_is_promised_twice(self) -> None:
        if not hasattr(self, "service"):
            return
        rows = {row.run: row for row in read(self.service, lambda c: c.execute(select(gradings)).all())}
        assert rows.keys() == self.promised.keys()
        for run, row in rows.items():
            leased = row.state == "leased"
            assert leased == (row.lease is not None and row.run not in self.graded)
            assert (row.state == "graded") == (run in self.graded)
            assert (row.ended_ns is not None) == (row.state in (*ENDED, "graded"))
            assert row.leases <= 5
            assert row.tries < 3
            assert row.charged <= (row.state in ("graded", "cancelled"))
            assert row.choosy == bool(json.loads(row.workers_failed) or json.loads(row.refused_by))
        held = [row.lease for row in rows.values() if row.state == "leased"]
        assert len(held) == len(set(held))
        for worker in self.workers:
            leases = [row for row in rows.values() if row.state == "leased" and row.worker == worker.name]
            assert len(leases) <= worker.slots + 1

    @invariant()
    def nobody_has_more_than_the_limits_allow(self) -> None:
        if not hasattr(self, "service"):
            return
        rows = read(self.service, lambda c: c.execute(select(gradings)).all())
        since = self.clock.now_ns() - 24 * 3600 * 10**9
        for owner in {row.owner for row in rows}:
            mine = [row for row in rows if row.owner == owner]
            assert sum(row.state in ("queued", "leased") for row in mine) <= 4
            counted = [row for row in mine if row.charged or row.state in ("queued", "leased", "failed")]
            recent = [row for row in counted if row.queued_ns > since and row.state != "failed"]
            assert len(recent) <= 9 + sum(row.state == "graded" for row in mine)  # late answers of failed ones count

    @invariant()
    def whoever_waits_has_a_place_of_their_own(self) -> None:
        if not hasattr(self, "service"):
            return
        shown = [status_of(self.service, run) for run in self.promised]
        places = sorted(one.before for one in shown if one.before is not None)
        assert places == list(range(len(places)))
        assert all((one.before is None) == (one.state != "queued") for one in shown)


def test_any_order_of_events_keeps_every_promise() -> None:
    run_state_machine_as_test(
        Queue, settings=settings(max_examples=25, stateful_step_count=30, derandomize=True, deadline=None)
    )
