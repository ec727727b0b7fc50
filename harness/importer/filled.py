"""Finds the tensors in a problem's data that are not inputs but memory for the result, which the call fills. Untrusted.

Such a tensor has the shape of a result in every case (or both have one element), and the result does not depend on its
content. This is tested in the smallest case, by filling the tensor with other values. If the reference cannot run here,
for example because it needs a newer GPU, its operations are watched on the meta device instead.
"""

from __future__ import annotations

import contextlib
import copy
import math
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from harness.importer.loaded import LoadedReference, generated, in_one_line
from harness.importer.values import Describer, Tree, same_bits, tensor_facts, tensors_in

_LIMIT_S = 40
_FILLS = (1, 0)
_OVERWRITE = (torch.ops.aten.copy_, torch.ops.aten.fill_, torch.ops.aten.zero_)


def filled(
    arguments: Sequence[dict[str, Any]], cases: Sequence[Tree], loaded: Mapping[str, LoadedReference]
) -> dict[str, str]:
    """For each tensor that could be memory for the result, by its id: "yes", "no", or why this is unknown."""
    candidates = _candidates(cases)
    if not candidates:
        return {}
    least = arguments[smallest(cases)]
    *_, real = loaded.values()
    try:
        with limited(), real.here() as module:
            data = generated(module, least, 1)
            expected = _result(module, data)
            return {name: _is_filled(module, data, name, expected) for name in candidates}
    except BaseException as error:  # noqa: BLE001  # a process boundary: untrusted code may raise anything
        watched = dict.fromkeys(candidates, in_one_line(error)[:160])
    for name in candidates:
        with contextlib.suppress(Exception), loaded["meta"].here() as module:
            if _overwritten(module, generated(module, least, 1), name):
                watched[name] = "yes"
    return watched


def smallest(cases: Sequence[Tree]) -> int:
    """The index of the case with the smallest data."""

    def elements(number: int) -> int:
        return sum(math.prod(facts["shape"]) for facts in tensor_facts(cases[number]["data"]))

    return min(range(len(cases)), key=elements)


def _candidates(cases: Sequence[Tree]) -> list[str]:
    """The tensors in the data that have the shape of a result in every case; none if the ids differ between cases."""
    data, results = (
        [{facts["id"]: facts for facts in tensor_facts(case[key])} for case in cases] for key in ("data", "result")
    )
    if any([[*inputs], [*made]] != [[*data[0]], [*results[0]]] for inputs, made in zip(data, results, strict=True)):
        return []
    return [
        name
        for name, facts in data[0].items()
        if "count" not in facts
        and any(
            all(_same_shape(inputs[name], made[result]) for inputs, made in zip(data, results, strict=True))
            for result in results[0]
        )
    ]


def _same_shape(tensor: dict[str, Any], result: dict[str, Any]) -> bool:
    """Whether two tensors have the same shape, or one element each: a sum [] is often stored in a tensor [1]."""
    shapes = tensor["shape"], result["shape"]
    return shapes[0] == shapes[1] or all(math.prod(shape) == 1 for shape in shapes)


def _is_filled(module: Any, data: Any, name: str, expected: list[torch.Tensor]) -> str:
    for value in _FILLS:
        other = copy.deepcopy(data)
        describer = Describer()
        describer.describe(other)
        describer.tensors[name].fill_(value)
        try:
            got = _result(module, other)
        except TimeoutError:
            raise
        except Exception:  # noqa: BLE001  # it fails with this value, so it reads the tensor
            return "no"
        if len(expected) != len(got) or not all(map(same_bits, expected, got)):
            return "no"
    return "yes"


def _result(module: Any, data: Any) -> list[torch.Tensor]:
    """The tensors that the reference returns for a copy of the data."""
    torch.manual_seed(1)
    made = tensors_in(module.ref_kernel(copy.deepcopy(data)))
    return [tensor.clone(memory_format=torch.contiguous_format) for tensor in made]


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """Raise TimeoutError in the block if it takes too long."""

    def late(*_: object) -> None:
        raise TimeoutError(f"it takes more than {_LIMIT_S} s there")

    signal.signal(signal.SIGALRM, late)
    signal.alarm(_LIMIT_S)
    try:
        yield
    finally:
        signal.alarm(0)


def _overwritten(module: ModuleType, data: Any, name: str) -> bool:
    """Whether the reference neither reads the tensor with this id, nor returns its initial content."""
    describer = Describer()
    describer.describe(data)
    tensor = describer.tensors[name]
    with _StorageWatch(tensor) as watch:
        result = module.ref_kernel(data)
    storage = tensor.untyped_storage()._cdata
    returned = any(made.untyped_storage()._cdata == storage for made in tensors_in(result))
    return not watch.read and (watch.written >= tensor.numel() or not returned)


class _StorageWatch(TorchDispatchMode):
    """Watches all operations on a tensor and on its views, which share its storage."""

    def __init__(self, tensor: torch.Tensor) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's has no annotations
        self._storage = tensor.untyped_storage()._cdata
        self.read = False
        self.written = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        for place, value in enumerate((*args, *(kwargs or {}).values())):
            stated = func._schema.arguments[place] if place < len(args) else None
            alias = stated.alias_info if stated is not None else None
            for tensor in self._own(value):
                if alias is not None and alias.is_write and func.overloadpacket in _OVERWRITE:
                    self.written += tensor.numel()
                elif alias is None or alias.is_write:  # otherwise the operation makes a view
                    self.read = True
        call: Callable[..., Any] = func
        return call(*args, **(kwargs or {}))

    def _own(self, value: Any) -> Iterator[torch.Tensor]:
        for member in value if isinstance(value, list | tuple) else (value,):
            if isinstance(member, torch.Tensor) and member.untyped_storage()._cdata == self._storage:
                yield member
