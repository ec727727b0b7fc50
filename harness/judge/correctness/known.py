"""Detects foreign problems whose inputs can all be known beforehand, so that answers could be looked up. Trusted.

Our own problems draw their declared fills from a secret seed of 63 bits. The generator of another author may accept few
seeds, or ignore the seed.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence

import torch

from harness.device import DEVICES
from harness.errors import DeviceError
from harness.judge.correctness.oracle import Oracle
from harness.judge.correctness.truth import Truth
from harness.kinds import DeviceKind
from harness.problem import Problem, ResolvedCase
from harness.problem.lists import Tensors
from harness.shared.carrier import carrier
from harness.verdict import Doubt, DoubtCode

ENOUGH_BITS = 31
"""With this many bits, the answers to all 2 billion inputs do not fit into a submission's memory."""
_WORDS = 1 << 22
_CERTAIN_BYTES = 8
_DRAWS = 20
_SECRET = secrets.randbits(62)


def known_inputs(
    problem: Problem, oracle: Oracle, cases: Sequence[ResolvedCase], device: DeviceKind
) -> tuple[Doubt, ...]:
    """The doubt about a problem whose inputs are known.

    Raises:
        ProblemError: the reference fails.
        DeviceError: the device has too little memory.
    """
    assert problem.foreign is not None
    bits, text = problem.foreign.seed_bits, ""
    if known := next((case for case in cases if _same(oracle, case, device)), None):
        text = f"{known.name}: no seed changes its inputs, or what they lead to"
    elif problem.foreign.form == "gpu-mode" and bits < ENOUGH_BITS:
        remedy = "import the problem again, if an earlier version imported it"
        text = f"its inputs are drawn from {1 << bits:,} seeds alone: {remedy}"
    return (Doubt(code=DoubtCode.KNOWN_INPUTS, text=text),) if text else ()


def _same(oracle: Oracle, case: ResolvedCase, device: DeviceKind) -> bool:
    """Whether two seeds give the same inputs, or all seeds the same answer.

    The answers to two seeds may be equal by chance if they are only a truth value, so those are compared more often.
    """
    inputs, answer, nbytes = _drawn(oracle, case, device)
    for _ in range(1 if nbytes >= _CERTAIN_BYTES else _DRAWS):
        others, another, _ = _drawn(oracle, case, device)
        if inputs == others:
            return True
        if answer != another:
            return False
    return True


def _drawn(oracle: Oracle, case: ResolvedCase, device: DeviceKind) -> tuple[list[list[int]], list[list[int]], int]:
    """Checksums of new inputs, and of the answer to them, and the size of the answer in bytes.

    Raises:
        DeviceError: the device has too little memory for them.
    """
    try:
        inputs = oracle.generate(case, DEVICES[device].generator(secrets.randbits(62)))
        answer = Truth(oracle, case).of_call(inputs)
        return [*_sums(inputs)], [*_sums(answer)], sum(tensor.nbytes for tensor in answer.values())
    except torch.OutOfMemoryError:
        what = "the judge ran out of device memory while it compared inputs"
        raise DeviceError(what, "use a larger device") from None


def _sums(tensors: Tensors) -> Iterator[list[int]]:
    """Sum the words of each tensor with secret weights, the same in every call: equal sums mean equal tensors."""
    drawn = torch.randint(-(1 << 62), 1 << 62, (_WORDS,), generator=torch.Generator().manual_seed(_SECRET))
    for name in sorted(tensors):
        flat = carrier(tensors[name]).contiguous().reshape(-1).view(torch.uint8)
        weights = drawn.to(flat.device)
        yield [_sum(part, weights) for part in flat.split(8 * _WORDS)]


def _sum(part: torch.Tensor, weights: torch.Tensor) -> int:
    words = torch.zeros(-(-len(part) // 8) * 8, dtype=torch.uint8, device=part.device)
    words[: len(part)] = part
    whole = words.view(torch.int64)
    return int((whole * (weights[: len(whole)] | 1)).sum())
