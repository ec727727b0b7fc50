"""Inputs in host memory: their arena, the calls to the driver, and their effect on timing."""

from __future__ import annotations

import importlib.util
import os
import socket
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

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
from harness.judge.timing.rounds.batch_size import max_calls
from harness.problem import ResolvedCase, load
from harness.problem.reference import Reference
from harness.runner.devices import RunnerCpu
from harness.runner.kernel import Prepare
from harness.runner.serve import RunnerServer
from harness.wire import commands, frame
from kernelmark.diagnostics.selftest import PROBLEMS
from tests.sites import CALIBRATION

PROBLEM = load(PROBLEMS / "double_from_host")
SETS = 3
MIB = 1 << 20


def resolved(n: int) -> ResolvedCase:
    return PROBLEM.resolve(PROBLEM.tests[0].model_copy(update={"params": {"n": n}}))


def fake_driver(node: int = 3, shares: int | None = 1) -> MagicMock:
    """Stands for the driver's bindings, which no machine without a GPU has: the host's granules are larger."""
    driver = MagicMock()
    ok, in_host = driver.CUresult.CUDA_SUCCESS, driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST_NUMA
    of_node = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID
    able = (ok if shares is not None else driver.CUresult.CUDA_ERROR_INVALID_VALUE, shares)
    driver.CUmemAllocationProp = driver.CUmemAccessDesc = lambda: SimpleNamespace(location=SimpleNamespace())
    driver.cuDeviceGetAttribute = lambda attribute, _: (ok, node) if attribute is of_node else able
    driver.cuMemGetAllocationGranularity = lambda given, _: (ok, (4 if given.location.type is in_host else 2) * MIB)
    driver.cuMemAddressReserve.return_value = (ok, 1 << 40)
    driver.cuMemCreate.return_value = driver.cuMemImportFromShareableHandle.return_value = (ok, 7)
    for call in (driver.cuMemMap, driver.cuMemRelease, driver.cuMemSetAccess):
        call.return_value = (ok, None)
    return driver


def mapping_on(driver: MagicMock, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`harness.arena.mapping` over it; no other test sees this copy."""
    monkeypatch.setitem(sys.modules, "cuda", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "cuda.bindings", SimpleNamespace(driver=driver))
    spec = importlib.util.spec_from_file_location("mapping_on_a_fake", Path(arena.__file__).parent / "mapping.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("node", "used"), [(3, 3), (-1, 0)])
def test_memory_is_taken_from_the_node_of_the_device(node: int, used: int, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = fake_driver(node)
    mapping = mapping_on(driver, monkeypatch)
    mapping.create(4 * MIB, 1, in_host=True)
    mapping.create(2 * MIB, 1)
    kinds = driver.CUmemLocationType
    asked = [
        (made.location.type, made.location.id, nbytes)
        for nbytes, made, _ in (call.args for call in driver.cuMemCreate.mock_calls)
    ]
    assert asked == [
        (kinds.CU_MEM_LOCATION_TYPE_HOST_NUMA, used, 4 * MIB),
        (kinds.CU_MEM_LOCATION_TYPE_DEVICE, 1, 2 * MIB),
    ]


def test_a_window_fits_both_granules_and_is_mapped_for_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = fake_driver()
    mapping = mapping_on(driver, monkeypatch)
    in_host = mapping.DeviceWindow(1, 1, writable=False, in_host=True)
    assert (in_host.nbytes, mapping.DeviceWindow(1, 1, writable=False).nbytes) == (4 * MIB, 2 * MIB)
    in_host.map(5)
    [(_, _, [access], _)] = (call.args for call in driver.cuMemSetAccess.mock_calls)
    assert access.flags is driver.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READ
    assert (access.location.type, access.location.id) == (driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE, 1)


@pytest.mark.parametrize("shares", [0, None])
def test_an_incapable_driver_is_reported_with_the_key(shares: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    mapping = mapping_on(fake_driver(shares=shares), monkeypatch)
    vmm = SimpleNamespace(VmmArena=lambda nbytes, *, in_host: mapping.check_host(0))
    monkeypatch.setitem(sys.modules, "harness.arena.vmm", vmm)
    with pytest.raises(DeviceError) as caught:
        make_arena("cuda", MIB, read_only=True, in_host=True)
    assert str(caught.value) == (
        "this GPU's driver cannot share the host's memory, which memory = \"host\" in problem.toml needs; "
        "grade it on another GPU, or with a driver for CUDA 12.2 or later"
    )


def test_inputs_in_host_memory_have_an_arena_of_their_own() -> None:
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


def test_inputs_in_host_memory_are_drawn_and_checked_like_others(batch: Batch) -> None:
    assert len(set(batch.descriptors)) == len(batch.descriptors) == 3
    given = batch._arenas["host"].bytes[: SETS * 4096].view(torch.float32).view(SETS, 1024)[:, :1000]
    assert 0.9 < float(given.std()) < 1.1, "drawn from a normal distribution"
    assert not torch.equal(given[0], given[1]), "each set has its own"
    assert batch.inputs_changed() is None
    given[SETS - 1, 999] += 1
    assert batch.inputs_changed() == "x"


@pytest.mark.parametrize(("n", "calls"), [(1 << 26, 4), (1 << 29, 1), (1 << 10, commands.MAX_SETS)])
def test_a_round_takes_at_most_one_gib_of_host_memory_unless_one_call_needs_more(n: int, calls: int) -> None:
    assert max_calls(Layout(resolved(n)), 1 << 40) == calls


def test_a_call_has_no_share_of_the_roofline_and_is_not_refused_by_it() -> None:
    assert Roof(CALIBRATION, binding=True).share(resolved(1 << 20), 1, time_ns=1.0) is None


class Twice:
    """The right kernel, as a runner holds it."""

    def bind(self, bind: commands.Bind, declared: Sequence[commands.TensorArgument]) -> Prepare:
        return lambda tensors: lambda: torch.add(tensors[1], tensors[0], alpha=2, out=tensors[2])


def test_a_runner_finds_host_inputs_at_the_same_place_in_every_round(batch: Batch) -> None:
    server, case = RunnerServer(RunnerCpu(), Twice()), resolved(1000)
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
