"""Calls a Python submission in the style of its problem, with arguments that are made once per set of tensors.

In the style `writes` it receives all tensors and fills the outputs. In the other styles it receives the arguments that
the forms of the `Bind` describe, and its results are put into the outputs (`results`). Runs in the runner's process,
untrusted.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from harness.recording.schema import Returned
from harness.runner.kernel import CallError, OneCall, Prepare, named, scalar_values, value_of
from harness.runner.results import IsNew, Results
from harness.shared.layouts import ROW_MAJOR
from harness.wire import commands


class ReturningCall:
    """One call of a function that returns its results."""

    def __init__(self, function: Callable[[], Any], results: Results) -> None:
        self._function, self._results = function, results

    def __call__(self) -> None:
        """Make the call, and put its results into the outputs."""
        self.leaving(lambda low, high: False)

    def leaving(self, is_new: IsNew) -> list[Returned]:
        """Make the call; results in new memory stay there, and are returned."""
        with torch.no_grad():
            return self._results.take(self._function(), is_new)

    def launched_ns(self) -> int:
        """Make the call; returns how long the function took, without the copies of its results."""
        with torch.no_grad():
            started = time.perf_counter_ns()
            returned = self._function()
            took_ns = time.perf_counter_ns() - started
            self._results.take(returned)
        return took_ns


class PythonKernel:
    """A submission's function; in the style `module`, its class."""

    def __init__(
        self,
        entry: Callable[..., Any],
        *,
        style: str,
        signature: str,
        device: str,
        converts: commands.Converts = "never",
    ) -> None:
        self._entry, self._style, self._signature, self._device = entry, style, signature, device
        self._converts = converts
        self._allowed: dict[str, tuple[str, ...]] = {}  # the layouts of results that may have several
        self._chosen: dict[str, str] = {}  # those that they had since the last `bind`

    @property
    def writes(self) -> bool:
        """Whether the function should write into its outputs and return nothing."""
        return self._style == "writes"

    @property
    def layouts(self) -> tuple[str, ...]:
        """The layouts of the results that may have several, in the order of the arguments, once a call was made."""
        return tuple(self._chosen.get(name, ROW_MAJOR) for name in self._allowed)

    def bind(self, bind: commands.Bind, declared: Sequence[commands.TensorArgument]) -> Prepare:
        if self.writes:
            return self._writing(scalar_values(bind))
        return self._returning(self._instance(bind) if self._style == "module" else self._entry, bind, declared)

    def _writing(self, scalars: Sequence[int | float]) -> Prepare:
        def prepare(tensors: Sequence[Any]) -> OneCall:
            self._check(self._entry, [*tensors, *scalars])
            return partial(self._entry, *tensors, *scalars)

        return prepare

    def _instance(self, bind: commands.Bind) -> Callable[..., Any]:
        """Create the module on the CPU, so that its weights depend only on the seed, and move it to the device."""
        arguments = [value_of(form, {}) for form in bind.forms.init]
        self._check(self._entry, arguments)
        torch.manual_seed(bind.seed)
        with torch.no_grad():
            instance: Callable[..., Any] = self._entry(*arguments)
            if isinstance(instance, torch.nn.Module):
                instance = instance.to(self._device)
        if not callable(instance):
            raise CallError(f"{type(instance).__name__} is not callable; it is called as {self._signature}")
        return instance

    def _returning(
        self, function: Callable[..., Any], bind: commands.Bind, declared: Sequence[commands.TensorArgument]
    ) -> Prepare:
        allowed = self._allowed = {argument.name: argument.layouts for argument in declared if argument.layouts}
        chosen = self._chosen = dict[str, str]()

        def prepare(tensors: Sequence[Any]) -> OneCall:
            by_name = named(declared, tensors)
            arguments = [value_of(form, by_name) for form in bind.forms.arguments]
            self._check(function.forward if isinstance(function, torch.nn.Module) else function, arguments)
            results = Results(bind.forms.result, by_name, converts=self._converts, allowed=allowed, chosen=chosen)
            return ReturningCall(partial(function, *arguments), results)

        return prepare

    def _check(self, function: Callable[..., Any], arguments: Sequence[Any]) -> None:
        """Raise `CallError` if the function does not take these arguments, unless its signature is not known."""
        try:
            signature = inspect.signature(function, follow_wrapped=False)
        except (TypeError, ValueError):
            return
        try:
            signature.bind(*arguments)
        except TypeError as error:
            raise CallError(f"cannot be called as {self._signature} ({error})") from None
