"""Inputs in the host's memory: their arena, what the driver is asked for it, and what of timing they change."""

from __future__ import annotations

import importlib.util
import os
import socket
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from harness import arena
from harness.arena import make_arena
from harness.errors import DeviceError
from harness.judge.correctness.batch import Batch
from harness.judge.correctness.cases import first_wrong
from harness.judge.correctness.layout import ALIGNMENT, Layout
from harness.judge.correctness.truth import Truth
from harness.judge.timing.roof import Roof
from harness.judge.timing.rounds.batch_size import most_calls
from harness.problem import ResolvedCase, load
from harness.problem.reference import Reference
from harness.runner.devices import RunnerCpu
from harness.runner.kernel import Prepare
from harness.runner.serve import Server
from harness.wire import commands, frame
from kernelmark.diagnostics.selftest import PROBLEMS
from tests.sites import CALIBRATION

PROBLEM = load(PROBLEMS / "double_from_host")
SETS = 3
MIB = 1 << 20
OK = "CUDA_SUCCESS"
HOST, DEVICE = "CU_MEM_LOCATION_TYPE_HOST_NUMA", "CU_MEM_LOCATION_TYPE_DEVICE"


def resolved(n: int) -> ResolvedCase:
    return PROBLEM.resolve(PROBLEM.tests[0].model_copy(update={"params": {"n": n}}))


class Named:
    """An enumeration of the driver's: every member is its own name."""

    def __getattr__(self, name: str) -> str:
        return name


class FakeDriver:
    """Stands for the driver's bindings, which no machine without a GPU has: the host's granules are larger."""

    def __init__(self, node: int = 3, able: tuple[str, int | None] = (OK, 1)) -> None:
        self._node, self._able = node, able
        self.created: list[tuple[str, int, int]] = []
        self.access: list[tuple[str, int, str]] = []
        enumerations = (
            "CUmemAllocationHandleType CUmemAccess_flags CUmemLocationType CUresult CUmemAllocationType "
            "CUmemAllocationGranularity_flags CUdevice_attribute"
        )
        self.module = SimpleNamespace(
            **{name: Named() for name in enumerations.split()},
            CUmemAllocationProp=lambda: SimpleNamespace(location=SimpleNamespace()),
            CUmemAccessDesc=lambda: SimpleNamespace(location=SimpleNamespace()),
            cuDeviceGetAttribute=self._attribute,
            cuMemGetAllocationGranularity=lambda given, _: (OK, 4 * MIB if given.location.type == HOST else 2 * MIB),
            cuMemCreate=self._create,
            cuMemAddressReserve=lambda nbytes, alignment, at, flags: (OK, 1 << 40),
            cuMemImportFromShareableHandle=lambda descriptor, kind: (OK, 7),
            cuMemMap=lambda *given: (OK, None),
            cuMemRelease=lambda handle: (OK, None),
            cuMemSetAccess=self._set_access,
        )

    def _attribute(self, attribute: str, ordinal: int) -> tuple[str, int | None]:
        return (OK, self._node) if attribute == "CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID" else self._able

    def _create(self, nbytes: int, properties: Any, flags: int) -> tuple[str, int]:
        self.created.append((properties.location.type, properties.location.id, nbytes))
        return OK, 7

    def _set_access(self, address: int, nbytes: int, access: list[Any], count: int) -> tuple[str, None]:
        self.access += [(given.location.type, given.location.id, given.flags) for given in access]
        return OK, None


def mapping_on(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`harness.arena.mapping` over it; no other test sees this copy."""
    monkeypatch.setitem(sys.modules, "cuda", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "cuda.bindings", SimpleNamespace(driver=fake.module))
    spec = importlib.util.spec_from_file_location("mapping_on_a_fake", Path(arena.__file__).parent / "mapping.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("node", "used"), [(3, 3), (-1, 0)])
def test_the_driver_is_asked_for_memory_of_the_node_next_to_the_device(
    node: int, used: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeDriver(node)
    mapping = mapping_on(fake, monkeypatch)
    mapping.create(4 * MIB, 1, in_host=True)
    mapping.create(2 * MIB, 1)
    assert fake.created == [(HOST, used, 4 * MIB), (DEVICE, 1, 2 * MIB)]


def test_a_window_fits_both_kinds_of_granules_and_is_mapped_for_the_device_to_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake = FakeDriver()
    mapping = mapping_on(fake, monkeypatch)
    in_host = mapping.DeviceWindow(1, 1, writable=False, in_host=True)
    assert (in_host.nbytes, mapping.DeviceWindow(1, 1, writable=False).nbytes) == (4 * MIB, 2 * MIB)
    in_host.map(5)
    assert fake.access == [(DEVICE, 1, "CU_MEM_ACCESS_FLAGS_PROT_READ")]


@pytest.mark.parametrize("able", [(OK, 0), ("CUDA_ERROR_INVALID_VALUE", None)])
def test_a_driver_that_cannot_gets_a_message_with_the_problems_key(able: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    mapping = mapping_on(FakeDriver(able=able), monkeypatch)
    vmm = SimpleNamespace(VmmArena=lambda nbytes, *, in_host: mapping.check_host(0))
    monkeypatch.setitem(sys.modules, "harness.arena.vmm", vmm)
    with pytest.raises(DeviceError) as caught:
        make_arena("cuda", MIB, read_only=True, in_host=True)
    assert str(caught.value) == (
        "this GPU's driver cannot share the host's memory, which memory = \"host\" in problem.toml needs; "
        "grade it on another GPU, or with a driver for CUDA 12.2 or later"
    )


def test_they_have_an_arena_of_their_own() -> None:
    case = resolved(1000)
    layout = Layout(case)
    slots = [("x", "host", 0), ("b", "inputs", 0), ("y", "outputs", 4096)]
    assert [(slot.tensor.name, slot.place, slot.offset) for slot in layout.slots] == slots
    assert list(layout.strides) == ["inputs", "outputs", "host"]
    assert (layout.input_stride, layout.host_stride) == (ALIGNMENT, 4096)
    assert layout.bytes_per_set == ALIGNMENT + 4096 + 2 * layout.output_stride
    declare, bind = layout.commands(case, PROBLEM.parameters, SETS, seed=0)
    assert [argument.host for argument in declare.arguments] == [True, False, False]
    assert (bind.input_bytes, bind.host_stride) == (SETS * ALIGNMENT, 4096)


@pytest.fixture
def batch() -> Iterator[Batch]:
    made = Batch(Layout(resolved(1000)), "cpu", SETS)
    yield made
    made.close_arenas()


def test_they_are_drawn_and_watched_like_others(batch: Batch) -> None:
    assert len(set(batch.descriptors)) == len(batch.descriptors) == 3
    given = batch._arenas["host"].bytes[: SETS * 4096].view(torch.float32).view(SETS, 1024)[:, :1000]
    assert 0.9 < float(given.std()) < 1.1, "drawn from a normal distribution"
    assert not torch.equal(given[0], given[1]), "each set has its own"
    assert batch.inputs_changed() is None
    given[SETS - 1, 999] += 1
    assert batch.inputs_changed() == "x"


@pytest.mark.parametrize(("n", "calls"), [(1 << 26, 4), (1 << 29, 1), (1 << 10, commands.MAX_SETS)])
def test_a_round_takes_no_more_than_one_gib_of_it_unless_a_call_does(n: int, calls: int) -> None:
    assert most_calls(Layout(resolved(n)), 1 << 40) == calls


def test_a_call_has_no_share_of_the_roofline_and_is_not_refused_by_it() -> None:
    assert Roof(CALIBRATION, binding=True).share(resolved(1 << 20), 1, time_ns=1.0) is None


class Twice:
    """The right kernel, as a runner holds it."""

    def bind(self, bind: commands.Bind, declared: Sequence[commands.TensorArgument]) -> Prepare:
        return lambda tensors: lambda: torch.add(tensors[1], tensors[0], alpha=2, out=tensors[2])


def test_a_runner_finds_them_where_they_are_in_every_round(batch: Batch) -> None:
    server, case = Server(RunnerCpu(), Twice()), resolved(1000)
    practice = Batch(Layout(case), "cpu", SETS)
    for command in Layout(case).commands(case, PROBLEM.parameters, SETS, seed=0):
        server.obey(command, practice.descriptors if isinstance(command, commands.Bind) else ())
    server.obey(commands.Unmap(), ())
    inputs, outputs, host = batch.descriptors
    server.obey(commands.MapOutputs(), [outputs])
    server.obey(commands.Round(calls=2), [inputs, host])
    batch.snapshot()
    server.obey(commands.Release(), ())
    practice.close_arenas()
    assert batch.out_of_bounds([0, 1]) is None
    truth = Truth(Reference.load(PROBLEM), case)
    assert [first_wrong(batch, truth, [k]) is None for k in range(SETS)] == [True, True, False]


def test_three_descriptors_come_with_a_command() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        frame.send(ours, 1, commands.Round(calls=1), [ours.fileno()] * 3)
        token, command, descriptors = frame.receive_command(theirs)
        for descriptor in descriptors:
            os.close(descriptor)
    assert (token, command, len(descriptors)) == (1, commands.Round(calls=1), 3)
