"""Runs a foreign reference in a sandbox: it draws inputs, computes answers, and may judge answers.

This module is trusted; the reference is not. A runner builds and calls it like a submission, with the same limits on
what it can do to this machine. Its judgement of an answer is believed, as the problem's author wished. A failure of the
reference is an error of the problem, and is never charged to a submission.
"""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from harness.arena import Arena, give_back
from harness.arena.shapes import copied
from harness.device import DEVICES
from harness.errors import ProblemError
from harness.judge.correctness.arenas import arenas, bind, descriptors, placed
from harness.judge.correctness.layout import LARGE_BYTES, ArenaName, Layout, Slot
from harness.judge.session import BuildRequest, Session, SubmissionFault
from harness.judge.session.time_limit import TimeLimit
from harness.problem import Problem, ResolvedCase
from harness.problem.foreign_files import foreign_files
from harness.problem.lists import flatten, grouped
from harness.problem.reference import NoReference, Reference, ToleranceCheck
from harness.problem.returned import Value
from harness.sandbox import Provider
from harness.shared.carrier import assign
from harness.shared.foreign import FORMS
from harness.verdict import DeviceKind
from harness.wire import commands, replies

_DRAWS = 5  # of the inputs on which a cost depends
R = TypeVar("R", bound=replies.Reply)


@dataclass
class _BoundCase:
    """The memory of one call of a case, which the judge and the reference share."""

    case: ResolvedCase
    layout: Layout
    arenas: Mapping[ArenaName, Arena]

    def __post_init__(self) -> None:
        self._slots = {slot.tensor.name: slot for slot in self.layout.slots}

    @property
    def nbytes(self) -> int:
        return sum(arena.nbytes for arena in self.arenas.values())

    def tensor(self, slot: Slot) -> Tensor:
        return placed(slot, self.arenas[slot.place].bytes)

    def put(self, values: Mapping[str, Value]) -> None:
        """Copy tensors, or lists of them, by name, into the shared memory."""
        for name, tensor in flatten(values).items():
            assign(self.tensor(self._slots[name]), tensor)

    def close(self) -> None:
        for arena in self.arenas.values():
            arena.close()


class Oracle:
    """Has the interface of a `Reference`. Starts its sandbox at the first call; close it afterwards.

    Several threads may call it: baselines are recorded in threads of their own, on inputs that are drawn here.
    """

    exact = False
    """False: it computes in the dtypes of the problem, not in float64."""
    generates = True

    def __init__(self, problem: Problem, provider: Provider, device: DeviceKind) -> None:
        assert problem.foreign is not None
        self._problem, self._provider, self._device = problem, provider, DEVICES[device]
        self._foreign, self._form = problem.foreign, FORMS[problem.foreign.form]
        self._session: Session | None = None
        self._bound: _BoundCase | None = None
        self._lock = threading.RLock()  # protects the session and the bound memory
        self.weights_seed = secrets.randbits(62)
        """The seed of the weights that a class draws when it is created, here and in every submission."""

    @property
    def compares(self) -> bool:
        """Whether the reference itself decides what is right."""
        return self._form.decides

    def generate(self, case: ResolvedCase, generator: torch.Generator) -> dict[str, Tensor]:
        """Make the inputs of one call from the generator's seed.

        Raises:
            ProblemError: the reference fails, or returns something that does not match problem.toml.
        """
        options = json.dumps({**case.params, **case.options})
        seed = generator.initial_seed()
        if self._foreign.form == "gpu-mode":  # its authors add to seeds, and use them as values
            seed %= 1 << self._foreign.seed_bits
        draw = commands.Draw(form=self._foreign.form, seed=seed, options=options)
        with self._lock:
            bound = self._bind_case(case)
            self._ask(draw, replies.Done, "making inputs")
            slots = [slot for slot in bound.layout.slots if slot.tensor.role == "input"]
            return {slot.tensor.name: copied(bound.tensor(slot)) for slot in slots}

    def __call__(
        self, tensors: Mapping[str, Value], scalars: Mapping[str, int | float], case: ResolvedCase
    ) -> dict[str, Value]:
        """The outputs of one call, in their own dtypes.

        Raises:
            ProblemError: as for `generate`.
        """
        with self._lock:
            bound = self._bind_case(case)
            bound.put(tensors)
            self._ask(commands.Call(sets=(0,)), replies.Done, "answering")
            return grouped({slot.tensor.name: copied(bound.tensor(slot)) for slot in bound.layout.outputs}, case)

    def compare(
        self,
        got: Mapping[str, Value],
        inputs: Mapping[str, Value],
        truth: Mapping[str, Value],
        case: ResolvedCase,
        usual: ToleranceCheck | None = None,
    ) -> str | None:
        """Let the reference's own check judge an answer: None if it is right, else the reason.

        Raises:
            ProblemError: as for `generate`.
        """
        with self._lock:
            bound = self._bind_case(case)
            bound.put(inputs)
            bound.put(got)
            reply = self._ask(commands.Verify(), replies.Said, "checking an answer")
        return reply.text or None

    def release_large(self) -> None:
        """Release the memory of a large case, which the submission's call needs. The next use allocates it again."""
        with self._lock:
            if self._bound is not None and self._bound.nbytes > LARGE_BYTES:
                self._release()

    def close(self) -> None:
        """End the sandbox. Idempotent; a thread that waits for an answer gets an error of the sandbox."""
        session, bound = self._session, self._bound
        if session is not None:
            session.close()
        with self._lock:
            self._session = self._bound = None
            if bound is not None:
                bound.close()

    def _bind_case(self, case: ResolvedCase) -> _BoundCase:
        """The shared memory of a case; the reference maps it if it has not."""
        if self._bound is not None and self._bound.case is case:
            return self._bound
        session = self._session or self._start()
        self._release()
        layout = Layout(case.row_major())  # a reference may return any layout
        self._bound = _BoundCase(case, layout, arenas(layout, self._device.kind, 1, sealed=False))
        parameters = self._problem.parameters
        bindings = layout.commands(case, parameters, 1, seed=self.weights_seed, inputs_writable=True)
        with self._as_problem_errors():
            limit = TimeLimit(self._problem.limits.build_s)
            bind(session, bindings, descriptors(self._bound.arenas), limit=limit, doing="preparing a call")
        return self._bound

    def _release(self) -> None:
        if self._bound is not None:
            self._ask(commands.Release(), replies.Done, "releasing memory")
            self._bound.close()
            self._bound = None

    def _start(self) -> Session:
        limits = self._problem.limits
        self._session = session = Session.start(self._provider, self._device.kind, limits)
        session.handshake()
        source, *_ = self._foreign.files
        contents = foreign_files(self._problem.directory, self._foreign)
        build = commands.Build(
            language="py",
            symbols=(self._form.entry,),
            architecture=self._device.architecture(),
            style=self._problem.call.style,
            signature=self._problem.signature.replace(self._problem.entry, self._form.entry, 1)[:500],
            converts="always",
        )
        with self._as_problem_errors():
            session.build(BuildRequest(build, contents.pop(source.name), contents), limits.build_s)
        return session

    def _ask(self, command: commands.Command, expect: type[R], doing: str) -> R:
        assert self._session is not None
        self._device.synchronize()
        give_back(self._device.kind)
        with self._as_problem_errors():
            limit = TimeLimit(self._problem.limits.call_s + self._problem.limits.build_s)
            return self._session.ask(command, expect, limit=limit, doing=doing)

    @contextmanager
    def _as_problem_errors(self) -> Iterator[None]:
        """Turn a fault of the reference into an error of the problem."""
        try:
            yield
        except SubmissionFault as fault:
            where = str(self._problem.directory / self._foreign.files[0].path)
            raise ProblemError(where, f"the reference failed: {fault.message}") from None


def load_reference(problem: Problem, provider: Provider, device: DeviceKind) -> Reference | Oracle:
    """The problem's reference: its own reference.py, which runs here, or a foreign one in a sandbox. Close it.

    Raises:
        ProblemError: as for `Reference.load`.
    """
    if not problem.has_reference:
        return NoReference()
    return Oracle(problem, provider, device) if problem.foreign else Reference.load(problem)


def with_cost(reference: Reference | Oracle, case: ResolvedCase, device: DeviceKind) -> ResolvedCase:
    """The case with its cost, if that depends on generated inputs: the least of a few draws, so that it is not too
    high.

    Raises:
        ProblemError: `generate` fails.
    """
    if isinstance(reference, Oracle):
        return case
    return reference.with_cost(case, (DEVICES[device].generator(secrets.randbits(63)) for _ in range(_DRAWS)))
