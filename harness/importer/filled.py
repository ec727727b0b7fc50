"""Finds the tensors of a problem's data that are no inputs: room for the result, handed over to be filled.

A tensor is one if it has the shape of a result in every case (or both have one element), and the result does not depend
on what it holds. That is tried where tensors have values, in the smallest case, by filling it with something else. A
reference that cannot run there, as one that needs a newer GPU, is watched on the meta device instead.
"""

from __future__ import annotations

import contextlib
import copy
import math
import signal
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from harness.importer.files import told
from harness.importer.loaded import Loaded, generated
from harness.importer.overwritten import overwritten
from harness.importer.values import Describer

_LIMIT_S = 40
_FILLS = (1, 0)


def filled(
    arguments: list[dict[str, Any]],
    cases: list[dict[str, Any]],
    loaded: Mapping[str, Loaded],
    ids: list[dict[int, int]],
) -> dict[str, str]:
    """For each tensor of the data that could be room for the result, by its id: "yes", "no", or why nobody knows.

    `ids` has what a `Describer` gives the tensors of each case, by the ids in `cases`, where the two differ.
    """
    tensors = [_tensors(case["data"]) for case in cases]
    results = [_tensors(case["result"]) for case in cases]
    if len({(*data, -1, *made) for data, made in zip(tensors, results, strict=True)}) != 1:
        return {}  # the ids differ between cases: their data has another structure
    candidates = [
        number
        for number, told in tensors[0].items()
        if "count" not in told
        and any(
            all(_alike(data[number], made[result]) for data, made in zip(tensors, results, strict=True))
            for result in results[0]
        )
    ]
    if not candidates:
        return {}
    least = smallest(cases)
    own = {number: ids[least].get(number, number) for number in candidates}
    *_, real = loaded.values()
    try:
        with limited(), real.here() as module:
            data = generated(module, arguments[least], 1)
            expected = _result(module, data)
            return {str(number): _tried(module, data, own[number], expected) for number in candidates}
    except BaseException as error:  # noqa: BLE001  # a process boundary: whatever a stranger's code raises
        unknown = told(error)[:160]
    watched: dict[str, str] = {}
    for number in candidates:
        watched[str(number)] = unknown
        with contextlib.suppress(Exception), loaded["meta"].here() as module:
            if overwritten(module, generated(module, arguments[least], 1), own[number]):
                watched[str(number)] = "yes"
    return watched


def smallest(cases: list[dict[str, Any]]) -> int:
    """Which case has the smallest data."""

    def elements(number: int) -> int:
        return sum(math.prod(each["shape"]) for each in _tensors(cases[number]["data"]).values())

    return min(range(len(cases)), key=elements)


def _alike(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two tensors have one shape; one element may have any: a sum [] is often put into room of [1]."""
    shapes = one["shape"], other["shape"]
    return shapes[0] == shapes[1] or all(math.prod(shape) == 1 for shape in shapes)


def _tried(module: Any, data: Any, number: int, expected: list[torch.Tensor]) -> str:
    for value in _FILLS:
        other = copy.deepcopy(data)
        describer = Describer()
        describer.describe(other)
        describer.tensors[number].fill_(value)
        try:
            got = _result(module, other)
        except TimeoutError:
            raise
        except Exception:  # noqa: BLE001  # it does not bear that value, so it reads it
            return "no"
        if len(expected) != len(got) or not all(map(_same_bits, expected, got)):
            return "no"
    return "yes"


def _same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    return torch.equal(one.reshape(-1).view(torch.uint8), other.reshape(-1).view(torch.uint8))


def _result(module: Any, data: Any) -> list[torch.Tensor]:
    """The tensors that the reference returns for a copy of the data."""
    torch.manual_seed(1)
    describer = Describer()
    describer.describe(module.ref_kernel(copy.deepcopy(data)))
    return [each.clone(memory_format=torch.contiguous_format) for each in describer.tensors]


def _tensors(tree: Any) -> dict[int, dict[str, Any]]:
    """The tensors of a description, by id."""
    if not isinstance(tree, dict):
        return {}
    if "tensor" in tree:
        return {tree["tensor"]["id"]: tree["tensor"]}
    found: dict[int, dict[str, Any]] = {}
    for inner in tree.values():
        for each in inner.values() if isinstance(inner, dict) else inner if isinstance(inner, list) else ():
            found |= _tensors(each)
    return found


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """Raise TimeoutError inside after a while."""

    def late(*_: object) -> None:
        raise TimeoutError(f"it takes more than {_LIMIT_S} s there")

    signal.signal(signal.SIGALRM, late)
    signal.alarm(_LIMIT_S)
    try:
        yield
    finally:
        signal.alarm(0)
